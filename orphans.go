package ourotail

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// orphans names the blocks that were undone and are kept, for the hub: a cursor on
// one of them can be resumed from, also after a restart. Boundary blocks are passed
// over, as everywhere above the store.
func (f *Follower) orphans() (out []hub.Orphan, err error) {
	for _, l := range f.store.Orphans() {
		if l.Boundary {
			continue
		}
		parent, ok, err := f.parent(l)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, hub.Orphan{At: l.At(), Parent: parent})
		}
	}
	return out, nil
}

// parent returns the block below an undone one, undone or on our chain, as
// subscriptions know it; false if it is not known any more.
func (f *Follower) parent(l chain.Link) (chain.At, bool, error) {
	for {
		if at, ok, err := f.below(l); ok || err != nil {
			return at, ok, err
		}
		below, ok := f.store.Orphan(l.Parent)
		switch {
		case !ok:
			return chain.Origin, false, nil
		case !below.Boundary:
			return below.At(), true, nil
		}
		l = below
	}
}

// undone rebuilds a block that was undone.
func (c *journalBlocks) undone(at chain.At) (*chain.AppliedBlock, error) {
	v := c.f.store.Snapshot()
	defer v.Close()
	var e chain.Effects
	if err := v.Orphan(at.Point.Hash, &e); err != nil {
		return nil, err
	}
	if e.Point != at.Point || e.Height != at.Height {
		return nil, fmt.Errorf("the undone block is %v, not %v", e.At(), at)
	}
	return c.builder.Build(&e, func(h chain.Height) (chain.At, error) { return c.f.createdBelow(e.Link, h) })
}

// createdBelow names the main block at a height of the branch that an undone block
// ends.
func (f *Follower) createdBelow(top chain.Link, h chain.Height) (chain.At, error) {
	for l := top; ; {
		if l.Height == h && !l.Boundary {
			return l.At(), nil
		}
		below, ok := f.store.Orphan(l.Parent)
		if !ok {
			return f.createdAt(h)
		}
		l = below
	}
}
