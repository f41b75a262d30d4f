package hub

import (
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// beginAfter starts behind a point, or behind the event of a cursor (contract
// 3.15 and 5.2).
func (h *Hub) beginAfter(s *sub, o *Options) error {
	c := o.After
	c.At = norm(c.At)
	err := h.load(func() []chain.At {
		common, err := h.ancestor(c.At)
		if err != nil || h.failed != nil {
			return nil
		}
		if common == c.At && c.Place >= 0 {
			common.Height--
		}
		want := h.thinAbove(common.Height, h.tip.Height)
		if path, ok := h.path(common, c.Base); ok && c.HasBase {
			for _, e := range path {
				if e.b == nil && !slices.Contains(want, e.at) {
					want = append(want, e.at)
				}
			}
		}
		return want
	})
	switch {
	case h.failed != nil:
		return h.failed
	case err != nil:
		return fmt.Errorf("starting after %v: %w: %w", c.At, ErrResync, err)
	}
	if c.At.Height > h.highest-s.depth && c.At.Height >= 0 {
		return fmt.Errorf("starting after %v: %w (%d blocks below the highest, %d)", c.At, ErrShallow, s.depth, h.highest)
	}
	common, err := h.ancestor(c.At)
	if err != nil {
		return err
	}
	if common != c.At && o.Start == After {
		return &OrphanedError{Point: c.At, Ancestor: common}
	}
	seeded := c.HasBase && s.kind == UTxOs && s.want&wantCreated != 0
	s.w = common.Height
	if seeded {
		s.base = &c.Base
	}
	if common != c.At {
		s.typed.addRollback(common, &c.At)
	} else if c.Place >= 0 { // the rest of a block begun
		e := h.win.at(c.At.Height)
		if e == nil || e.b == nil || !s.typed.covered(e.cov) {
			return &GapError{Height: c.At.Height}
		}
		s.typed.addBlock(e.b, c.Place)
	}
	if seeded {
		if err := h.correctResumed(s, common, c.Base); err != nil {
			s.typed.discard()
			return err
		}
	}
	if gate := max(s.w, h.tip.Height-s.depth); h.cfg.Capabilities.Partial {
		for x := s.w + 1; x <= gate; x++ {
			if e := h.win.at(x); e == nil || !s.typed.covered(e.cov) {
				s.typed.discard()
				return &GapError{Height: x}
			}
		}
	}
	h.admit(s)
	h.goLive(s)
	return nil
}

// ancestor returns the newest point of the hub's chain at or below a point that
// may have been orphaned.
func (h *Hub) ancestor(at chain.At) (chain.At, error) {
	common := at
	for {
		if h.win.floor.Height <= common.Height && common.Height <= h.tip.Height {
			if p, ok := h.pointAt(common.Height); ok && p == common.Point {
				break
			}
		}
		o, ok := h.orphans[common.Point]
		if !ok {
			if at.Height < h.win.floor.Height {
				return at, &OlderError{Point: at, Oldest: h.win.floor}
			}
			return at, fmt.Errorf("starting after %v: %w", at, ErrUnknownPoint)
		}
		common = o.parent
	}
	if common != at && h.depthOf(common.Height) > h.cfg.Capabilities.horizon() {
		return at, fmt.Errorf("starting after %v: %w", at, ErrUnknownPoint)
	}
	return common, nil
}

// path returns the blocks above a point of the chain up to another point, which
// may have been orphaned, oldest first; false if one of them is not known.
func (h *Hub) path(low, high chain.At) ([]*entry, bool) {
	var path []*entry
	for high.Height > low.Height {
		e := h.find(high)
		if e == nil {
			return nil, false
		}
		path = append(path, e)
		high = e.parent
	}
	slices.Reverse(path)
	return path, true
}

// find returns a block that the hub knows: of its chain, or orphaned.
func (h *Hub) find(at chain.At) *entry {
	if e := h.orphans[at.Point]; e != nil {
		return e
	}
	if e := h.win.at(at.Height); e != nil && e.at.Point == at.Point {
		return e
	}
	return nil
}

// correctResumed gathers the corrections a resumed reader needs: those of every
// block between the common ancestor and its base, orphaned or back on the
// chain.
func (h *Hub) correctResumed(s *sub, common, base chain.At) error {
	owed, ok := h.path(common, base)
	if !ok {
		return fmt.Errorf("resuming with base %v: %w", base, ErrResync)
	}
	if len(owed) > 0 {
		if !h.correct(s.typed.(*UTxOSubscription), &common, owed, &base) {
			return fmt.Errorf("resuming with base %v: %w", base, ErrResync)
		}
	}
	s.lowerBase(&common)
	h.highestBase = max(h.highestBase, s.base.Height)
	return nil
}
