package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/internal/disk"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// discardedDir is what a database is called once it is given up. Renaming is one
// step: a kill leaves the old store or none, and what is left of the old one is
// removed by whoever opens the directory next.
const discardedDir = "db.discarded"

// startOver gives up the database of a data directory that we hold, for a new
// one. What is not recognized as ours is left alone, with an error that wraps
// ErrNotOurs; so is another network's, as far as that can be told of a damaged
// one.
func (s *Store) startOver() error {
	dir, db := s.opts.Dir, filepath.Join(s.opts.Dir, "db")
	if info, err := os.Lstat(db); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%w: %s is a link: the new database would be made here, not where it leads; empty that place, or remove the link", ErrNotOurs, db)
	}
	names, err := filenames(db)
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		if !ours(name) {
			return fmt.Errorf("%w: %s", ErrNotOurs, filepath.Join(db, name))
		}
	}
	if there, err := anything(db); err != nil || !there {
		return errors.Join(err, fmt.Errorf("%w: %s", ErrNotOurs, db))
	}
	// A record that does not read is one reason to start over.
	if own, ok, err := readRecord(db); err == nil && ok && own.magic != s.opts.Magic {
		return fmt.Errorf("%w: %s holds network magic %d, wanted is %d", ErrNetwork, dir, own.magic, s.opts.Magic)
	}
	if err := s.step("discard"); err != nil {
		return err
	}
	s.log.Warn("starting over: the old store is removed", "directory", db)
	if err := os.Rename(db, filepath.Join(dir, discardedDir)); err != nil {
		return err
	}
	if err := disk.SyncDir(dir); err != nil {
		return err
	}
	return s.step("discarded")
}

// dropDiscarded removes what is left of a database that was given up.
func (s *Store) dropDiscarded() error {
	dir := filepath.Join(s.opts.Dir, discardedDir)
	names, err := filenames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !ours(name) { // somebody put it there
			return fmt.Errorf("%w: %s", ErrNotOurs, filepath.Join(dir, name))
		}
		if err := s.step("drop discarded"); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ours tells the files that Badger and we make.
func ours(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".mem", ".vlog", segment.Ext:
		return strings.Trim(strings.TrimSuffix(name, filepath.Ext(name)), "0123456789") == ""
	}
	switch name {
	case badger.ManifestFilename, badger.ManifestFilename + "-REWRITE", badger.KeyRegistryFileName, "REWRITE-KEYREGISTRY",
		"DISCARD", "LOCK", damageFile, recordFile, recordFile + newSuffix:
		return true
	}
	return false
}
