package forge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// ErrOrder is wrapped when a block cannot have a transaction that was ordered.
var ErrOrder = errors.New("cannot make this transaction")

// Order is a transaction that somebody wants in the next block. What it makes is
// spent by other orders only, and it does not come again on another branch.
type Order struct {
	Spend []chain.TxIn // outputs unspent at the head
	Pay   []Payment
	// Fails makes its scripts fail: it spends Spend as collateral and makes only
	// the last of Pay, as its collateral return. From Babbage on.
	Fails bool
}

// Payment is an output that is ordered.
type Payment struct {
	Address  []byte // of Shelley's kinds
	Lovelace uint64
}

// NextWith is Next for a block that begins with the transactions ordered, whose
// ids it returns. Each also spends an output of the chain's own and pays back what
// is left of it. Where that is impossible the error wraps ErrOrder and the head
// stays. A boundary block has no transactions: Next makes it before.
func (f *Forge) NextWith(orders ...Order) (Block, []chain.TxID, error) {
	f.orders = orders
	b, err := f.NextAt(0)
	ids := f.ordered
	f.orders, f.ordered = nil, nil
	return b, ids, err
}

// ordersHere applies what was ordered.
func (m *maker) ordersHere() error {
	for i, o := range m.f.orders {
		d, err := m.order(o)
		if err != nil {
			return fmt.Errorf("transaction %d: %w", i, err)
		}
		m.apply(d)
		m.f.ordered = append(m.f.ordered, d.id)
	}
	return nil
}

func (m *maker) order(o Order) (*draft, error) {
	if m.n.Era == chain.Byron || o.Fails && m.n.Era < chain.Babbage {
		return nil, fmt.Errorf("%w in %s", ErrOrder, m.n.Era)
	}
	d := &draft{fee: 200_000, ordered: true, style: style{mapOutputs: m.n.Era >= chain.Babbage}}
	if m.taken != nil {
		d.fee = 500_000 // it has to pass Check, however long it becomes
	}
	if m.n.Era == chain.Shelley {
		d.ttl = uint64(m.n.Point.Slot) + 1000 // mandatory
	}
	var p, coll purse
	for _, ref := range o.Spend {
		out := m.spare[ref]
		if out == nil {
			out = m.f.live.find(ref)
		}
		switch {
		case out == nil || m.taken[ref] || !m.usable(out) && !out.ordered:
			return nil, fmt.Errorf("%w: %v is not unspent", ErrOrder, ref)
		case o.Fails && out.script:
			return nil, fmt.Errorf("%w: %v is no collateral", ErrOrder, ref)
		case o.Fails:
			d.collateral = append(d.collateral, out)
			coll.take(out)
		default:
			d.inputs = append(d.inputs, out)
			p.take(out)
		}
	}
	var need uint64
	for i, pay := range o.Pay {
		out := &Output{Address: pay.Address, Lovelace: pay.Lovelace, script: scriptAddress(pay.Address), ordered: true}
		if o.Fails && i == len(o.Pay)-1 {
			d.ret = out
		} else {
			d.outs = append(d.outs, out)
			need += pay.Lovelace
		}
	}
	if o.Fails {
		d.invalid = true
		if d.ret == nil || coll.coin < d.ret.Lovelace {
			return nil, fmt.Errorf("%w: its collateral is %d lovelace", ErrOrder, coll.coin)
		}
	}
	if err := m.fund(d, &p, need+d.fee+2*ada); err != nil {
		return nil, err
	}
	// What is left goes back; of a transaction that fails no output is made, and
	// the return's index is how many it would have had, so there is no change.
	if change := p.coin - need - d.fee; o.Fails {
		d.fee += change
	} else {
		back := &Output{Address: m.f.wallet[m.g.IntN(len(m.f.wallet))], Lovelace: change}
		if k := back.Address[0] >> 4; k == addrPointerK || k == addrPointerS {
			back.Address = m.g.address(addrEnterprise, 0)
		}
		back.script = scriptAddress(back.Address)
		for _, k := range p.order {
			back.Assets = append(back.Assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: p.assets[k]})
		}
		back.Assets = normalise(back.Assets)
		d.outs = append(d.outs, back)
	}
	m.encodeBody(d)
	m.encodeWitnesses(d, o.Fails)
	return d, nil
}

// fund adds outputs of the chain's own until there is so much.
func (m *maker) fund(d *draft, p *purse, coin uint64) error {
	g := m.g
	for range 1000 {
		if p.coin >= coin {
			return nil
		}
		out := m.f.live.all[g.IntN(len(m.f.live.all))]
		if d.invalid && len(out.Assets) > 0 || !m.usable(out) || m.taken[out.Ref] || slices.Contains(d.inputs, out) || !p.take(out) {
			continue
		}
		d.inputs = append(d.inputs, out)
	}
	return fmt.Errorf("%w: the chain has not %d lovelace to spare", ErrOrder, coin)
}

// find looks for an output; it reads them all.
func (l *live) find(ref chain.TxIn) *Output {
	i := slices.IndexFunc(l.all, func(o *Output) bool { return o.Ref == ref })
	if i < 0 {
		return nil
	}
	return l.all[i]
}
