package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/disk"
)

// ownRecord is what we know of a database without opening it, in a file beside
// Badger's: whose it is, and how far it must reach. It is written when a
// write-ahead file is full, at opening and at closing, so that it costs nothing.
// What lies behind it is in the newest write-ahead file only.
type ownRecord struct {
	magic   uint32
	k       chain.Height
	archive bool
	version uint64 // every transaction up to it is on disk
	log     int    // the newest write-ahead file is this one or a newer one; 0 if there need be none
}

const (
	recordFile = "OUROTAIL"
	newSuffix  = "-NEW" // while it is written
)

func (r ownRecord) text() []byte {
	b := fmt.Appendf(nil, "ourotail store\nnetwork magic %d\nk %d\narchive %t\ntransactions %d\nlog %d\n", r.magic, r.k, r.archive, r.version, r.log)
	return fmt.Appendf(b, "crc32c %08x\n", crc32.Checksum(b, castagnoli))
}

// readRecord returns false if there is none.
func readRecord(dir string) (r ownRecord, ok bool, err error) {
	path := filepath.Join(dir, recordFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	var sum uint32
	_, err = fmt.Sscanf(string(b), "ourotail store\nnetwork magic %d\nk %d\narchive %t\ntransactions %d\nlog %d\ncrc32c %x\n", &r.magic, &r.k, &r.archive, &r.version, &r.log, &sum)
	if err != nil || !bytes.Equal(b, r.text()) {
		return r, false, fmt.Errorf("%w: %s does not read", ErrDamaged, path)
	}
	return r, true, nil
}

// write replaces the record; sync makes sure that it and what it says of files
// made before survive a power cut.
func (r ownRecord) write(dir string, sync bool) error {
	name := filepath.Join(dir, recordFile)
	f, err := os.Create(name + newSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(r.text())
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+"-NEW", name); err != nil {
		return err
	}
	if sync {
		return disk.SyncDir(dir)
	}
	return nil
}

// held checks the files against the record.
func (r ownRecord) held(f *files) error {
	if f.newest < r.version {
		return fmt.Errorf("%w: %s holds transactions up to %d, %d were stored", ErrDamaged, f.dir, f.newest, r.version)
	}
	if r.log > 0 && (len(f.logs) == 0 || f.logs[len(f.logs)-1].number < r.log) {
		return fmt.Errorf("%w: %s is gone", ErrDamaged, memFile(f.dir, r.log))
	}
	return nil
}

// keepRecord writes the store's own record.
func (s *Store) keepRecord(version uint64, log int) error {
	s.own.version, s.own.log = max(s.own.version, version), log
	s.own.magic, s.own.k, s.own.archive = s.opts.Magic, s.opts.K, s.opts.Archive
	if err := s.own.write(filepath.Join(s.opts.Dir, "db"), !s.opts.noSync); err != nil {
		return fmt.Errorf("write %s: %w", recordFile, err)
	}
	s.recorded = true
	return nil
}
