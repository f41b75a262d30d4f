package forge

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// maker makes one block.
type maker struct {
	f   *Forge
	g   *rnd
	n   *node
	txs []*draft
	// made are the outputs made in this block that are still unspent.
	made []*Output
	at   chain.Slot // the slot wanted; 0 leaves it to chance
	// spare and taken are outputs that are there though they are not unspent at
	// the head, and those that are not to be had though they are.
	spare map[chain.TxIn]*Output
	taken map[chain.TxIn]bool
}

// place decides the block's slot, height and era.
func (m *maker) place() {
	f, n, p := m.f, m.n, m.n.parent
	cal := f.cal
	if p == f.oracle.root {
		n.epoch = 0
		n.Era = cal.era(0)
		n.Height = 0
		if n.Era == chain.Byron {
			n.Boundary = true // epoch 0 begins with a boundary block at height 0
		}
		return
	}
	gap := cal.slots(p.epoch) / uint64(f.opts.EpochBlocks)
	gap = max(gap, 1)
	slot := p.Point.Slot + 1 + chain.Slot(m.g.Uint64N(2*gap-1))
	if p.Boundary && m.g.chance(0.5) {
		slot = p.Point.Slot // a main block may share the slot of its epoch's boundary block
	}
	if p.children > 1 && m.g.chance(0.3) {
		slot = p.firstAt
	}
	if m.at > 0 {
		slot = max(m.at, p.Point.Slot+1)
	}
	n.Height = p.Height + 1
	n.epoch = cal.epoch(slot)
	n.Era = cal.era(n.epoch)
	n.Point.Slot = slot
	if n.epoch != p.epoch && (n.Era == chain.Byron || n.Era != p.Era) {
		// No epoch is skipped where its boundary block, or its era, would be.
		n.epoch = p.epoch + 1
		n.Era = cal.era(n.epoch)
		n.Point.Slot = max(cal.start(n.epoch), min(slot, cal.start(n.epoch+1)-1))
		if n.Era == chain.Byron {
			n.Boundary = true
			n.Height = p.Height
			n.Point.Slot = cal.start(n.epoch)
		}
	}
}

// boundaryOfEras removes the vouchers that were not redeemed when Allegra
// begins (cardano-ledger Allegra: returnRedeemAddrsToReserves).
func (m *maker) boundaryOfEras() {
	n := m.n
	if n.Era < chain.Allegra || n.parent.Era >= chain.Allegra {
		return
	}
	for _, o := range n.avvm {
		n.Removed = append(n.Removed, o)
		m.spend(o)
	}
	slices.SortFunc(n.Removed, func(a, b *Output) int { return a.Ref.Compare(b.Ref) })
	n.avvm = nil
}

// spend takes an output out of the live set.
func (m *maker) spend(o *Output) {
	m.n.undo = append(m.n.undo, change{removal{o, o.pos, o.hpos}, true})
	m.f.live.remove(o)
	m.n.lose(o)
	if o.avvm {
		m.n.avvm = slices.DeleteFunc(slices.Clone(m.n.avvm), func(v *Output) bool { return v == o })
	}
	if o.Height == m.n.Height {
		if i := slices.Index(m.made, o); i >= 0 {
			m.made = slices.Delete(m.made, i, i+1)
		}
	}
}

// create puts an output into the live set.
func (m *maker) create(o *Output) {
	m.f.scratch = o.accumulate(m.f.scratch)
	m.f.live.add(o)
	m.n.undo = append(m.n.undo, change{removal{out: o}, false})
	m.n.gain(o)
	m.made = append(m.made, o)
	o.inline, o.ref = nil, nil // written by now
}

// settle finishes the node.
func (m *maker) settle() {
	m.n.drafts = m.txs
	if p := m.n.parent; p.children == 1 {
		p.firstAt = m.n.Point.Slot
	}
	for _, d := range m.txs {
		m.n.Txs = append(m.n.Txs, d.effects())
	}
}
