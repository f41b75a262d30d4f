package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by every error of this package: the bytes are not
// CBOR, or not of the shape that was asked for.
var ErrMalformed = errors.New("malformed CBOR")

// ErrShort is wrapped, beside ErrMalformed, when the bytes end inside an item.
var ErrShort = errors.New("the bytes end inside an item")

func short(off int) error {
	return fmt.Errorf("%w: offset %d: %w", ErrMalformed, off, ErrShort)
}

// Token is the head of an item.
type Token struct {
	Major byte
	Arg   uint64 // value, length, number of items, or tag
	Indef bool   // an indefinite string, array or map, or a break (of MajorSimple)
	Next  int    // offset behind the head
}

// IsBreak tells whether the token ends an indefinite item.
func (t Token) IsBreak() bool { return t.Major == MajorSimple && t.Indef }

// Read reads the head at off.
func Read(b []byte, off int) (Token, error) {
	if off < 0 || off >= len(b) {
		return Token{}, short(off)
	}
	t := Token{Major: b[off] >> 5, Next: off + 1}
	switch low := b[off] & 31; {
	case low < 24:
		t.Arg = uint64(low)
	case low <= 27:
		n := 1 << (low - 24)
		if len(b)-t.Next < n {
			return Token{}, short(off)
		}
		var buf [8]byte
		copy(buf[8-n:], b[t.Next:t.Next+n])
		t.Arg = binary.BigEndian.Uint64(buf[:])
		t.Next += n
	case low == 31:
		if t.Major == MajorUint || t.Major == MajorNegInt || t.Major == MajorTag {
			return Token{}, fmt.Errorf("%w: offset %d: reserved head %#02x", ErrMalformed, off, b[off])
		}
		t.Indef = true
	default:
		return Token{}, fmt.Errorf("%w: offset %d: reserved head %#02x", ErrMalformed, off, b[off])
	}
	return t, nil
}

// indefinite marks an open indefinite item on Skip's stack.
const indefinite = ^uint64(0)

// Skip returns the offset behind the item at off. It does not recurse: nesting
// is limited by the length of b alone.
func Skip(b []byte, off int) (int, error) {
	var small [64]uint64
	open := small[:0] // items still to come in each open container
	left := uint64(1)
	for {
		for left == 0 {
			if len(open) == 0 {
				return off, nil
			}
			left, open = open[len(open)-1], open[:len(open)-1]
		}
		t, err := Read(b, off)
		if err != nil {
			return 0, err
		}
		if t.IsBreak() {
			if left != indefinite {
				return 0, fmt.Errorf("%w: offset %d: break outside an indefinite item", ErrMalformed, off)
			}
			off, left = t.Next, 0
			continue
		}
		if left != indefinite {
			left--
		}
		off = t.Next
		switch {
		case t.Indef:
			open, left = append(open, left), indefinite
		case t.Major == MajorBytes || t.Major == MajorText:
			if t.Arg > uint64(len(b)-off) {
				return 0, short(off)
			}
			off += int(t.Arg)
		case t.Major == MajorArray, t.Major == MajorMap, t.Major == MajorTag:
			n := t.Arg
			switch t.Major {
			case MajorTag:
				n = 1
			case MajorMap:
				n *= 2
			}
			if t.Arg > uint64(len(b)) && t.Major != MajorTag {
				return 0, short(off)
			}
			open, left = append(open, left), n
		}
	}
}

// ReadUint reads an unsigned integer at off.
func ReadUint(b []byte, off int) (n uint64, next int, err error) {
	t, err := Read(b, off)
	if err != nil {
		return 0, 0, err
	}
	if t.Major != MajorUint {
		return 0, 0, fmt.Errorf("%w: offset %d: want an unsigned integer, found major type %d", ErrMalformed, off, t.Major)
	}
	return t.Arg, t.Next, nil
}

// ReadBytes reads a definite byte string at off; the result aliases b.
func ReadBytes(b []byte, off int) (s []byte, next int, err error) {
	t, err := Read(b, off)
	if err != nil {
		return nil, 0, err
	}
	if t.Major != MajorBytes || t.Indef {
		return nil, 0, fmt.Errorf("%w: offset %d: want a byte string, found major type %d", ErrMalformed, off, t.Major)
	}
	if t.Arg > uint64(len(b)-t.Next) {
		return nil, 0, short(off)
	}
	next = t.Next + int(t.Arg)
	return b[t.Next:next], next, nil
}

// ReadArray reads the head of an array at off; n is -1 for an indefinite one.
func ReadArray(b []byte, off int) (n, next int, err error) {
	t, err := Read(b, off)
	if err != nil {
		return 0, 0, err
	}
	if t.Major != MajorArray {
		return 0, 0, fmt.Errorf("%w: offset %d: want an array, found major type %d", ErrMalformed, off, t.Major)
	}
	if t.Indef {
		return -1, t.Next, nil
	}
	if t.Arg > uint64(len(b)) {
		return 0, 0, short(off)
	}
	return int(t.Arg), t.Next, nil
}
