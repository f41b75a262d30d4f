package ledger

import (
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// segregated reads a block of Shelley to Conway: [header, bodies, witness
// sets, auxiliary data by index], and from Alonzo on the indexes of the
// transactions whose scripts failed.
func (b *Block) segregated() {
	c := &b.c
	segments := 3
	if b.Era >= chain.Alonzo {
		segments = 4
	}
	n := c.tuple(1 + segments)
	b.segments(n, segments)
}

// segments reads header and segments of a block whose array head, of n
// elements, has been read.
func (b *Block) segments(n, segments int) {
	c := &b.c
	want := b.header()
	var seg [4]Span

	seg[0].Start = c.i
	for bodies := c.array(); c.more(&bodies); {
		b.body(false)
	}
	seg[0].End = c.i

	b.leave()
	seg[1].Start = c.i
	witnesses := 0
	for sets := c.array(); c.more(&sets); witnesses++ {
		s := c.item()
		if c.err == nil && witnesses < len(b.tops) {
			b.Txs[b.tops[witnesses]].Witnesses = s
		}
	}
	seg[1].End = c.i
	if c.err == nil && witnesses != len(b.tops) {
		c.fail(seg[1].Start, ErrCount)
	}

	seg[2].Start = c.i
	for m := c.mapping(); c.more(&m); {
		i := b.index()
		s := c.item()
		if c.err == nil {
			b.Txs[i].Aux = s
		}
	}
	seg[2].End = c.i

	if segments == 4 {
		seg[3].Start = c.i
		for list := c.array(); c.more(&list); {
			if i := b.index(); c.err == nil {
				b.invalidate(i)
			}
		}
		seg[3].End = c.i
	}
	c.end(n)
	if c.err != nil || b.Trusted {
		return
	}

	size := 0
	for _, s := range seg {
		size += s.Len()
	}
	if uint64(size) != want.bodySize {
		c.fail(seg[0].Start, ErrBodySize)
		return
	}
	if segmentsHash(c.b, seg[:segments]) != want.bodyHash {
		c.fail(seg[0].Start, ErrBodyHash)
	}
}

// index reads the index of a transaction and returns where in Txs it stands.
func (b *Block) index() int {
	at := b.c.i
	i := b.c.uint()
	if b.c.err == nil && i >= uint64(len(b.tops)) {
		b.c.fail(at, ErrIndex)
	}
	if b.c.err != nil {
		return 0
	}
	return b.tops[i]
}

// invalidate marks the transaction at i in Txs, and the sub-transactions that
// stand before it.
func (b *Block) invalidate(i int) {
	b.Txs[i].Valid = false
	for i--; i >= 0 && b.Txs[i].Sub; i-- {
		b.Txs[i].Valid = false
	}
}

// Hashes of empty segments, which most have, and of a body of only those.
var (
	emptyArray  = blake2b.Sum256([]byte{0x80})
	emptyMap    = blake2b.Sum256([]byte{0xa0})
	emptyBody   = blake2b.Sum256(joined(emptyArray, emptyArray, emptyMap))
	emptyAlonzo = blake2b.Sum256(joined(emptyArray, emptyArray, emptyMap, emptyArray))
)

func joined(hashes ...[32]byte) (out []byte) {
	for _, h := range hashes {
		out = append(out, h[:]...)
	}
	return out
}

// segmentsHash returns the body hash of Shelley to Conway: the hash of the
// segments' hashes (ledger: bbHash, hashAlonzoTxSeq).
func segmentsHash(raw []byte, seg []Span) chain.Hash {
	switch string(raw[seg[0].Start:seg[len(seg)-1].End]) {
	case "\x80\x80\xa0":
		return emptyBody
	case "\x80\x80\xa0\x80":
		return emptyAlonzo
	}
	var all [4 * 32]byte
	for i, s := range seg {
		h := emptyArray
		if s.Len() != 1 {
			h = blake2b.Sum256(raw[s.Start:s.End])
		} else if raw[s.Start] == 0xa0 {
			h = emptyMap
		}
		copy(all[32*i:], h[:])
	}
	return blake2b.Sum256(all[:32*len(seg)])
}

// promise is what a header says of its body.
type promise struct {
	bodySize uint64
	bodyHash chain.Hash
}

// header reads [header body, signature]. A header body is flat: up to Alonzo
// 15 fields with two VRF certificates, from Babbage on 10 with one; Dijkstra,
// and test networks on the way there, append to it.
func (b *Block) header() (want promise) {
	c := &b.c
	start := c.i
	pair := c.tuple(2)
	at := c.i
	n := c.array()
	known := 8
	if b.Era < chain.Babbage {
		known = 9
	}
	if c.err == nil && n != indefinite && n < known {
		c.fail(at, ErrUnexpected)
	}
	height := b.height()
	slot := c.uint()
	var parent chain.Hash
	if c.peek() == nullByte {
		c.i++
	} else {
		copy(parent[:], c.fixed(len(parent)))
	}
	c.skip() // issuer
	c.skip() // VRF key
	c.skip() // VRF certificate
	if b.Era < chain.Babbage {
		c.skip() // the other one
	}
	want.bodySize = c.uint()
	copy(want.bodyHash[:], c.fixed(len(want.bodyHash)))
	if n != indefinite {
		n -= known
	}
	for c.more(&n) {
		c.skip()
	}
	c.skip() // signature
	c.end(pair)
	if c.err != nil {
		return want
	}
	b.Header = Span{start, c.i}
	b.Point = chain.Point{Slot: chain.Slot(slot), Hash: blake2b.Sum256(b.Bytes(b.Header))}
	b.Parent = parent
	b.Height = height
	return want
}
