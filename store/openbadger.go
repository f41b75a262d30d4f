package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/internal/disk"
)

// openBadger opens the database where its files are known to be whole. Badger
// panics on some kinds of damage that checkTables does not look for, and where it
// cannot make tables of its write-ahead files it tries for ever; then it is left at
// it, and the directory stays ours for as long as the process lives.
func (s *Store) openBadger(opts badger.Options) (*badger.DB, error) {
	type opened struct {
		db  *badger.DB
		err error
	}
	done := make(chan opened, 1)
	go func() {
		var o opened
		defer func() {
			if r := recover(); r != nil {
				o.err = fmt.Errorf("%w: %v", ErrDamaged, r)
			}
			done <- o
		}()
		o.db, o.err = badger.Open(opts)
	}()
	before := s.opts.events.flushes.Load()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case o := <-done:
			return o.db, s.openError(o.err)
		case <-tick.C:
		}
		if s.opts.events.stuck.Load() || s.opts.events.flushes.Load()-before >= 3 {
			s.abandoned = true
			return nil, fmt.Errorf("the database could not be opened, end the process: %w", *s.failure.Load())
		}
	}
}

// openError says what an error of opening means.
func (s *Store) openError(err error) error {
	dir := filepath.Join(s.opts.Dir, "db")
	switch {
	case err == nil || errors.Is(err, ErrDamaged):
		return err
	case strings.Contains(err.Error(), "Cannot acquire directory lock"):
		return holder(s.opts.Dir)
	case fromSystem(err) != nil:
		return fmt.Errorf("open the database in %s: %w", dir, fromSystem(err))
	}
	return fmt.Errorf("%w: open the database in %s: %w", ErrDamaged, dir, err)
}

// wants are what a system may want of a process, or not give it. Nothing of it
// says that files are damaged.
var wants = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EFBIG, syscall.ENOSPC, syscall.EDQUOT,
	syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.ESTALE, syscall.EINTR,
}

// fromSystem returns err if the system refused something, wrapping its error; nil
// otherwise. Badger's errors often wrap nothing, then the words tell.
func fromSystem(err error) error {
	var path *fs.PathError
	var number syscall.Errno
	if errors.As(err, &path) || errors.As(err, &number) {
		return err
	}
	for _, number := range wants {
		if strings.Contains(err.Error(), number.Error()) {
			return fmt.Errorf("%w: %w", number, err)
		}
	}
	return nil
}

// roomFor asks whether the disk has room for what Badger is about to write through
// memory maps.
func (s *Store) roomFor(what string, bytes int64) error {
	free, err := disk.Free(s.opts.Dir)
	if err != nil || free >= uint64(bytes) {
		return nil //nolint:nilerr // a system that does not tell is taken at its word
	}
	return fmt.Errorf("%w: %d bytes are free in %s, %s may take %d", syscall.ENOSPC, free, s.opts.Dir, what, bytes)
}

// filesFor asks whether the process may open the files of a database, and some
// more: Badger ends the process where it may not.
func filesFor(f *files) error {
	want := uint64(len(f.tables) + 2*len(f.logs) + 32)
	if may, known := disk.OpenFiles(); known && may < want {
		return fmt.Errorf("%w: the database in %s takes %d, the process may have %d (raise it with ulimit -n)", syscall.EMFILE, f.dir, want, may)
	}
	return nil
}

// roomToOpen is what opening may take: tables of the write-ahead files, and the
// beginning of a new one.
func roomToOpen(f *files, opts badger.Options) int64 {
	need := min(opts.MemTableSize/4, 1<<20)
	for _, t := range f.logs {
		need += t.end + t.end/4
	}
	return need
}

// roomToClose is what closing may take: tables of all memtables, which hold what
// their write-ahead files do.
func roomToClose(dir string) int64 {
	logs := disk.Allocated(dir, ".mem")
	return logs + logs/4 + 1<<20
}
