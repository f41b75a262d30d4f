package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// A pack holds consecutive links: the parent of the first, then 41 bytes each:
// slot, hash, and era with the boundary flag in its top bit. Heights follow from
// the key and the flags, parents from the hash before, so that one link of a
// pack is read without decoding the others.

const (
	packEntry = 8 + 32 + 1
	packMax   = 128 // links in a pack: 5 kB
)

func appendPackHead(b []byte, first chain.Link) []byte { return append(b, first.Parent[:]...) }

func appendPackLink(b []byte, l chain.Link) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(l.Point.Slot))
	b = append(b, l.Point.Hash[:]...)
	era := byte(l.Era) &^ 0x80
	if l.Boundary {
		era |= 0x80
	}
	return append(b, era)
}

// packs adds packs of links in the order of their chain. A pack ends where the
// next link does not follow: records left behind need not be neighbours.
func (o *opset) packs(links []chain.Link) {
	for len(links) > 0 {
		n := 1
		for n < min(len(links), packMax) && follows(links[n-1], links[n]) {
			n++
		}
		v := appendPackHead(o.arena.take(32+n*packEntry), links[0])
		for _, l := range links[:n] {
			v = appendPackLink(v, l)
		}
		o.set(appendPositionKey(o.arena.take(positionKeySize), keyPoints, links[0].Position()), v)
		links = links[n:]
	}
}

// pack is a decoded view of a packed run of links.
type pack struct {
	first chain.Position
	value []byte
}

func decodePack(key, value []byte) (pack, error) {
	first, err := positionFromKey(key)
	if err != nil {
		return pack{}, err
	}
	if len(key) != positionKeySize || len(value) < 32+packEntry || (len(value)-32)%packEntry != 0 {
		return pack{}, fmt.Errorf("%w: the points from height %d do not decode", ErrDamaged, first.Height)
	}
	if (value[32+packEntry-1]&0x80 != 0) != first.Boundary {
		return pack{}, fmt.Errorf("%w: the points from height %d contradict their key", ErrDamaged, first.Height)
	}
	return pack{first, value}, nil
}

func (p pack) len() int { return (len(p.value) - 32) / packEntry }

func (p pack) flag(i int) byte { return p.value[32+(i+1)*packEntry-1] }

// position walks the flags: every main block is one higher than what is below.
func (p pack) position(i int) chain.Position {
	at := p.first
	for j := 1; j <= i; j++ {
		at.Boundary = p.flag(j)&0x80 != 0
		if !at.Boundary {
			at.Height++
		}
	}
	return at
}

// below returns the newest link that is not above a position, the first if all are.
func (p pack) below(at chain.Position) int {
	pos := p.first
	for i := 1; i < p.len(); i++ {
		pos.Boundary = p.flag(i)&0x80 != 0
		if !pos.Boundary {
			pos.Height++
		}
		if pos.Compare(at) > 0 {
			return i - 1
		}
	}
	return p.len() - 1
}

func (p pack) slot(i int) chain.Slot {
	return chain.Slot(binary.BigEndian.Uint64(p.value[32+i*packEntry:]))
}

func (p pack) link(i int) chain.Link {
	at := p.position(i)
	l := chain.Link{Height: at.Height, Boundary: at.Boundary, Era: chain.Era(p.flag(i) &^ 0x80)}
	l.Point.Slot = p.slot(i)
	e := p.value[32+i*packEntry:]
	copy(l.Point.Hash[:], e[8:40])
	if i == 0 {
		copy(l.Parent[:], p.value[:32])
	} else {
		copy(l.Parent[:], p.value[32+(i-1)*packEntry+8:])
	}
	return l
}
