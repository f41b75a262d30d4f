package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/internal/disk"
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
	next func(n int) error // is called when file n begins and all before are on disk
}

// openWAL opens the newest file. Badger must have been opened.
func openWAL(dir string, next func(n int) error) (*wal, error) {
	n, err := newestWAL(dir)
	if err != nil {
		return nil, err
	}
	w := &wal{dir: dir, n: n, next: next}
	if w.file, err = os.Open(w.path(w.n)); err != nil {
		return nil, fmt.Errorf("write-ahead file: %w", err)
	}
	return w, nil
}

// newestWAL returns the number of the newest file; -1 if there is none.
func newestWAL(dir string) (newest int, err error) {
	newest = -1
	files, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil {
		return newest, err
	}
	for _, f := range files {
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(f), ".mem"))
		if err != nil {
			return newest, fmt.Errorf("write-ahead file %s: %w", f, err)
		}
		newest = max(newest, n)
	}
	return newest, nil
}

// syncLogs makes durable what a killed process wrote: from here on it counts.
func syncLogs(logs []walTail) error {
	for _, t := range logs {
		f, err := os.OpenFile(t.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(disk.Sync(f), f.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", t.path, err)
		}
	}
	return nil
}

func (w *wal) path(n int) string { return memFile(w.dir, n) }

func memFile(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%05d.mem", n)) }

// sync makes durable every transaction that was committed before it was called.
// Badger begins a new file before it writes a transaction, never within one.
func (w *wal) sync() error {
	for {
		if err := disk.Sync(w.file); err != nil {
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
		if err := disk.SyncDir(w.dir); err != nil {
			return fmt.Errorf("sync %s: %w", w.dir, err)
		}
		if err := w.next(w.n); err != nil {
			return err
		}
	}
}

func (w *wal) close() error { return w.file.Close() }
