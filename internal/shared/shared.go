// Package shared finds the folder of real chain data that tests read: beside
// the project, or where OUROTAIL_SHARED says.
package shared

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder, or skips the test with a clear message.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("OUROTAIL_SHARED")
	if dir == "" {
		at, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for ; at != filepath.Dir(at); at = filepath.Dir(at) {
			if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
				dir = filepath.Join(filepath.Dir(at), "shared")
				break
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "preview", "immutable")); err != nil {
		t.Skipf("no real chain data here: put the folder `shared` beside the project, or name it in OUROTAIL_SHARED (%v)", err)
	}
	return dir
}
