package forge

import "slices"

// orphan returns, now and then, a transaction of the branch that was left, if
// it can stand in this block: same bytes, same id. Most of them come again, in
// their old order; one in five is left out, and with it what spends its outputs.
func (m *maker) orphan() *draft {
	f := m.f
	for len(f.orphans) > 0 {
		if m.g.chance(0.3) {
			return nil // something new comes first
		}
		old := f.orphans[0]
		f.orphans = f.orphans[1:]
		if m.g.chance(0.2) {
			continue
		}
		if d := m.revive(old); d != nil {
			return d
		}
	}
	return nil
}

// revive copies a draft onto this branch, nil if its era, its validity interval
// or anything it spends or looks at is not there.
func (m *maker) revive(old *draft) *draft {
	slot := uint64(m.n.Point.Slot)
	if old.ordered || old.era != m.n.Era || old.ttl > 0 && slot >= old.ttl || slot < old.from {
		return nil
	}
	ok := true
	here := func(outs []*Output) []*Output {
		outs = slices.Clone(outs)
		for i, o := range outs {
			if again, made := m.f.again[o.Ref]; made {
				outs[i] = again
			}
			ok = ok && m.f.live.has(outs[i])
		}
		return outs
	}
	d := *old
	d.inputs, d.collateral, d.refs = here(old.inputs), here(old.collateral), here(old.refs)
	if !ok {
		return nil
	}
	d.spent, d.created = nil, nil
	d.outs = make([]*Output, len(old.outs))
	for i, o := range old.outs {
		fresh := *o
		d.outs[i] = &fresh
	}
	if old.ret != nil {
		fresh := *old.ret
		d.ret = &fresh
	}
	d.revived = true
	return &d
}

// has tells whether an output is unspent.
func (l *live) has(o *Output) bool { return o.pos < len(l.all) && l.all[o.pos] == o }
