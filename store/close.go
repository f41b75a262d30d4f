package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ourotail/ourotail/internal/disk"
)

// Close waits for what is under way and closes the database. What is asked of it
// or of a snapshot afterwards is answered by ErrClosed, a long query ends with it. A
// function that a query calls must not close the store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.use.Lock() // for ever
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.broken == nil && s.failure.Load() == nil && (s.opts.Room == nil || s.opts.Room() == nil) {
		err = s.flush() // if not, what was gathered is asked for again
	}
	return errors.Join(err, s.release())
}

func (s *Store) release() error {
	s.endLookups()
	var errs []error
	if s.db != nil {
		if err := s.lastRecord(); err != nil {
			return errors.Join(err, errors.New("the database was not closed, end the process"))
		}
		closed, err := s.closeDB()
		if errs = append(errs, err); !closed {
			return errors.Join(errs...) // the directory is ours for as long as the process lives
		}
	}
	errs = append(errs, s.closeBlocks(s.db != nil && errors.Join(errs...) == nil))
	if s.wal != nil {
		errs = append(errs, s.wal.close())
	}
	if s.accounts != nil {
		errs = append(errs, s.accounts.close())
	}
	if err := s.failure.Load(); err != nil {
		errs = append(errs, *err)
	}
	if s.lock != nil && !s.abandoned {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}

// lastRecord says that write-ahead files are about to become tables.
func (s *Store) lastRecord() error {
	if !s.recorded {
		return nil
	}
	version := s.own.version
	if s.opened && s.broken == nil {
		if v, err := s.version(); err == nil { // if not, opening will say it
			version = v
		}
	}
	err := s.keepRecord(version, 0)
	if errors.Is(err, syscall.ENOSPC) { // to have none takes no room
		s.log.Warn("no room for the store's own record, it is removed", "error", err)
		err = os.Remove(filepath.Join(s.opts.Dir, "db", recordFile))
	}
	return err
}

// closeDB closes Badger. Where the disk is full it would wait until there is
// room; then it is left as a kill leaves it, and false returned: Badger is still
// at it.
func (s *Store) closeDB() (bool, error) {
	if err := s.roomFor("closing the database", roomToClose(filepath.Join(s.opts.Dir, "db"))); err != nil {
		return false, fmt.Errorf("the database was left as it is, the next start recovers it: %w", err)
	}
	if s.opts.events.stuck.Load() {
		return false, fmt.Errorf("the database was not closed, end the process; the next start recovers it: %w", *s.failure.Load())
	}
	closed := make(chan error, 1)
	go func() {
		s.merge()
		closed <- s.db.Close()
	}()
	before := s.opts.events.flushes.Load()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-closed:
			return true, err
		case <-tick.C:
		}
		if s.opts.events.stuck.Load() || s.opts.events.flushes.Load()-before >= 3 {
			return false, fmt.Errorf("the database could not be closed, end the process; the next start recovers it: %w", *s.failure.Load())
		}
	}
}

// merge brings all tables into the last level where forks have left garbage: what
// was undone, and undoing it, is in all of them. Following a chain without any
// leaves little, and then the end need not wait.
func (s *Store) merge() {
	var above, last, levels int64
	for _, l := range s.db.Levels() {
		if l.Size == 0 {
			continue
		}
		levels++
		above, last = above+last, l.Size
	}
	if levels == 0 || s.undoneBytes < (above+last)/8 || s.failure.Load() != nil {
		return
	}
	if free, err := disk.Free(s.opts.Dir); err == nil && free < uint64(2*(above+last)) {
		s.log.Warn("too little room to merge the tables", "bytes", above+last, "free", free)
		return
	}
	began := time.Now()
	err := s.db.Flatten(1)
	use := s.diskUse()
	s.log.Info("merged the tables", "bytes_before", above+last, "bytes", use.TableBytes, "took", time.Since(began).Round(time.Millisecond))
	if err != nil {
		s.log.Debug("merging ended early", "error", err)
	}
}
