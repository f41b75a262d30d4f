package forge

import (
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// SubmittedNext is NextAt for a block that begins with as many of the
// transactions as are valid then and fit into it, in order. A boundary block has
// none. Orders come behind them, as in NextWith, and their ids are returned.
func (f *Forge) SubmittedNext(slot chain.Slot, txs []*Submitted, orders ...Order) (b Block, ids []chain.TxID, err error) {
	f.submitted, f.orders = txs, orders
	b, err = f.NextAt(slot)
	ids = f.ordered
	f.submitted, f.orders, f.ordered = nil, nil, nil
	return b, ids, err
}

// submittedHere applies what was submitted and is valid.
func (m *maker) submittedHere() {
	size := 0
	var refs []chain.TxIn
	for _, t := range m.f.submitted {
		refs = slices.Concat(refs, t.inputs, t.collateral, t.refs)
	}
	if len(refs) == 0 {
		return
	}
	at := m.f.unspent(refs)
	for _, o := range m.n.Removed { // by the boundary of eras, just now
		delete(at, o.Ref)
	}
	for _, t := range m.f.submitted {
		in := t.inputs
		if t.invalid {
			in = t.collateral
		}
		if size+len(t.Raw) > MaxBlockBody || t.check(m.n.Era, uint64(m.n.Point.Slot), in, at) != nil {
			continue
		}
		size += len(t.Raw)
		m.apply(t.draft(at))
		t.step(at)
	}
}

// draft is the transaction as the forge makes its own.
func (t *Submitted) draft(at map[chain.TxIn]*Output) *draft {
	find := func(refs []chain.TxIn) (outs []*Output) {
		for _, r := range refs {
			outs = append(outs, at[r])
		}
		return outs
	}
	return &draft{inputs: find(t.inputs), collateral: find(t.collateral), refs: find(t.refs), outs: t.outs, ret: t.ret, totalColl: t.totalColl,
		fee: t.fee, deposits: t.donation, invalid: t.invalid, mint: t.mint, labels: t.labels, scripts: t.scripts, body: t.body, wits: t.wits, aux: t.aux, ordered: true}
}

// Compose makes a transaction that could stand in the next block, behind others
// that could, and puts it nowhere: the whole of it, as it is submitted. It
// spends what those make if it is told to, and nothing else that they spend. No
// two calls give the same. Errors wrap ErrOrder.
func (f *Forge) Compose(o Order, before []*Submitted) ([]byte, chain.TxID, error) {
	f.composed++
	n := &node{parent: f.head}
	m := &maker{f: f, g: newRnd(f.opts.Seed, f.head.Point.Hash, 1<<63+f.composed), n: n, spare: map[chain.TxIn]*Output{}, taken: map[chain.TxIn]bool{}}
	if m.place(); n.Boundary {
		return nil, chain.TxID{}, fmt.Errorf("%w: the next block is a boundary block", ErrOrder)
	}
	for _, b := range before {
		for _, r := range slices.Concat(b.inputs, b.collateral) {
			m.taken[r] = true
		}
		b.step(m.spare)
	}
	d, err := m.order(o)
	if err != nil {
		return nil, chain.TxID{}, err
	}
	items := 3
	if n.Era >= chain.Alonzo && n.Era < chain.Dijkstra {
		items = 4
	}
	b := append(append(wire.Array(nil, items), d.body...), d.wits...)
	if items == 4 {
		valid := byte(wire.True)
		if d.invalid {
			valid = wire.False
		}
		b = append(b, valid)
	}
	if d.aux == nil {
		b = append(b, wire.Null)
	} else {
		b = append(b, d.aux...)
	}
	return b, blake(d.body), nil
}
