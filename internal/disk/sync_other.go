//go:build !linux

package disk

import "os"

// Sync flushes a file's contents.
func Sync(f *os.File) error { return f.Sync() }
