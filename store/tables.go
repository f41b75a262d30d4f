package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/dgraph-io/badger/v4/fb"
)

// tableEnd is what the end of a table says of it.
type tableEnd struct {
	keys   int64
	newest uint64 // highest version in it
	size   int64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkTable reads the end of a table, as Badger is about to: on damage there
// Badger panics in goroutines of its own, where nobody can recover. With blocks
// it reads the whole table and compares every block with its checksum: when
// Badger meets a block that does not, it takes the block's keys for absent, and a
// compaction leaves them out for good.
//
// A table is blocks, then its index, the index's length, its checksum, the
// checksum's length. A block ends with the places of its entries, their number,
// its checksum, the checksum's length; the checksum covers what is before it.
// What is wrong is returned as ErrDamaged.
func checkTable(path string, blocks bool) (end tableEnd, err error) {
	damaged := func(what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, path, what) }
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return end, damaged("it is gone")
	}
	if err != nil {
		return end, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return end, err
	}
	end.size = info.Size()
	at := end.size
	// read takes n bytes off the end.
	read := func(n int64) ([]byte, error) {
		if n < 0 || n > at {
			return nil, damaged("it ends before its index")
		}
		at -= n
		b := make([]byte, n)
		_, err := f.ReadAt(b, at)
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
		return end, err
	}
	sum, err := read(n)
	if err != nil {
		return end, err
	}
	if n, err = readNumber(); err != nil {
		return end, err
	}
	index, err := read(n)
	if err != nil {
		return end, err
	}
	want, ok := crcOf(sum)
	if !ok || uint64(crc32.Checksum(index, castagnoli)) != want {
		return end, damaged("the checksum of its index is wrong")
	}
	defer func() { // an index with a right checksum that is none all the same
		if r := recover(); r != nil {
			err = damaged("its index does not decode")
		}
	}()
	idx := fb.GetRootAsTableIndex(index, 0)
	end.keys, end.newest = int64(idx.KeyCount()), idx.MaxVersion()
	if !blocks {
		return end, nil
	}
	return end, checkBlocks(io.NewSectionReader(f, 0, at), idx, damaged)
}

// checkBlocks reads the blocks of a table.
func checkBlocks(r *io.SectionReader, idx *fb.TableIndex, damaged func(string) error) error {
	buf := make([]byte, min(1<<20, r.Size()))
	first, filled := int64(0), 0 // what of the file is in buf
	var off fb.BlockOffset
	for i := range idx.OffsetsLength() {
		if !idx.Offsets(&off, i) {
			return damaged("its index does not decode")
		}
		at, n := int64(off.Offset()), int(off.Len())
		if n < 8 || at+int64(n) > r.Size() {
			return damaged(fmt.Sprintf("block %d lies outside of it", i))
		}
		if at < first || at+int64(n) > first+int64(filled) {
			if n > len(buf) {
				buf = make([]byte, n)
			}
			m, err := r.ReadAt(buf, at)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			first, filled = at, m
			if m < n {
				return damaged(fmt.Sprintf("it ends in block %d", i))
			}
		}
		if !soundBlock(buf[at-first : at-first+int64(n)]) {
			return damaged(fmt.Sprintf("the checksum of block %d, at byte %d, is wrong", i, at))
		}
	}
	return nil
}

func soundBlock(b []byte) bool {
	n := len(b) - 4
	size := int(binary.BigEndian.Uint32(b[n:]))
	if size > n-4 {
		return false
	}
	data := b[: n-size : n-size]
	want, ok := crcOf(b[n-size : n])
	entries := int64(binary.BigEndian.Uint32(data[len(data)-4:]))
	return ok && uint64(crc32.Checksum(data, castagnoli)) == want && entries*4 <= int64(len(data)-4)
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
