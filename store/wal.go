package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// wal syncs Badger's write-ahead files, which are mapped files numbered in the
// order of their making, so that a transaction is on disk when write returns.
//
// Badger's own ways do less and cost more. DB.Sync reaches only the newest file:
// a transaction in the one before, not yet flushed to a table, is lost in a power
// cut although a later one is not. Both it and SyncWrites also sync the value
// log, into which nothing is written, and a sync of nothing waits for the disk as
// long as one of something. Neither syncs the directory in which a new file was
// made.
type wal struct {
	dir  string
	n    int // number of the file in which the last transaction is, as far as we know
	file *os.File
}

// openWAL finds the newest file. Badger must have been opened.
func openWAL(dir string) (*wal, error) {
	w := &wal{dir: dir, n: -1}
	files, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(f), ".mem"))
		if err != nil {
			return nil, fmt.Errorf("write-ahead file %s: %w", f, err)
		}
		w.n = max(w.n, n)
	}
	if w.file, err = os.Open(w.path(w.n)); err != nil {
		return nil, fmt.Errorf("write-ahead file: %w", err)
	}
	return w, nil
}

func (w *wal) path(n int) string { return filepath.Join(w.dir, fmt.Sprintf("%05d.mem", n)) }

// sync makes durable every transaction that was committed before it was called.
// Badger begins a new file before it writes a transaction, never within one.
func (w *wal) sync() error {
	for {
		if err := datasync(w.file); err != nil {
			return fmt.Errorf("sync %s: %w", w.file.Name(), err)
		}
		next, err := os.Open(w.path(w.n + 1))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write-ahead file: %w", err)
		}
		_ = w.file.Close() // it was only synced through
		w.file = next
		w.n++
		if err := syncDir(w.dir); err != nil {
			return fmt.Errorf("sync %s: %w", w.dir, err)
		}
	}
}

func (w *wal) close() error { return w.file.Close() }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
