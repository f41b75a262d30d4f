// Package disk asks how much room there is and how much files take, and makes
// what was written durable.
package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Allocated returns the bytes that the files of a folder take of the disk: those
// with one of the endings, or all. Files in folders below do not count, nor does
// what cannot be read.
func Allocated(dir string, endings ...string) (n int64) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, f := range files {
		if f.IsDir() || len(endings) > 0 && !slices.Contains(endings, filepath.Ext(f.Name())) {
			continue
		}
		if info, err := f.Info(); err == nil {
			n += allocated(info)
		}
	}
	return n
}

// SyncDir makes durable which files a folder has.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
