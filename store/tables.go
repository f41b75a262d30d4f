package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// checkTables reads the end of every table that the manifest names, as Badger is
// about to: on damage there Badger panics in goroutines of its own, where nobody
// can recover. What it finds wrong it returns as ErrDamaged. A table ends with
// its index, the index's length, its checksum, the checksum's length.
func checkTables(dir string, opts badger.Options) error {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a new store
	}
	if err != nil {
		return err
	}
	defer f.Close()
	manifest, _, err := badger.ReplayManifestFile(f, opts.ExternalMagicVersion, opts)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, f.Name(), err)
	}
	for id := range manifest.Tables {
		if err := checkTable(table.NewFilename(id, dir)); err != nil {
			return err
		}
	}
	return nil
}

func checkTable(path string) error {
	damaged := func(what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, path, what) }
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged("it is gone")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	// read takes n bytes off the end.
	read := func(n int64) ([]byte, error) {
		if n < 0 || n > end {
			return nil, damaged("it ends before its index")
		}
		end -= n
		b := make([]byte, n)
		_, err := f.ReadAt(b, end)
		if errors.Is(err, io.EOF) {
			err = nil // the last bytes of the file
		}
		return b, err
	}
	readNumber := func() (int64, error) {
		b, err := read(4)
		if err != nil {
			return 0, err
		}
		return int64(binary.BigEndian.Uint32(b)), nil
	}
	n, err := readNumber()
	if err != nil {
		return err
	}
	sum, err := read(n)
	if err != nil {
		return err
	}
	if n, err = readNumber(); err != nil {
		return err
	}
	index, err := read(n)
	if err != nil {
		return err
	}
	want, ok := crcOf(sum)
	if !ok || uint64(crc32.Checksum(index, crc32.MakeTable(crc32.Castagnoli))) != want {
		return damaged("the checksum of its index is wrong")
	}
	return nil
}

// crcOf reads Badger's protobuf message Checksum: field 1 is the algorithm,
// absent for CRC-32C, the only one it writes; field 2 is the sum.
func crcOf(b []byte) (sum uint64, ok bool) {
	r := reader{b: b}
	for len(r.b) > 0 && !r.bad {
		switch tag, v := r.uvarint(), r.uvarint(); {
		case tag == 2<<3:
			sum = v
		case tag == 1<<3 && v == 0:
		default:
			return 0, false
		}
	}
	return sum, !r.bad
}
