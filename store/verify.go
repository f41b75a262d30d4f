package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dgraph-io/badger/v4/table"

	"github.com/ourotail/ourotail/internal/disk"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// Verify reads every table and every file of blocks and compares them with their
// checksums, as opening does: Badger takes what lies in a damaged block of a table
// for absent. A store that is
// open for months should be asked now and then. An error that wraps ErrDamaged
// also ends writing. It may be called from any goroutine.
func (s *Store) Verify(ctx context.Context) error {
	if !s.use.TryRLock() {
		return ErrClosed
	}
	defer s.use.RUnlock()
	if err := s.verify(ctx); err != nil {
		return err
	}
	v := s.Snapshot()
	defer v.Close()
	err := v.verifyBlocks(ctx)
	if errors.Is(err, ErrDamaged) {
		s.failed(err)
	}
	return err
}

// verifyBlocks reads all that the snapshot's records and orphans name.
func (v *Snapshot) verifyBlocks(ctx context.Context) error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	var places []segment.Place
	for kind, read := range map[byte]func([]byte) error{
		keyRecord: func(b []byte) error {
			_, raw, err := recordStart(b)
			places = append(places, raw)
			return err
		},
		keyOrphan: func(b []byte) error {
			o, err := readOrphan(b)
			places = append(places, o.raw, o.contents)
			return err
		},
	} {
		if err := each(v.txn, []byte{kind}, func(_, b []byte) error { return read(b) }); err != nil {
			return err
		}
	}
	return verifyBlocks(ctx, v.blocks, places)
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
	BlockBytes int64 // in files of blocks
	UnmergedL0 int   // tables that wait to be merged with the others
}

// DiskUse returns what the store takes of the disk now; nothing of a closed one.
func (s *Store) DiskUse() (u DiskUse) {
	if !s.use.TryRLock() {
		return u
	}
	defer s.use.RUnlock()
	return s.diskUse()
}

func (s *Store) diskUse() (u DiskUse) {
	for _, t := range s.db.Tables() {
		u.Tables++
		u.TableBytes += int64(t.OnDiskSize)
		u.StaleBytes += int64(t.StaleDataSize)
		if t.Level == 0 {
			u.UnmergedL0++
		}
	}
	u.LogBytes = disk.Allocated(filepath.Join(s.opts.Dir, "db"), ".mem", ".vlog")
	u.BlockBytes = disk.Allocated(filepath.Join(s.opts.Dir, "db"), segment.Ext)
	return u
}
