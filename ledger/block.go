package ledger

import (
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// Span is a range of bytes: from Start, up to but not including End, in the
// bytes that were walked (Block.Raw). The zero Span stands for what is absent.
type Span struct{ Start, End int }

// Len returns the number of bytes.
func (s Span) Len() int { return s.End - s.Start }

// Present tells whether there is anything.
func (s Span) Present() bool { return s.End > s.Start }

// Out is an output where it stands. DecodeOutput reads all of it; the fields
// here are enough to place it and to look at its address.
type Out struct {
	Span                      // the whole output
	Address   Span            // the address: the content of its byte string; Byron: the array [24(payload), crc32]
	Lovelace  uint64          //
	Assets    Span            // the map of policies, if the value has one
	DatumKind chain.DatumKind //
	Datum     Span            // the hash, or the CBOR inside tag 24 of an inline datum
	Script    Span            // the CBOR [language, script] inside tag 24
}

// Tx is a transaction where it stands. Its slices belong to the Block and are
// valid until the next Walk.
type Tx struct {
	ID    chain.TxID
	Index int  // within the ledger's block; a sub-transaction has its parent's
	Sub   bool // a sub-transaction (Dijkstra); it stands before its parent, because the ledger applies it first
	Valid bool // false: its scripts failed (phase 2), or those of its parent

	Body      Span // what ID is the hash of
	Witnesses Span
	Aux       Span // auxiliary data

	Inputs     []chain.TxIn // as they stand, repeats included
	Reference  []chain.TxIn
	Collateral []chain.TxIn

	Outputs             []Out
	CollateralReturn    Out
	HasCollateralReturn bool

	Fee          uint64 // 0 in Byron, where it is not written down
	HasFrom      bool
	From         chain.Slot // first slot in which it may stand
	HasUntil     bool
	Until        chain.Slot // first slot in which it may no longer stand (Shelley: the last in which it may)
	Certificates Span       // array or set
	Withdrawals  Span       // map from reward address to lovelace
	Mint         Span       // map of policies to maps of names to signed quantities
	Votes        Span       // voting procedures
	Proposals    Span       // proposal procedures

	spends  []chain.TxIn
	creates []Out

	// Ranges of the block's arenas, from which the slices are cut when the
	// arenas have stopped growing.
	in, ref, col, spent, out Span
	unsorted                 unsorted
}

// unsorted tells which of a transaction's sets of references are not in
// strictly ascending order as they stand.
type unsorted struct{ in, col bool }

// Spends returns the outputs that the transaction spends: its inputs if it is
// valid, else its collateral; in ascending order and without repeats. The
// slice belongs to the Block.
func (t *Tx) Spends() []chain.TxIn { return t.spends }

// Creates returns the outputs that the transaction makes and the index of the
// first: its outputs from 0 if it is valid, else its collateral return, if it
// has one, at the number of its outputs (Babbage ledger, collOuts).
func (t *Tx) Creates() (first uint32, outs []Out) {
	if t.Valid {
		return 0, t.creates
	}
	return uint32(len(t.Outputs)), t.creates
}

// Block is what a block does, as spans of its raw bytes. The zero Block is
// ready; walking block after block with one Block allocates nothing once its
// memory has grown. It must not be walked and read by different goroutines at
// the same time.
type Block struct {
	chain.Link
	Raw    []byte // what was walked, aliased
	Header Span   // what the header hash is taken of (Byron: after two bytes that are not in Raw)
	Txs    []Tx   // in the ledger's order; sub-transactions stand before their parent

	// ByronEpochSlots is the number of slots of a Byron epoch, ten times the
	// security parameter of the Byron genesis; a Byron block names its slot by
	// epoch and offset. Zero stands for 21,600, as on mainnet and preprod. Set
	// it before Walk, which leaves it alone.
	ByronEpochSlots uint64

	// Trusted leaves out the check of the body against the header, which is a
	// third of the work: for bytes that have been walked before. Walk leaves
	// it alone.
	Trusted bool

	c    cursor
	ins  []chain.TxIn // arena of references
	outs []Out        // arena of outputs
	tops []int        // indexes in Txs of the transactions that are no sub-transactions
	tree merkle       // of Byron transactions; hashes their headers too

	tx     int // index of the transaction being read, for errors; or -1
	bodyAt int // where its body begins
}

// defaultByronEpochSlots is 10·k for k = 2,160.
const defaultByronEpochSlots = 21600

// Bytes returns the bytes of a span.
func (b *Block) Bytes(s Span) []byte { return b.Raw[s.Start:s.End:s.End] }

// Walk reads a block in storage form, [era tag, block], and refills b. It
// keeps raw, which must not change while b is in use. An error is an *Error;
// b then holds what was read before it and must not be used as a block.
func (b *Block) Walk(raw []byte) error {
	b.reset(raw)
	b.walk()
	if b.c.err != nil {
		return b.failure()
	}
	b.finish()
	return nil
}

func (b *Block) reset(raw []byte) {
	b.Link = chain.Link{}
	b.Raw = raw
	b.Header = Span{}
	b.Txs = b.Txs[:0]
	b.c = cursor{b: raw, spans: b.c.spans}
	b.ins = b.ins[:0]
	b.outs = b.outs[:0]
	b.tops = b.tops[:0]
	b.leave()
}

// enter and leave tell which transaction is being read, for errors.
func (b *Block) enter(tx int) { b.tx, b.bodyAt = tx, b.c.i }

func (b *Block) leave() {
	if b.c.err == nil {
		b.tx = -1
	}
}

// failure makes the error of a walk. The transaction is named if its body can
// be told from what follows, whatever is wrong inside.
func (b *Block) failure() error {
	e := &Error{Link: b.Link, Tx: b.tx, Offset: b.c.at, Cause: b.c.err}
	if b.tx >= 0 {
		c := cursor{b: b.Raw, i: b.bodyAt}
		if s := c.item(); c.err == nil {
			e.TxID = blake2b.Sum256(b.Bytes(s))
		}
	}
	return e
}

func (b *Block) walk() {
	c := &b.c
	if len(c.b) == 0 || c.peek()>>5 != majorArray {
		c.fail(0, ErrNotABlock)
		return
	}
	n := c.array()
	tagAt := c.i
	if n != 2 && n != indefinite || c.peek()>>5 != majorUint {
		c.fail(tagAt, ErrNotABlock)
		return
	}
	switch tag := c.uint(); {
	case c.err != nil:
		return
	case tag == 0:
		b.Era, b.Boundary = chain.Byron, true
		b.boundary()
	case tag == uint64(chain.Byron):
		b.Era = chain.Byron
		b.byron()
	case tag < uint64(chain.Dijkstra):
		b.Era = chain.Era(tag)
		b.segregated()
	case tag == uint64(chain.Dijkstra):
		b.Era = chain.Dijkstra
		b.dijkstra()
	default:
		c.fail(tagAt, ErrEra)
		return
	}
	c.end(n)
	if c.err == nil && c.i != len(c.b) {
		c.fail(c.i, ErrTrailing)
	}
}

// Wrap returns the storage form of a bare block: [era tag, block]. Boundary
// tells a Byron epoch-boundary block.
func Wrap(era chain.Era, boundary bool, block []byte) []byte {
	tag := byte(era)
	if boundary {
		tag = 0
	}
	return append([]byte{0x82, tag}, block...)
}
