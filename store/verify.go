package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/table"

	"github.com/ourotail/ourotail/internal/disk"
)

// Verify reads every table and compares each block with its checksum, as opening
// does: Badger takes what lies in a damaged block for absent. A store that is
// open for months should be asked now and then. An error that wraps ErrDamaged
// also ends writing. It may be called from any goroutine.
func (s *Store) Verify(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.verify(ctx)
}

func (s *Store) verify(ctx context.Context) error {
	for _, t := range s.db.Tables() {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := checkTable(table.NewFilename(t.ID, filepath.Join(s.opts.Dir, "db")), true)
		if err == nil || errors.Is(err, ErrDamaged) && !s.hasTable(t.ID) {
			continue // it was compacted away meanwhile
		}
		if errors.Is(err, ErrDamaged) {
			s.failed(err)
		}
		return fmt.Errorf("verify the tables: %w", err)
	}
	return nil
}

func (s *Store) hasTable(id uint64) bool {
	for _, t := range s.db.Tables() {
		if t.ID == id {
			return true
		}
	}
	return false
}

// DiskUse is what a store takes of the disk.
type DiskUse struct {
	Tables     int   // files
	TableBytes int64 // in them
	StaleBytes int64 // of those, what the next compaction of their level drops, as far as known
	LogBytes   int64 // in write-ahead files
	UnmergedL0 int   // tables that wait to be merged with the others
}

// DiskUse returns what the store takes of the disk now.
func (s *Store) DiskUse() (u DiskUse) {
	for _, t := range s.db.Tables() {
		u.Tables++
		u.TableBytes += int64(t.OnDiskSize)
		u.StaleBytes += int64(t.StaleDataSize)
		if t.Level == 0 {
			u.UnmergedL0++
		}
	}
	u.LogBytes = disk.Allocated(filepath.Join(s.opts.Dir, "db"), ".mem", ".vlog")
	return u
}
