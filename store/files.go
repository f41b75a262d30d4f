package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"

	"github.com/ourotail/ourotail/store/internal/segment"
)

// files is what the files of a database say before Badger opens them.
//
// Badger believes its manifest: a table that it does not name is removed, as what
// a kill left half done, and without a manifest everything is. A manifest that
// lost its end in a way that still reads would so take the newest tables with it,
// and the store would open at an older head, or with a hole. What tells the two
// apart are the versions. Every transaction has one, counted without a gap, and
// writes the head, which so stays in the tables with the highest version of all.
// Tables named and write-ahead files must cover all versions up to the newest in
// any file; a table that a kill left behind brings none of its own.
type files struct {
	dir     string
	tables  map[uint64]tableEnd
	strays  []uint64 // tables on disk that the manifest does not name
	logs    []walTail
	newest  uint64 // version
	size    int64  // of the tables
	empty   bool   // no database was made here yet
	flushed uint64 // newest version in the tables

	manifestEnd int64  // of its last whole change
	unnamed     uint64 // newest version in strays
}

// examine looks at the files of a database. Each thing that is wrong goes to
// bad, as what kind of thing it is and an error; if bad returns an error,
// examine ends with it. read, if given, is told of every table with its size.
func examine(dir string, opts badger.Options, blocks bool, bad func(kind string, err error) error, read func(done, total int64) error) (f files, err error) {
	f = files{dir: dir, tables: map[uint64]tableEnd{}}
	names, err := filenames(dir)
	if err != nil {
		return f, err
	}
	manifest, err := f.readManifest(names, opts)
	if errors.Is(err, ErrDamaged) {
		if err = bad("manifest", err); err == nil {
			manifest = &badger.Manifest{}
		}
	}
	if err != nil || manifest == nil {
		f.empty = manifest == nil
		return f, err
	}
	if err := f.readTables(manifest, names, blocks, bad, read); err != nil {
		return f, err
	}
	if err := f.readHeaders(names, bad); err != nil {
		return f, err
	}
	for _, name := range names {
		if filepath.Ext(name) != ".mem" {
			continue
		}
		t, err := readWAL(filepath.Join(dir, name))
		if err != nil {
			return f, err
		}
		if t.number, err = strconv.Atoi(strings.TrimSuffix(name, ".mem")); err != nil {
			return f, fmt.Errorf("write-ahead file %s: %w", name, err)
		}
		f.logs = append(f.logs, t)
	}
	slices.SortFunc(f.logs, func(a, b walTail) int { return a.number - b.number })
	return f, f.covered(bad)
}

func filenames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// madeLater tells files that are there only if a manifest once was.
func madeLater(name string) bool {
	switch filepath.Ext(name) {
	case ".sst", ".mem", ".vlog", segment.Ext:
		return true
	}
	return name == recordFile
}

// anything tells whether there is a database, whole or not.
func anything(dir string) (bool, error) {
	names, err := filenames(dir)
	return slices.ContainsFunc(names, func(name string) bool { return madeLater(name) || name == badger.ManifestFilename }), err
}

// readManifest returns nil if there is none and nothing that it could have named.
func (f *files) readManifest(names []string, opts badger.Options) (*badger.Manifest, error) {
	path := filepath.Join(f.dir, badger.ManifestFilename)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range names {
			if madeLater(name) {
				return nil, fmt.Errorf("%w: %s is gone, %s is there", ErrDamaged, path, name)
			}
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	manifest, end, err := badger.ReplayManifestFile(file, opts.ExternalMagicVersion, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	f.manifestEnd = end
	return &manifest, nil
}

// readTables checks the tables that the manifest names, and looks at the others.
func (f *files) readTables(manifest *badger.Manifest, names []string, blocks bool, bad func(string, error) error, read func(done, total int64) error) error {
	var total, done int64
	for _, name := range names {
		id, ok := table.ParseFileID(name)
		if !ok {
			continue
		}
		if _, named := manifest.Tables[id]; !named {
			f.strays = append(f.strays, id)
			end, err := checkTable(filepath.Join(f.dir, name), false)
			switch {
			case errors.Is(err, ErrDamaged): // a kill came while it was written
			case err != nil:
				return err
			}
			f.unnamed = max(f.unnamed, end.newest)
			continue
		}
		info, err := os.Stat(filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		total += info.Size()
	}
	for _, id := range slices.Sorted(maps.Keys(manifest.Tables)) {
		end, err := checkTable(table.NewFilename(id, f.dir), blocks)
		if errors.Is(err, ErrDamaged) {
			err = bad("table", err)
		}
		if err != nil {
			return err
		}
		f.tables[id] = end
		f.newest = max(f.newest, end.newest)
		f.size += end.size
		if done += end.size; read != nil {
			if err := read(done, total); err != nil {
				return err
			}
		}
	}
	return nil
}

// readHeaders checks what else keeps Badger from opening: the registry of
// encryption keys, which is empty, and the key each log file names, which is none.
func (f *files) readHeaders(names []string, bad func(string, error) error) error {
	_, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: f.dir, ReadOnly: true})
	var path *fs.PathError
	if err != nil && !errors.As(err, &path) {
		err = bad("registry", fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Join(f.dir, badger.KeyRegistryFileName), err))
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if ext := filepath.Ext(name); ext != ".mem" && ext != ".vlog" {
			continue
		}
		path := filepath.Join(f.dir, name)
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		var key [8]byte
		n, err := io.ReadFull(file, key[:])
		_ = file.Close() // it was only read
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		if err == nil && n == len(key) && key != [8]byte{} {
			err = bad("log", fmt.Errorf("%w: %s: its header is wrong", ErrDamaged, path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// covered checks that no version is missing between tables and write-ahead
// files, nor above them.
func (f *files) covered(bad func(string, error) error) error {
	f.flushed = f.newest
	hole := func(from, to uint64, in string) error {
		return bad("hole", fmt.Errorf("%w: the manifest names tables with transactions up to %d, those up to %d are gone, %s", ErrDamaged, from, to, in))
	}
	for _, t := range f.logs {
		if t.oldest > f.newest+1 {
			if err := hole(f.newest, t.oldest-1, filepath.Base(t.path)+" begins behind them"); err != nil {
				return err
			}
		}
		f.newest = max(f.newest, t.newest)
	}
	if f.unnamed > f.newest {
		return hole(f.newest, f.unnamed, "a table has them that it does not name")
	}
	return nil
}

// dropFlushed removes write-ahead files whose tables are made: memtables become
// tables in their order, so one is if a table has a version as new as its newest.
func (f *files) dropFlushed() error {
	for _, t := range f.logs {
		if t.newest > 0 && t.newest <= f.flushed {
			if err := os.Remove(t.path); err != nil {
				return err
			}
		}
	}
	return nil
}
