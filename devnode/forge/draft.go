package forge

import (
	"slices"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// draft is a transaction being made.
type draft struct {
	id         chain.TxID
	index      int
	era        chain.Era
	inputs     []*Output // in the order they are written, repeats possible
	collateral []*Output
	refs       []*Output
	outs       []*Output // ordinary outputs, by index
	ret        *Output   // collateral return
	totalColl  uint64    // 0: not stated
	fee        uint64
	invalid    bool
	ttl, from  uint64 // validity interval, 0: none
	mint       []chain.Minted
	certs      [][]byte
	deposits   uint64
	withdrawal []withdrawal
	aux        []byte
	labels     []uint64
	scripts    []chain.Hash28 // of its witnesses
	extra      []field        // further body fields, ready made
	style      style
	revived    bool // it stood on another branch before
	ordered    bool

	body, wits []byte
	spent      []*Output // what it spent, sorted, without repeats
	created    []*Output
}

type withdrawal struct {
	account []byte
	amount  uint64
}

// field is a body field that was encoded elsewhere.
type field struct {
	key   uint64
	value []byte
}

// style is how a transaction is written where the ledger leaves a choice.
type style struct {
	tagSets    bool // sets with tag 258
	indefIns   bool
	indefOuts  bool
	indefBody  bool
	wide       bool // integers not in their shortest form
	shuffle    bool // body keys not ascending
	mapOutputs bool // Babbage's outputs as maps
}

// apply moves the outputs and fills in references, once the id is known.
func (m *maker) apply(d *draft) {
	d.index = len(m.txs)
	d.era = m.n.Era
	d.id = blake2b.Sum256(d.body)
	spend, create := d.inputs, d.outs
	first := uint32(0)
	if d.invalid {
		spend, create, first = d.collateral, nil, uint32(len(d.outs))
		if d.ret != nil {
			create = []*Output{d.ret}
		}
	}
	d.spent = slices.Clone(spend)
	slices.SortFunc(d.spent, func(a, b *Output) int { return a.Ref.Compare(b.Ref) })
	d.spent = slices.Compact(d.spent)
	for _, o := range d.spent {
		m.spend(o)
	}
	for i, o := range create {
		o.Ref = chain.TxIn{ID: d.id, Index: first + uint32(i)}
		o.Height, o.Slot, o.TxIndex, o.Era = m.n.Height, m.n.Point.Slot, uint32(d.index), m.n.Era
		m.create(o)
		if d.revived {
			m.f.again[o.Ref] = o
		}
		d.created = append(d.created, o)
	}
	m.txs = append(m.txs, d)
}

// effects is the draft as the oracle keeps it.
func (d *draft) effects() Tx {
	t := Tx{ID: d.id, Valid: !d.invalid, Spent: d.spent, Created: d.created, Fee: d.fee, Labels: d.labels, Deposited: d.deposits}
	for _, w := range d.withdrawal {
		t.Withdrawn += w.amount
	}
	if !d.invalid {
		t.Mint = d.mint
	}
	for _, r := range d.refs {
		t.RefIns = append(t.RefIns, r.Ref)
	}
	slices.SortFunc(t.RefIns, chain.TxIn.Compare)
	t.Scripts = slices.Clone(d.scripts)
	for _, o := range d.created {
		if o.HasScript {
			t.Scripts = append(t.Scripts, o.Script)
		}
	}
	return t
}

// purse adds up what a transaction takes in.
type purse struct {
	coin   uint64
	assets map[assetKey]uint64
	order  []assetKey // of first appearance: iterating a map would not be deterministic
}

type assetKey struct {
	policy chain.Hash28
	name   string
}

// take adds an output; false, and nothing is added, if a sum would overflow.
func (p *purse) take(o *Output) bool {
	if p.coin+o.Lovelace < p.coin {
		return false
	}
	for _, a := range o.Assets {
		if sum := p.assets[assetKey{a.Policy, string(a.Name)}]; sum+a.Quantity < sum {
			return false
		}
	}
	p.coin += o.Lovelace
	for _, a := range o.Assets {
		p.put(assetKey{a.Policy, string(a.Name)}, a.Quantity)
	}
	return true
}

func (p *purse) put(k assetKey, n uint64) {
	if p.assets == nil {
		p.assets = map[assetKey]uint64{}
	}
	if _, ok := p.assets[k]; !ok {
		p.order = append(p.order, k)
	}
	p.assets[k] += n
}
