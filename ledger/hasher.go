package ledger

import (
	"hash"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// hasher takes blake2b-256 digests of bytes that do not stand together. It
// keeps its state so that it allocates once.
type hasher struct {
	h   hash.Hash
	two [2]byte
	sum []byte
}

func (h *hasher) begin() {
	if h.h == nil {
		d, err := blake2b.New256(nil)
		if err != nil {
			panic(err) // only a key can be wrong, and there is none
		}
		h.h = d
		h.sum = make([]byte, 0, d.Size())
	}
	h.h.Reset()
}

func (h *hasher) end() (out chain.Hash) {
	h.sum = h.h.Sum(h.sum[:0])
	copy(out[:], h.sum)
	return out
}

// prefixed hashes two bytes and then data.
func (h *hasher) prefixed(a, b byte, data []byte) chain.Hash {
	h.begin()
	h.two = [2]byte{a, b}
	h.h.Write(h.two[:])
	h.h.Write(data)
	return h.end()
}

// leaf and branch are the two kinds of nodes of Byron's Merkle trees
// (cardano-ledger-byron, Cardano.Chain.Common.Merkle).
func (h *hasher) leaf(data []byte) chain.Hash {
	h.begin()
	h.two[0] = 0
	h.h.Write(h.two[:1])
	h.h.Write(data)
	return h.end()
}

func (h *hasher) branch(l, r *chain.Hash) chain.Hash {
	h.begin()
	h.two[0] = 1
	h.h.Write(h.two[:1])
	h.h.Write(l[:])
	h.h.Write(r[:])
	return h.end()
}

// merkle builds the root of a Byron Merkle tree leaf by leaf: a stack of the
// roots of full subtrees, each larger than the one above it. Joining from the
// top in the end splits at the largest power of two below the number of
// leaves, which is how Byron builds the tree.
type merkle struct {
	hasher
	n     uint64
	roots [64]chain.Hash
	depth int
}

func (m *merkle) reset() { m.n, m.depth = 0, 0 }

func (m *merkle) add(data []byte) {
	m.roots[m.depth] = m.leaf(data)
	m.depth++
	m.n++
	for full := m.n; full&1 == 0; full >>= 1 {
		m.join()
	}
}

func (m *merkle) join() {
	m.depth--
	m.roots[m.depth-1] = m.branch(&m.roots[m.depth-1], &m.roots[m.depth])
}

func (m *merkle) root() chain.Hash {
	if m.n == 0 {
		return blake2b.Sum256(nil)
	}
	for m.depth > 1 {
		m.join()
	}
	return m.roots[0]
}
