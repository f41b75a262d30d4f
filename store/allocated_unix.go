//go:build unix

package store

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// allocated returns the bytes that files with one of the endings take of the
// disk; all files without an ending.
func allocated(dir string, endings ...string) (n int64) {
	names, err := filenames(dir)
	if err != nil {
		return 0
	}
	for _, name := range names {
		if len(endings) > 0 && !slices.Contains(endings, filepath.Ext(name)) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				n += st.Blocks * 512
			}
		}
	}
	return n
}

// freeBytes returns how much an ordinary user may still write; -1 if that is not
// known.
func freeBytes(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // other systems have other types
}
