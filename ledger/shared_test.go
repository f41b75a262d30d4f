package ledger

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/internal/shared"
)

// sharedPath returns a path below the folder of real chain data, and skips the
// test where that is absent.
func sharedPath(t testing.TB, parts ...string) string {
	t.Helper()
	return filepath.Join(append([]string{shared.Dir(t)}, parts...)...)
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
