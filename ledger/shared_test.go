package ledger

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedPath returns a path below the folder of reference material, which is
// named by OUROTAIL_SHARED or stands beside the repository; the test is
// skipped where it is absent.
func sharedPath(t testing.TB, parts ...string) string {
	t.Helper()
	roots := []string{os.Getenv("OUROTAIL_SHARED")}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				roots = append(roots, filepath.Join(filepath.Dir(dir), "shared"))
			}
		}
	}
	for _, root := range roots {
		if root == "" {
			continue
		}
		path := filepath.Join(append([]string{root}, parts...)...)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("no %s: set OUROTAIL_SHARED to the folder of reference material", filepath.Join(parts...))
	return ""
}

func readHex(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// chunks returns the contents of the ImmutableDB chunks, in order.
func chunks(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sharedPath(t, "preview", "immutable"), "*.chunk"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no chunks: %v", err)
	}
	all := make([][]byte, len(files)) // Glob sorts
	for i, f := range files {
		if all[i], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
