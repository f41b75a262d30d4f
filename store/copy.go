package store

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// openCopy opens a database for reading without touching a byte of it, wherever
// it lies: Badger reads from a folder of links to its tables, with copies of the
// rest, the write-ahead files as far as they are whole. done gives it up.
func openCopy(dir string, f *files, log *slog.Logger) (_ *badger.DB, done func() error, err error) {
	if err := filesFor(f); err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "ourotail-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	for id := range f.tables {
		if err := os.Symlink(table.NewFilename(id, dir), table.NewFilename(id, folder)); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range []string{badger.ManifestFilename, badger.KeyRegistryFileName} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(folder, name), -1); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, err
		}
	}
	for _, t := range f.logs {
		if t.newest == 0 {
			continue
		}
		if err := copyFile(t.path, filepath.Join(folder, filepath.Base(t.path)), t.end); err != nil {
			return nil, nil, err
		}
	}
	opts := badgerOptions(Options{Memory: MinMemory, Logger: log}, folder).WithReadOnly(true)
	opts = opts.WithMemTableSize(max(opts.MemTableSize, f.memTable()))
	db, err := badger.Open(opts)
	if err != nil && fromSystem(err) != nil {
		return nil, nil, fmt.Errorf("open the database in %s: %w", dir, fromSystem(err))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: open the database in %s: %w", ErrDamaged, dir, err)
	}
	return db, func() error { return errors.Join(db.Close(), os.RemoveAll(folder)) }, nil
}

// memTable is how large a memtable has to be for the write-ahead files to fit:
// Badger makes a file of twice a memtable's size, cuts it to what it holds when it
// opens it, and entries take up to half as much again in memory.
func (f *files) memTable() (size int64) {
	for _, t := range f.logs {
		size = max(size, t.size/2, 2*t.end)
	}
	return size
}

func copyFile(from, to string, n int64) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	if n < 0 {
		_, err = io.Copy(dst, src)
	} else {
		_, err = io.CopyN(dst, src, n)
	}
	return errors.Join(err, dst.Close())
}
