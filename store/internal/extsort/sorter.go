// Package extsort sorts more keys than fit into memory: runs of them are sorted
// and written to a file, and merged when they are read.
package extsort

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
)

// KeyMax is the longest key, in bytes.
const KeyMax = 1<<16 - 1

// Sorter takes keys and gives them back in ascending order. One goroutine uses it.
// It holds about the memory it was given, taken as it is needed.
type Sorter struct {
	dir    string
	memory int

	chunks [][]byte // the run being filled, end to end
	at     int      // the chunk in use
	size   int      // of the run, in bytes
	order  []place
	total  int64

	file *os.File // the full runs; nil while there are none
	runs []int64  // where each begins
	end  int64
}

// place is where a key lies in a run. Its first bytes decide nearly every
// comparison without going there.
type place struct {
	first uint64
	at    uint32 // the chunk's number, and the place in it
	n     uint16
}

const (
	placeSize = 16
	chunkBits = 18
	chunkSize = 1 << chunkBits // longer than any key
)

// New returns a sorter that keeps up to memory bytes, at most 2 GB, and what is
// more in a file without a name in dir: it goes with the process, however that
// ends.
func New(dir string, memory int) *Sorter {
	return &Sorter{dir: dir, memory: min(max(memory, 1<<12), 1<<31)}
}

// Len returns how many keys were added.
func (s *Sorter) Len() int64 { return s.total }

// Fits tells whether a key of n bytes goes into memory without a write to the file.
func (s *Sorter) Fits(n int) bool {
	return s.size+n+(len(s.order)+1)*placeSize <= s.memory || len(s.order) == 0
}

// Add takes a copy of a key.
func (s *Sorter) Add(key []byte) error {
	if len(key) > KeyMax {
		return fmt.Errorf("a key of %d bytes cannot be sorted: at most %d", len(key), KeyMax)
	}
	if !s.Fits(len(key)) {
		if err := s.spill(); err != nil {
			return fmt.Errorf("write a sorted run: %w", err)
		}
	}
	p := place{at: s.keep(key), n: uint16(len(key))}
	var first [8]byte
	copy(first[:], key)
	p.first = binary.BigEndian.Uint64(first[:])
	s.order = append(s.order, p)
	s.total++
	return nil
}

func (s *Sorter) keep(key []byte) (at uint32) {
	if len(s.chunks) > 0 && len(s.chunks[s.at])+len(key) > chunkSize {
		s.at++
	}
	if s.at == len(s.chunks) {
		s.chunks = append(s.chunks, make([]byte, 0, chunkSize))
	}
	c := s.chunks[s.at]
	s.chunks[s.at] = append(c, key...)
	s.size += len(key)
	return uint32(s.at)<<chunkBits | uint32(len(c))
}

func (s *Sorter) key(p place) []byte {
	c := s.chunks[p.at>>chunkBits]
	i := int(p.at & (chunkSize - 1))
	return c[i : i+int(p.n)]
}

// empty makes room for the next run.
func (s *Sorter) empty() {
	for i := range s.chunks {
		s.chunks[i] = s.chunks[i][:0]
	}
	s.at, s.size, s.order = 0, 0, s.order[:0]
}

func (s *Sorter) sort() {
	slices.SortFunc(s.order, func(a, b place) int {
		if c := cmp.Compare(a.first, b.first); c != 0 {
			return c
		}
		return bytes.Compare(s.key(a), s.key(b))
	})
}

// spill writes the run in memory and empties it.
func (s *Sorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = nameless(s.dir); err != nil {
			return err
		}
	}
	s.sort()
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, s.end), 1<<16)
	n := s.end
	var length [2]byte
	for _, p := range s.order {
		binary.LittleEndian.PutUint16(length[:], p.n)
		_, _ = w.Write(length[:]) // its error is Flush's
		_, _ = w.Write(s.key(p))
		n += int64(len(length)) + int64(p.n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	s.runs = append(s.runs, s.end)
	s.end = n
	s.empty()
	return nil
}

func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "sorting-*.tmp")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // the first error counts
		return nil, err
	}
	return f, nil
}

// Close gives up the memory and the file. It may be called at any time, and twice.
func (s *Sorter) Close() error {
	s.chunks, s.order = nil, nil
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
