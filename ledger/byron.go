package ledger

import (
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// Byron blocks (cardano-ledger, eras/byron/cddl-spec). A header's hash is
// taken of [0, header] for a boundary block and [1, header] for a main block,
// two bytes that are not part of the block.

// boundary reads an epoch-boundary block: [header, body, extra], with header
// [magic, parent, body proof, [epoch, [difficulty]], extra].
func (b *Block) boundary() {
	c := &b.c
	n := c.tuple(3)
	start := c.i
	h := c.tuple(5)
	c.skip() // magic
	parent := c.fixed(len(b.Parent))
	proof := c.fixed(len(b.Parent))
	k := c.tuple(2)
	epochAt := c.i
	epoch := c.uint()
	height := b.difficulty()
	c.end(k)
	c.skip() // extra
	c.end(h)
	if c.err != nil {
		return
	}
	b.byronLink(Span{start, c.i}, 0, parent, height)
	b.byronSlot(epochAt, epoch, 0)
	body := c.item()
	if c.err == nil && !b.Trusted && blake2b.Sum256(b.Bytes(body)) != [32]byte(proof) {
		c.fail(body.Start, ErrBodyHash)
	}
	c.skip() // extra
	c.end(n)
}

// byron reads a main block: [header, body, extra], with header [magic, parent,
// body proof, [[epoch, slot], issuer, [difficulty], signature], extra] and body
// [transactions, shared seed payload, delegation, updates].
func (b *Block) byron() {
	c := &b.c
	n := c.tuple(3)
	start := c.i
	h := c.tuple(5)
	c.skip() // magic
	parent := c.fixed(len(b.Parent))

	p := c.tuple(4)
	t := c.tuple(3)
	count := c.uint()
	rootAt := c.i
	root := c.fixed(len(chain.Hash{}))
	c.skip() // hash of the witnesses
	c.end(t)
	c.skip() // shared seeds
	c.skip() // delegation
	c.skip() // updates
	c.end(p)

	k := c.tuple(4)
	s := c.tuple(2)
	epochAt := c.i
	epoch, slot := c.uint(), c.uint()
	c.end(s)
	c.skip() // issuer
	height := b.difficulty()
	c.skip() // signature
	c.end(k)
	c.skip() // extra
	c.end(h)
	if c.err != nil {
		return
	}
	b.byronLink(Span{start, c.i}, 1, parent, height)
	b.byronSlot(epochAt, epoch, slot)

	body := c.tuple(4)
	txsAt := c.i
	tree := &b.tree
	tree.reset()
	for txs := c.array(); c.more(&txs); {
		b.byronTx()
		if c.err != nil {
			return
		}
		if !b.Trusted {
			tree.add(b.Bytes(b.Txs[len(b.Txs)-1].Body))
		}
	}
	b.leave()
	if c.err == nil && uint64(len(b.Txs)) != count {
		c.fail(txsAt, ErrCount)
	}
	if c.err == nil && !b.Trusted && tree.root() != chain.Hash(root) {
		c.fail(rootAt, ErrBodyHash)
	}
	c.skip() // shared seeds
	c.skip() // delegation
	c.skip() // updates
	c.end(body)
	c.skip() // extra
	c.end(n)
}

// difficulty reads [difficulty], the number of main blocks up to here: the
// height (a boundary block repeats its predecessor's).
func (b *Block) difficulty() chain.Height {
	c := &b.c
	n := c.tuple(1)
	height := b.height()
	c.end(n)
	return height
}

// height reads a block number.
func (b *Block) height() chain.Height {
	at := b.c.i
	n := b.c.uint()
	if n > 1<<62 {
		b.c.fail(at, ErrAmount)
		return 0
	}
	return chain.Height(n)
}

func (b *Block) byronLink(header Span, kind byte, parent []byte, height chain.Height) {
	b.Header = header
	b.Height = height
	copy(b.Parent[:], parent)
	b.Point.Hash = b.tree.prefixed(0x82, kind, b.Bytes(header))
}

func (b *Block) byronSlot(at int, epoch, slot uint64) {
	per := b.ByronEpochSlots
	if per == 0 {
		per = defaultByronEpochSlots
	}
	if epoch > 1<<31 || slot > 1<<31 || per > 1<<31 {
		b.c.fail(at, ErrAmount)
		return
	}
	b.Point.Slot = chain.Slot(epoch*per + slot)
}

// byronTx reads [transaction, witnesses], the transaction being [inputs,
// outputs, attributes].
func (b *Block) byronTx() {
	c := &b.c
	t := Tx{Index: len(b.Txs), Valid: true}
	pair := c.tuple(2)
	b.enter(t.Index)
	t.Body.Start = c.i
	tx := c.tuple(3)
	t.in.Start = len(b.ins)
	for n := c.array(); c.more(&n); {
		b.byronInput()
		t.unsorted.in = t.unsorted.in || !ascends(b.ins[t.in.Start:])
	}
	t.in.End = len(b.ins)
	t.out.Start = len(b.outs)
	for n := c.array(); c.more(&n); {
		b.outs = append(b.outs, c.byronOutput())
	}
	t.out.End = len(b.outs)
	c.skip() // attributes
	c.end(tx)
	t.Body.End = c.i
	t.Witnesses = c.item()
	c.end(pair)
	if c.err != nil {
		return
	}
	t.ID = blake2b.Sum256(b.Bytes(t.Body))
	b.Txs = append(b.Txs, t)
	b.tops = append(b.tops, len(b.Txs)-1)
}

// byronInput reads [0, 24([transaction id, index])], the only kind there is.
func (b *Block) byronInput() {
	c := &b.c
	n := c.tuple(2)
	kindAt := c.i
	if c.uint() != 0 {
		c.fail(kindAt, ErrUnexpected)
	}
	c.tag(tagEncoded)
	s := c.bytes()
	c.end(n)
	if c.err != nil {
		return
	}
	inner := cursor{b: c.b[:s.End], i: s.Start}
	inner.txIn(&b.ins)
	if inner.err == nil && inner.i != s.End {
		inner.fail(inner.i, ErrUnexpected)
	}
	if inner.err != nil {
		c.fail(inner.at, inner.err)
	}
}

// byronOutput reads [address, lovelace].
func (c *cursor) byronOutput() (o Out) {
	o.Start = c.i
	n := c.tuple(2)
	o.Address = c.byronAddress()
	o.Lovelace = c.uint()
	c.end(n)
	o.End = c.i
	return o
}

// byronAddress steps over [24(payload), crc32].
func (c *cursor) byronAddress() Span {
	start := c.i
	n := c.tuple(2)
	c.tag(tagEncoded)
	c.bytes()
	c.uint()
	c.end(n)
	return Span{start, c.i}
}
