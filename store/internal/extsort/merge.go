package extsort

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Buffers of the runs while they are merged, in bytes each.
const (
	readMost  = 1 << 16
	readLeast = 1 << 12
)

// Sorted yields all keys in ascending order, each once, however often it was
// added. A key is valid until the next. It may be called once, and nothing may be
// added after it. An error is the last that it yields.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		m := merger{}
		if len(s.runs) == 0 {
			s.sort()
			m.runs = []*run{{left: s.order, s: s}}
		} else if err := s.open(&m); err != nil {
			yield(nil, err)
			return
		}
		if err := m.begin(); err != nil {
			yield(nil, err)
			return
		}
		var last []byte
		for any := false; len(m.runs) > 0; {
			if r := m.runs[0]; !any || !bytes.Equal(r.key, last) {
				last, any = append(last[:0], r.key...), true
				if !yield(last, nil) {
					return
				}
			}
			if err := m.next(); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// open makes a reader of each run; the one in memory is written too.
func (s *Sorter) open(m *merger) error {
	if len(s.order) > 0 {
		if err := s.spill(); err != nil {
			return fmt.Errorf("write a sorted run: %w", err)
		}
	}
	s.chunks, s.order = nil, nil
	size := min(max(s.memory/len(s.runs), readLeast), readMost)
	for i, at := range s.runs {
		end := s.end
		if i+1 < len(s.runs) {
			end = s.runs[i+1]
		}
		m.runs = append(m.runs, &run{file: bufio.NewReaderSize(io.NewSectionReader(s.file, at, end-at), size), rest: end - at})
	}
	return nil
}

// run is one sorted run and its present key.
type run struct {
	key  []byte
	s    *Sorter
	left []place // of a run in memory
	file *bufio.Reader
	rest int64 // bytes of it that are still to come
}

// next takes the next key; false at the end.
func (r *run) next() (bool, error) {
	if r.file == nil {
		if len(r.left) == 0 {
			return false, nil
		}
		r.key, r.left = r.s.key(r.left[0]), r.left[1:]
		return true, nil
	}
	if r.rest == 0 {
		return false, nil
	}
	var length [2]byte
	if err := r.read(length[:]); err != nil {
		return false, err
	}
	n := int(binary.LittleEndian.Uint16(length[:]))
	if cap(r.key) < n {
		r.key = make([]byte, n)
	}
	r.key = r.key[:n]
	return true, r.read(r.key)
}

func (r *run) read(b []byte) error {
	n, err := io.ReadFull(r.file, b)
	r.rest -= int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // there are bytes to come
	}
	if err != nil {
		err = fmt.Errorf("read a sorted run: %w", err)
	}
	return err
}

// merger is a heap of runs by their present keys.
type merger struct{ runs []*run }

func (m *merger) begin() error {
	all := m.runs
	m.runs = m.runs[:0]
	for _, r := range all {
		ok, err := r.next()
		if err != nil {
			return err
		}
		if ok {
			m.runs = append(m.runs, r)
		}
	}
	for i := len(m.runs)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return nil
}

// next moves the first run on.
func (m *merger) next() error {
	ok, err := m.runs[0].next()
	if err != nil {
		return err
	}
	if !ok {
		last := len(m.runs) - 1
		m.runs[0] = m.runs[last]
		m.runs = m.runs[:last]
	}
	m.down(0)
	return nil
}

func (m *merger) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.runs); c++ {
			if bytes.Compare(m.runs[c].key, m.runs[least].key) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		m.runs[i], m.runs[least] = m.runs[least], m.runs[i]
		i = least
	}
}
