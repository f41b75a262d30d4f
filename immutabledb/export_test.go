package immutabledb

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// Fill reads one slab on the caller's goroutine, in the place of Next, and
// returns a copy of its messages.
func (c *Conn) Fill() ([]chain.Message, error) {
	s := c.slab()
	err := c.fill(s)
	list := slices.Clone(s.list)
	for i := range list {
		list[i].Raw = slices.Clone(list[i].Raw)
	}
	s.release()
	return list, err
}

// ReadHeader is readHeader.
func ReadHeader(raw []byte, offset, size int) (hash, parent chain.Hash, err error) {
	var scratch []byte
	h, err := readHeader(raw, offset, size, &scratch)
	return h.hash, h.parent, err
}

// SlabSize is slabSize.
const SlabSize = slabSize
