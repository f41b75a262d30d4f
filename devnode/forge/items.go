package forge

import (
	"fmt"

	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// untag steps over the tag of a set.
func untag(b []byte) int {
	if t, err := wire.Read(b, 0); err == nil && t.Major == wire.MajorTag && t.Arg == 258 {
		return t.Next
	}
	return 0
}

// list returns the items of the array at off, of either kind, and where it ends.
func list(b []byte, off int) (items [][]byte, end int, err error) {
	n, off, err := wire.ReadArray(b, off)
	if err != nil {
		return nil, 0, err
	}
	for n != 0 {
		if n < 0 && off < len(b) && b[off] == wire.Break {
			return items, off + 1, nil
		}
		next, err := wire.Skip(b, off)
		if err != nil {
			return nil, 0, err
		}
		items = append(items, b[off:next:next])
		off = next
		if n > 0 {
			n--
		}
	}
	return items, off, nil
}

// pairs goes over the map at off, of either kind.
func pairs(b []byte, off int, f func(key, value []byte) error) error {
	t, err := wire.Read(b, off)
	if err != nil {
		return err
	}
	if t.Major != wire.MajorMap {
		return fmt.Errorf("%w: offset %d: want a map, found major type %d", wire.ErrMalformed, off, t.Major)
	}
	off = t.Next
	for i := uint64(0); t.Indef || i < t.Arg; i++ {
		if t.Indef && off < len(b) && b[off] == wire.Break {
			return nil
		}
		key, err := wire.Skip(b, off)
		if err != nil {
			return err
		}
		value, err := wire.Skip(b, key)
		if err != nil {
			return err
		}
		if err := f(b[off:key:key], b[key:value:value]); err != nil {
			return err
		}
		off = value
	}
	return nil
}

// fields is pairs for a map whose keys are numbers, none of them twice.
func fields(b []byte, off int, f func(n uint64, value []byte) error) error {
	seen := map[uint64]bool{}
	return pairs(b, off, func(key, value []byte) error {
		n, _, err := wire.ReadUint(key, 0)
		switch {
		case err != nil:
			return err
		case seen[n]:
			return fmt.Errorf("field %d twice", n)
		}
		seen[n] = true
		return f(n, value)
	})
}
