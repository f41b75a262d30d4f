package chain

// TxEffects is what one transaction does to the set of unspent outputs, as
// ranges of the block's lists.
type TxEffects struct {
	ID      TxID
	Valid   bool // false: its scripts failed, it spent collateral and made only its collateral return
	Spent   int  // end (exclusive) of its part of Effects.Spent
	Created int  // end (exclusive) of its part of Effects.Created
}

// Effects is what one block does to the set of unspent outputs, flat and in
// ledger order: transactions in block order, the spends of each sorted by
// reference without repeats, its creations by index. Raw bytes alias the
// buffer the block was read into.
type Effects struct {
	Link
	Raw     []byte // the block in storage form, [era tag, block]
	Txs     []TxEffects
	Spent   []Output // resolved
	Created []Output
	Journal bool // undo data is written with it
}

// Tx returns what the i-th transaction spent and created.
func (e *Effects) Tx(i int) (spent, created []Output) {
	var s, c int
	if i > 0 {
		s, c = e.Txs[i-1].Spent, e.Txs[i-1].Created
	}
	return e.Spent[s:e.Txs[i].Spent], e.Created[c:e.Txs[i].Created]
}

// AppliedBlock is a block as a provider hands it to the hub (contract 1.1).
// It is immutable once handed over.
type AppliedBlock struct {
	At       At
	Txs      []AppliedTx
	Block    []byte // the raw ledger block, [era tag, block]; nil if the provider synthesises blocks
	Coverage Coverage
}

// AppliedTx is one transaction with its effects resolved (contract 1.2).
type AppliedTx struct {
	ID      TxID
	Index   int // within the ledger's block
	Valid   bool
	Spent   []Effect // sorted by reference
	Created []Effect // sorted by index
	Mint    []Minted // what it minted (positive) and burnt; empty if it is not valid
	Labels  []uint64 // metadata labels, ascending
	Scripts []Hash28 // scripts in its witnesses and the reference scripts it makes
}

// Effect is an output that a transaction spent or created. Place counts all
// spends and creations of the ledger's block, the spends of a transaction
// first, whether or not they were probed (contract 5.2).
type Effect struct {
	UTxO  *UTxO
	Place uint32
}

// Minted is the signed quantity of an asset that a transaction made or burnt.
type Minted struct {
	Policy   Hash28
	Name     []byte
	Quantity int64
}

// SourceKind tells what a Source looks at.
type SourceKind uint8

// The kinds of source (contract 4.2).
const (
	SourceAll SourceKind = iota
	SourceAddress
	SourcePayment // payment credential
	SourceStake   // stake credential
	SourcePolicy
	SourceAsset // policy, then name
	SourceTx    // the outputs of a transaction
	SourceInput // one output reference, in key form
)

// Source is one thing that can be looked up or probed: an address, a
// credential, a policy, an asset, a transaction, a reference. Key holds the
// raw bytes. It is comparable, so that sets of sources are maps.
type Source struct {
	Kind SourceKind
	Key  string
}

// Coverage tells what was examined to produce a block (contract 1.3). The zero
// value covers nothing.
type Coverage struct {
	Complete bool
	Sources  map[Source]struct{} // of a block that is not complete
}

// Complete is the coverage of a provider that holds whole blocks.
var Complete = Coverage{Complete: true}

// Has tells whether the source itself was examined.
func (c Coverage) Has(s Source) bool {
	if c.Complete {
		return true
	}
	_, ok := c.Sources[s]
	return ok
}
