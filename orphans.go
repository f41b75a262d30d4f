package ourotail

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// orphans names the blocks that were undone and are kept, for the hub: a cursor on
// one of them can be resumed from, also after a restart. Boundary blocks are passed
// over, as everywhere above the store.
func (m moment) orphans() (out []hub.Orphan, err error) {
	links, err := m.v.Orphans()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if l.Boundary {
			continue
		}
		parent, ok, err := m.parent(l)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, hub.Orphan{At: l.At(), Parent: parent})
		}
	}
	slices.SortFunc(out, func(a, b hub.Orphan) int {
		return cmp.Or(cmp.Compare(a.At.Height, b.At.Height), bytes.Compare(a.At.Point.Hash[:], b.At.Point.Hash[:]))
	})
	return out, nil
}

// parent returns the block below an undone one, undone or on our chain, as
// subscriptions know it; false if it is not known any more.
func (m moment) parent(l chain.Link) (chain.At, bool, error) {
	for {
		if at, ok, err := m.below(l); ok || err != nil {
			return at, ok, err
		}
		below, ok, err := m.v.OrphanLink(l.Parent)
		switch {
		case err != nil || !ok:
			return chain.Origin, false, err
		case !below.Boundary:
			return below.At(), true, nil
		}
		l = below
	}
}

// createdBelow names the main block at a height of the branch that an undone block
// ends.
func (m moment) createdBelow(top chain.Link, h chain.Height) (chain.At, error) {
	for l := top; ; {
		if l.Height == h && !l.Boundary {
			return l.At(), nil
		}
		below, ok, err := m.v.OrphanLink(l.Parent)
		if err != nil {
			return chain.Origin, err
		}
		if !ok {
			return m.createdAt(h)
		}
		l = below
	}
}
