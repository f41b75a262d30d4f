// Package segment keeps byte strings in files that only grow: written once, one
// behind the other, by plain writes, and removed a whole file at a time when
// nothing in it is wanted any more.
//
// It is for what is large, never changes, and is seldom read: blocks. A tree would
// write each of them three or four times. Who writes it keeps the Place of each
// string, with its checksum; the files themselves hold nothing else, so that what
// no place names does not count.
package segment

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ext is the ending of the files' names, which are numbers.
const Ext = ".blocks"

// DefaultMax is how large a file grows before the next one begins, in bytes: the
// newest 2,160 blocks of mainnet are in some fifty files at most, and what a chain
// of small blocks leaves behind in forks is little.
const DefaultMax = 4 << 20

// DamagedError is what is returned for files that do not hold what they should.
type DamagedError struct {
	Path  string
	Place Place
	What  string // that is wrong with the bytes
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: %d bytes at %d %s", e.Path, e.Place.Size, e.Place.Offset, e.What)
}

// Place says where a byte string is and what it must be. The zero Place is that of
// the empty one.
type Place struct {
	File   uint32 // number, from 1
	Offset uint32 // bytes
	Size   uint32 // bytes
	Sum    uint32 // CRC-32C
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of returns what a place says of the bytes themselves; they are nowhere yet.
func Of(b []byte) Place { return Place{Size: uint32(len(b)), Sum: crc32.Checksum(b, castagnoli)} }

// Is tells whether the place can be one of b.
func (p Place) Is(b []byte) bool {
	return p.Size == uint32(len(b)) && p.Sum == crc32.Checksum(b, castagnoli)
}

func (p Place) end() int64 { return int64(p.Offset) + int64(p.Size) }

// Name returns the name of a file.
func Name(n uint32) string { return fmt.Sprintf("%06d%s", n, Ext) }

// Number returns the number of a file; false if the name is not one of ours.
func Number(name string) (uint32, bool) {
	s, ok := strings.CutSuffix(name, Ext)
	n, err := strconv.ParseUint(s, 10, 32)
	if !ok || err != nil || n == 0 || Name(uint32(n)) != name {
		return 0, false
	}
	return uint32(n), true
}

// List returns the numbers and sizes of the files of a folder.
func List(dir string) (map[uint32]int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sizes := map[uint32]int64{}
	for _, e := range entries {
		n, ok := Number(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		sizes[n] = info.Size()
	}
	return sizes, nil
}

func damaged(dir string, p Place, what string) error {
	return &DamagedError{Path: filepath.Join(dir, Name(p.File)), Place: p, What: what}
}
