package forge

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// rnd is the source of every choice. Each block has its own, made from the
// seed, the parent's hash and how many blocks were put on that parent before.
// A block on a branch that was never left depends on nothing else; one on a new
// branch also on the transactions that the old one had.
type rnd struct{ *rand.Rand }

func newRnd(seed uint64, parent chain.Hash, nth uint64) *rnd {
	return &rnd{rand.New(rand.NewPCG(seed^nth*0x9e3779b97f4a7c15, binary.BigEndian.Uint64(parent[:])))}
}

// chance is true with the given probability.
func (g *rnd) chance(p float64) bool { return g.Float64() < p }

// bytes returns n random bytes.
func (g *rnd) bytes(n int) []byte {
	b := make([]byte, n)
	g.fill(b)
	return b
}

func (g *rnd) fill(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, g.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(g.Uint64())
	}
}

// random appends n random bytes as a byte string's content.
func (g *rnd) random(b []byte, n int) []byte {
	off := len(b)
	b = slices.Grow(b, n)[:off+n]
	g.fill(b[off:])
	return b
}

func (g *rnd) hash() (h chain.Hash) {
	g.fill(h[:])
	return h
}

func (g *rnd) hash28() (h chain.Hash28) {
	g.fill(h[:])
	return h
}

// between returns a number from lo to hi, both included.
func (g *rnd) between(lo, hi int) int { return lo + g.IntN(hi-lo+1) }
