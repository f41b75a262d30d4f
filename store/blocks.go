package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ourotail/ourotail/store/internal/segment"
)

// The bytes of blocks that a rollback could undo are not in the database but in
// files beside it, written once, before the transaction that names them; see
// package segment. A kill between the two leaves bytes that nothing names, which
// Open passes by. A file goes once no record and no orphan names anything in it,
// and the transaction that saw to that is in a table: a write-ahead file whose end
// is torn off leads back to a head that may want it.

// openBlocks opens the files for the places that the database names, and reads
// them all: a damaged one is refused like a damaged table.
func (s *Store) openBlocks(places []segment.Place) (err error) {
	limit := int64(segment.DefaultMax)
	if s.opts.memTable != 0 {
		limit = 4 << 10
	}
	s.blocks, err = segment.Open(filepath.Join(s.opts.Dir, "db"), slices.Values(places), limit, !s.opts.noSync)
	if err != nil {
		return blockError(err)
	}
	s.ops.blocks, s.unwanted = s.blocks.Batch(), map[uint32]int{}
	s.dropBlocks()
	return verifyBlocks(context.Background(), s.blocks.View(), places)
}

// dropBlocks removes the files of which nothing is wanted any more.
func (s *Store) dropBlocks() {
	for _, n := range s.blocks.Unwanted() {
		log, known := s.unwanted[n]
		if !known {
			log = s.newestLog()
			s.unwanted[n] = log
		}
		if !there(memFile(filepath.Join(s.opts.Dir, "db"), log)) {
			s.removeBlocks(n)
		}
	}
}

// newestLog returns the number of the write-ahead file in which the last
// transaction is, or of a newer one.
func (s *Store) newestLog() int {
	if s.wal != nil {
		return s.wal.n
	}
	n, err := newestWAL(filepath.Join(s.opts.Dir, "db")) // in tests
	if err != nil {
		panic(err)
	}
	return n
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func (s *Store) removeBlocks(n uint32) {
	delete(s.unwanted, n)
	if err := s.blocks.Remove(n); err != nil {
		s.log.Warn("cannot remove a file of blocks, the next start will", "error", err)
	}
}

// closeBlocks closes the files; clean tells that all transactions are in tables.
func (s *Store) closeBlocks(clean bool) error {
	if s.blocks == nil {
		return nil
	}
	if clean {
		for _, n := range s.blocks.Unwanted() {
			s.removeBlocks(n)
		}
	}
	return s.blocks.Close()
}

func verifyBlocks(ctx context.Context, v *segment.View, places []segment.Place) error {
	var buf []byte
	for _, p := range places {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if buf, err = v.Read(p, buf[:0]); err != nil {
			return blockError(err)
		}
	}
	return nil
}

// readBlock returns bytes that are the caller's.
func readBlock(v *segment.View, p segment.Place) ([]byte, error) {
	b, err := v.Read(p, nil)
	return b, blockError(err)
}

// blockError makes ours of the files' error.
func blockError(err error) error {
	var damaged *segment.DamagedError
	if errors.As(err, &damaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
