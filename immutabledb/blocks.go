package immutabledb

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/ourotail/ourotail/chain"
)

// End returns the newest block that is all there; ok is false if the folder
// holds none. Errors are *Error.
func (f *Folder) End() (l chain.Link, ok bool, err error) {
	if err := f.list(); err != nil {
		return l, false, err
	}
	for n := f.last; n >= f.first; n-- {
		x, err := f.load(n)
		if err != nil {
			return l, false, err
		}
		for i := x.n - 1; i >= 0; i-- {
			raw, err := f.block(x, i)
			if err == nil {
				l, err = f.opts.Link(raw)
			}
			if err == nil && l.Point != f.point(x, i) {
				err = f.damaged(n, "chunk", int64(x.entries[i].Offset), "the block there is %v, the index has %v", l.Point, f.point(x, i))
			}
			switch {
			case err == nil:
				return l, true, nil
			case errors.Is(err, ErrRead):
				return l, false, err
			case !x.sealed && i == x.n-1: // the node is writing it, or never came to its end
				continue
			}
			var own *Error
			if !errors.As(err, &own) {
				err = f.damaged(n, "chunk", int64(x.entries[i].Offset), "%w", err)
			}
			return l, false, err
		}
	}
	return l, false, nil
}

// block reads and checks one block.
func (f *Folder) block(x *index, i int) ([]byte, error) {
	file, err := os.Open(f.path(x.chunk, "chunk"))
	if err != nil {
		return nil, f.unreadable(name(x.chunk, "chunk"), err)
	}
	defer file.Close()
	from, to := int64(x.entries[i].Offset), x.end(i)
	raw := make([]byte, to-from)
	if n, err := file.ReadAt(raw, from); n < len(raw) {
		return nil, f.short(x, from+int64(n), err)
	}
	_, err = f.check(x, i, raw)
	return raw, err
}

// short is the error of a read that did not bring what the index promised.
func (f *Folder) short(x *index, at int64, err error) error {
	if errors.Is(err, io.EOF) {
		return f.damaged(x.chunk, "chunk", at, "it ends inside a block")
	}
	return f.unreadable(name(x.chunk, "chunk"), err)
}

// check compares a block with its entry and returns its header.
func (f *Folder) check(x *index, i int, raw []byte) (header, error) {
	e := &x.entries[i]
	if sum := crc32.ChecksumIEEE(raw); sum != e.CRC {
		return header{}, f.damaged(x.chunk, "chunk", int64(e.Offset), "block %v has the checksum %08x, the index says %08x", f.point(x, i), sum, e.CRC)
	}
	h, err := readHeader(raw, int(e.HeaderOffset), int(e.HeaderSize), &f.scratch)
	if err == nil && h.hash != e.Hash {
		err = fmt.Errorf("its header hash is %v", h.hash)
	}
	if err == nil && !h.byron && uint64(h.slot) != e.SlotOrEpoch {
		err = fmt.Errorf("its header says slot %d", h.slot)
	}
	if err != nil {
		return h, f.damaged(x.chunk, "chunk", int64(e.Offset), "block %v: %w", f.point(x, i), err)
	}
	return h, nil
}

// Points returns points of the folder's chain, newest first: the end, then the
// first block of chunks further and further back, down to the first of all. A node
// that has the chain knows one of them, however far it has come.
func (f *Folder) Points(end chain.Link) ([]chain.Point, error) {
	points := []chain.Point{end.Point}
	for back := 0; ; back = 2*back + 1 {
		n := max(f.last-back, f.first)
		for ; n <= f.last; n++ { // a stretch without blocks has an empty chunk
			x, err := f.load(n)
			if err != nil {
				return nil, err
			}
			if x.n > 0 {
				if p := f.point(x, 0); p != points[len(points)-1] {
					points = append(points, p)
				}
				break
			}
		}
		if f.last-back <= f.first {
			return points, nil
		}
	}
}

// NotOurs is the error for files of another chain than the one that is followed.
func (f *Folder) NotOurs(cause error) error {
	return &Error{Dir: f.dir, Offset: -1, Kind: ErrNotOurs, Cause: cause, Hint: hintNotOurs}
}
