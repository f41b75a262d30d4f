package ledger

import (
	"golang.org/x/crypto/blake2b"
)

// CBOR booleans.
const (
	falseByte = 0xf4
	trueByte  = 0xf5
)

// dijkstra reads a block of the era that is still being made, in each form its
// CDDL has had (cardano-ledger, eras/dijkstra/impl/cddl): [header, body] where
// body is [failed indexes or null, transactions, Leios certificate or null,
// Peras certificate or null] or, later, [transactions, Leios certificate or
// null, Peras certificate or null]; and, at first, Conway's five elements.
func (b *Block) dijkstra() {
	c := &b.c
	at := c.i
	n := c.array()
	elements := n
	if n == indefinite {
		elements = c.count()
	}
	switch elements {
	case 5:
		b.segments(n, 4)
		return
	case 2:
	default:
		c.fail(at, ErrUnexpected)
		return
	}
	want := b.header()
	body := Span{Start: c.i}
	b.wholeBody()
	body.End = c.i
	c.end(n)
	if c.err != nil || b.Trusted {
		return
	}
	if uint64(body.Len()) != want.bodySize {
		c.fail(body.Start, ErrBodySize)
	} else if blake2b.Sum256(b.Bytes(body)) != want.bodyHash {
		c.fail(body.Start, ErrBodyHash)
	}
}

// count returns the number of items up to the break of an indefinite array
// whose head has been read.
func (c *cursor) count() (count int) {
	probe := cursor{b: c.b, i: c.i}
	for n := indefinite; probe.more(&n); count++ {
		probe.skip()
	}
	if probe.err != nil {
		c.fail(probe.at, probe.err)
	}
	return count
}

func (b *Block) wholeBody() {
	c := &b.c
	at := c.i
	n := c.array()
	elements := n
	if n == indefinite {
		elements = c.count()
	}
	if c.err == nil && elements != 3 && elements != 4 {
		c.fail(at, ErrUnexpected)
		return
	}
	failed := Span{}
	if elements == 4 {
		failed = c.optional()
	}
	for txs := c.array(); c.more(&txs); {
		b.wholeTx()
	}
	b.leave()
	c.skip() // Leios certificate
	c.skip() // Peras certificate
	c.end(n)
	if !failed.Present() || c.err != nil {
		return
	}
	end := c.i
	c.i = failed.Start
	for list := c.set(); c.more(&list); {
		if i := b.index(); c.err == nil {
			b.invalidate(i)
		}
	}
	if c.err == nil {
		c.i = end
	}
}

// wholeTx reads [body, witness set, auxiliary data or null], or the same with
// a flag that tells whether its scripts succeeded: at the end (in a block), or
// before the auxiliary data (elsewhere).
func (b *Block) wholeTx() {
	c := &b.c
	at := c.i
	n := c.array()
	if c.err == nil && n != indefinite && n != 3 && n != 4 {
		c.fail(at, ErrUnexpected)
		return
	}
	b.body(false)
	witnesses := c.item()
	valid := true
	flag := func() bool {
		at := c.i
		switch c.peek() {
		case trueByte:
		case falseByte:
			valid = false
		default:
			return false
		}
		c.i = at + 1
		return true
	}
	early := flag()
	aux := c.optional()
	if n == 4 && !early || n == indefinite && c.peek() != breakByte {
		if !flag() {
			c.fail(c.i, ErrUnexpected)
		}
	}
	c.end(n)
	if c.err != nil {
		return
	}
	t := &b.Txs[len(b.Txs)-1]
	t.Witnesses, t.Aux = witnesses, aux
	if !valid {
		b.invalidate(len(b.Txs) - 1)
	}
}
