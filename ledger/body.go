package ledger

import (
	"slices"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// Keys of a transaction body (ledger CDDL of each era, transaction_body).
const (
	keyInputs           = 0
	keyOutputs          = 1
	keyFee              = 2
	keyUntil            = 3
	keyCertificates     = 4
	keyWithdrawals      = 5
	keyFrom             = 8
	keyMint             = 9
	keyCollateral       = 13
	keyCollateralReturn = 16
	keyReference        = 18
	keyVotes            = 19
	keyProposals        = 20
	keySubTransactions  = 23
)

// strict tells whether the decoder of an era refuses what earlier ones let
// pass: repeated keys and members, zero quantities (protocol version 9, and a
// block is always decoded by the lowest version of its era).
func strict(era chain.Era) bool { return era >= chain.Conway }

// body reads a transaction body and appends the transaction, its
// sub-transactions first.
func (b *Block) body(sub bool) {
	c := &b.c
	t := Tx{Index: len(b.tops), Sub: sub, Valid: true}
	b.enter(t.Index)
	t.Body.Start = c.i
	var seen uint64
	for n := c.mapping(); c.more(&n); {
		at := c.i
		key := c.uint()
		if c.err != nil {
			return
		}
		if key < 64 {
			if seen>>key&1 != 0 {
				c.fail(at, ErrDuplicate)
				return
			}
			seen |= 1 << key
		}
		b.field(&t, key)
	}
	required := uint64(1<<keyInputs | 1<<keyOutputs | 1<<keyFee)
	if sub {
		required &^= 1 << keyFee
	}
	if c.err == nil && seen&required != required {
		c.fail(t.Body.Start, ErrMissing)
	}
	if c.err != nil {
		return
	}
	t.Body.End = c.i
	t.ID = blake2b.Sum256(b.Bytes(t.Body))
	if t.HasCollateralReturn { // stands right after the outputs: see finish
		if t.out.End != len(b.outs) { // sub-transactions came in between
			start := len(b.outs)
			b.outs = append(b.outs, b.outs[t.out.Start:t.out.End]...)
			t.out = Span{start, len(b.outs)}
		}
		b.outs = append(b.outs, t.CollateralReturn)
	}
	b.Txs = append(b.Txs, t)
	if !sub {
		b.tops = append(b.tops, len(b.Txs)-1)
	}
}

// field reads the value of one key of a transaction body.
func (b *Block) field(t *Tx, key uint64) {
	c := &b.c
	switch key {
	case keyInputs:
		t.in, t.unsorted.in = b.references()
	case keyOutputs:
		t.out.Start = len(b.outs)
		for n := c.array(); c.more(&n); {
			b.outs = append(b.outs, c.output(b.Era))
		}
		t.out.End = len(b.outs)
	case keyFee:
		t.Fee = c.uint()
	case keyUntil:
		if c.peek() == nullByte { // optional, and once written so by some
			c.i++
			return
		}
		t.Until, t.HasUntil = chain.Slot(c.uint()), true
	case keyFrom:
		if c.peek() == nullByte {
			c.i++
			return
		}
		t.From, t.HasFrom = chain.Slot(c.uint()), true
	case keyCertificates:
		t.Certificates = c.item()
	case keyWithdrawals:
		t.Withdrawals = c.item()
	case keyMint:
		t.Mint = c.assets(b.Era, true)
	case keyCollateral:
		t.col, t.unsorted.col = b.references()
	case keyCollateralReturn:
		t.CollateralReturn, t.HasCollateralReturn = c.output(b.Era), true
	case keyReference:
		t.ref, _ = b.references()
	case keyVotes:
		t.Votes = c.item()
	case keyProposals:
		t.Proposals = c.item()
	case keySubTransactions:
		if b.Era < chain.Dijkstra || t.Sub {
			c.skip()
			return
		}
		b.subTransactions()
	default:
		c.skip()
	}
}

// subTransactions reads a set of [body, witness set, auxiliary data or null].
func (b *Block) subTransactions() {
	c := &b.c
	parent := b.bodyAt
	for n := c.set(); c.more(&n); {
		k := c.tuple(3)
		b.body(true)
		witnesses, aux := c.item(), c.optional()
		c.end(k)
		if c.err != nil {
			return
		}
		t := &b.Txs[len(b.Txs)-1]
		t.Witnesses, t.Aux = witnesses, aux
	}
	b.bodyAt = parent
}

// optional steps over an item, and returns no span if it is null.
func (c *cursor) optional() Span {
	if c.peek() == nullByte {
		c.i++
		return Span{}
	}
	return c.item()
}

// references reads a set of transaction inputs into the arena. From Conway on
// a repeated member is an error; before, the ledger drops it.
func (b *Block) references() (s Span, unsorted bool) {
	c := &b.c
	at := c.i
	s.Start = len(b.ins)
	for n := c.set(); c.more(&n); {
		c.txIn(&b.ins)
		unsorted = unsorted || !ascends(b.ins[s.Start:])
	}
	s.End = len(b.ins)
	if unsorted && strict(b.Era) && c.err == nil {
		sorted := b.sorted(s)
		b.ins = b.ins[:s.End]
		if sorted.Len() != s.Len() {
			c.fail(at, ErrDuplicate)
		}
	}
	return s, unsorted
}

// ascends tells whether the last reference is above the one before it.
func ascends(refs []chain.TxIn) bool {
	n := len(refs)
	return n < 2 || refs[n-2].Compare(refs[n-1]) < 0
}

// sorted appends references of the arena to it again, sorted and without
// repeats, and returns where.
func (b *Block) sorted(s Span) Span {
	start := len(b.ins)
	b.ins = append(b.ins, b.ins[s.Start:s.End]...)
	part := b.ins[start:]
	slices.SortFunc(part, chain.TxIn.Compare)
	b.ins = b.ins[:start+len(slices.Compact(part))]
	return Span{start, len(b.ins)}
}

// txIn reads [transaction id, index] and appends it.
func (c *cursor) txIn(dst *[]chain.TxIn) {
	n := c.tuple(2)
	id := c.fixed(len(chain.TxID{}))
	at := c.i
	index := c.uint()
	c.end(n)
	if index > 1<<32-1 {
		c.fail(at, ErrAmount)
	}
	if c.err != nil {
		return
	}
	*dst = append(*dst, chain.TxIn{ID: chain.TxID(id), Index: uint32(index)})
}

// finish works out what each transaction spends and cuts the slices from the
// arenas, which grow no more after the first loop.
func (b *Block) finish() {
	for i := range b.Txs {
		t := &b.Txs[i]
		from, unsorted := t.in, t.unsorted.in
		if !t.Valid {
			from, unsorted = t.col, t.unsorted.col
		}
		if unsorted {
			from = b.sorted(from)
		}
		t.spent = from
	}
	for i := range b.Txs {
		t := &b.Txs[i]
		t.Inputs = cut(b.ins, t.in)
		t.Reference = cut(b.ins, t.ref)
		t.Collateral = cut(b.ins, t.col)
		t.spends = cut(b.ins, t.spent)
		t.Outputs = cut(b.outs, t.out)
		t.creates = t.Outputs
		if !t.Valid {
			t.creates = nil
			if t.HasCollateralReturn {
				t.creates = cut(b.outs, Span{t.out.End, t.out.End + 1})
			}
		}
	}
}

func cut[T any](arena []T, s Span) []T { return arena[s.Start:s.End:s.End] }
