package ledger

import (
	"bytes"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// A small writer of CBOR for blocks made by hand. A value is a piece of CBOR.

func num(n uint64) []byte { return appendHead(nil, majorUint, n) }

func neg(n uint64) []byte { return appendHead(nil, majorNegint, n-1) } // -n

func str(b []byte) []byte { return append(appendHead(nil, majorBytes, uint64(len(b))), b...) }

func arr(items ...[]byte) []byte {
	return append(appendHead(nil, majorArray, uint64(len(items))), bytes.Join(items, nil)...)
}

// obj takes keys and values in turn.
func obj(items ...[]byte) []byte {
	return append(appendHead(nil, majorMap, uint64(len(items)/2)), bytes.Join(items, nil)...)
}

func tagged(tag uint64, item []byte) []byte { return append(appendHead(nil, majorTag, tag), item...) }

func iarr(items ...[]byte) []byte {
	return append(append([]byte{0x9f}, bytes.Join(items, nil)...), breakByte)
}

func iobj(items ...[]byte) []byte {
	return append(append([]byte{0xbf}, bytes.Join(items, nil)...), breakByte)
}

var null = []byte{nullByte}

// fill is a byte string of n equal bytes.
func fill(n int, b byte) []byte { return str(bytes.Repeat([]byte{b}, n)) }

// in is a reference to an output of a transaction whose id is 32 times b.
func in(b byte, index uint64) []byte { return arr(fill(32, b), num(index)) }

func ref(b byte, index uint32) chain.TxIn {
	r := chain.TxIn{Index: index}
	for i := range r.ID {
		r.ID[i] = b
	}
	return r
}

// enterprise is the byte string of an address.
func enterprise(b byte) []byte { return str(append([]byte{0x60}, bytes.Repeat([]byte{b}, 28)...)) }

// pay is an output in the form that every era from Shelley on takes.
func pay(b byte, lovelace uint64) []byte { return arr(enterprise(b), num(lovelace)) }

// body is a transaction body with inputs, outputs and fee; more holds further
// keys and values.
func body(inputs, outputs []byte, more ...[]byte) []byte {
	return obj(append([][]byte{num(0), inputs, num(1), outputs, num(2), num(170000)}, more...)...)
}

// made is a block under construction: the segments as they stand.
type made struct {
	era     chain.Era
	bodies  []byte // array
	sets    []byte // array of witness sets; by default as many empty ones as there are bodies
	aux     []byte // map; empty by default
	failed  []byte // array; empty by default
	extra   [][]byte
	bodyLen int // corrected by this
	hash    byte
	parent  []byte // null by default
}

// raw writes the block in storage form, with a header that fits.
func (m made) raw() []byte {
	if m.aux == nil {
		m.aux = obj()
	}
	if m.failed == nil {
		m.failed = arr()
	}
	if m.sets == nil {
		c := cursor{b: m.bodies}
		n := c.array()
		var sets [][]byte
		for c.more(&n) {
			c.skip()
			sets = append(sets, obj())
		}
		m.sets = arr(sets...)
	}
	segments := [][]byte{m.bodies, m.sets, m.aux}
	if m.era >= chain.Alonzo {
		segments = append(segments, m.failed)
	}
	size := 0
	var hashes []byte
	for _, s := range segments {
		size += len(s)
		h := blake2b.Sum256(s)
		hashes = append(hashes, h[:]...)
	}
	hash := blake2b.Sum256(hashes)
	return Wrap(m.era, false, arr(append([][]byte{m.header(size, hash)}, segments...)...))
}

// whole writes a Dijkstra block whose body is one item.
func (m made) whole(body []byte) []byte {
	return Wrap(chain.Dijkstra, false, arr(m.header(len(body), blake2b.Sum256(body)), body))
}

const (
	madeHeight = 77
	madeSlot   = 4242
)

func (m made) header(size int, hash [32]byte) []byte {
	hash[0] ^= m.hash
	if m.parent == nil {
		m.parent = null
	}
	vrf := arr(fill(64, 1), fill(80, 2))
	fields := [][]byte{num(madeHeight), num(madeSlot), m.parent, fill(32, 3), fill(32, 4), vrf}
	cert := [][]byte{fill(32, 5), num(1), num(2), fill(64, 6)}
	if m.era < chain.Babbage {
		fields = append(fields, vrf)
	}
	fields = append(fields, num(uint64(size+m.bodyLen)), str(hash[:]))
	if m.era < chain.Babbage {
		fields = append(append(fields, cert...), num(6), num(0))
	} else {
		fields = append(fields, arr(cert...), arr(num(9), num(1)))
	}
	fields = append(fields, m.extra...)
	return arr(arr(fields...), fill(448, 7))
}

// oneTx is a block of one era with one transaction.
func oneTx(era chain.Era, body []byte) []byte { return made{era: era, bodies: arr(body)}.raw() }

// deep is n arrays around a number; indefinite ones if ind.
func deep(n int, ind bool) []byte {
	if ind {
		return append(append(bytes.Repeat([]byte{0x9f}, n), 0), bytes.Repeat([]byte{breakByte}, n)...)
	}
	return append(bytes.Repeat([]byte{0x81}, n), 0)
}
