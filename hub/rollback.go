package hub

import (
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// RollbackTo takes back every block above a point (contract 3.9). To the tip it
// is no event. It is refused with ErrNoHorizon, ErrAhead or ErrUnknownPoint if
// it cannot be; deeper than the horizon, or below the oldest block held, it
// ends every subscription with ErrResync, fails the hub, and returns that.
func (h *Hub) RollbackTo(to chain.At) error {
	flush, err := h.BufferRollback(to)
	flush()
	return err
}

// BufferRollback is the first half of RollbackTo; see BufferBlock.
func (h *Hub) BufferRollback(to chain.At) (flush func(), err error) {
	h.mu.Lock()
	err = h.rollback(norm(to))
	return h.unlock(), err
}

func (h *Hub) rollback(to chain.At) error {
	if h.failed != nil {
		return h.failed
	}
	if h.cfg.Capabilities.Horizon < 0 {
		return fmt.Errorf("rolling back to %v: %w", to, ErrNoHorizon)
	}
	if to.Height > h.tip.Height {
		return fmt.Errorf("rolling back to %v: %w, %v", to, ErrAhead, h.tip)
	}
	if h.depthOf(to.Height) > h.cfg.Capabilities.Horizon || to.Height < h.win.floor.Height {
		err := fmt.Errorf("rolling back to %v, highest ever %d: %w", to, h.highest, ErrResync)
		h.failAll(err)
		return err
	}
	// A height that a partial provider skipped has no name here: its word is taken.
	if p, ok := h.pointAt(to.Height); ok && p != to.Point {
		return fmt.Errorf("rolling back to %v: %w: the block there is %v", to, ErrUnknownPoint, p)
	}
	if to.Height == h.tip.Height {
		return nil
	}
	if err := h.loadBases(to.Height); err != nil {
		// Those who need what could not be read find out below.
		h.cfg.Logger.Warn("a block that a rollback needs could not be read", "to", to.String(), "error", err)
	}
	if h.failed != nil {
		return h.failed
	}
	at := &to
	first := h.win.above(to.Height)
	for s := h.loose.first; s != nil; {
		next := s.next // it may end
		if s.w > to.Height {
			h.takeBack(s, at, h.named(s.w), first)
		}
		s = next
	}
	h.takeBackGroups(at, first)
	for s := h.await.first; s != nil; s = s.next {
		if s.w > to.Height {
			h.awaiting.remove(s.w)
			s.w = to.Height
			h.awaiting.add(s.w)
		}
	}
	for h.win.n > first {
		e := h.win.dropNewest()
		h.orphans[e.at.Point] = &e
		h.statusGone(&e)
	}
	h.tip = to
	h.highestBase = min(h.highestBase, to.Height)
	h.tipChanged()
	h.tryHeld()
	return nil
}

// depthOf is how deep a rollback to a height is, counted from the highest ever
// (contract 3.9).
func (h *Hub) depthOf(to chain.Height) chain.Height {
	if h.cfg.BehindFirst {
		to = max(to, h.cfg.FirstHeight-1)
	}
	return h.highest - to
}

// pointAt returns the name of the hub's block at a height, if it has one.
func (h *Hub) pointAt(height chain.Height) (chain.Point, bool) {
	if e := h.win.at(height); e != nil {
		return e.at.Point, true
	}
	switch height {
	case h.tip.Height: // after a rollback to a height that a partial provider skipped
		return h.tip.Point, true
	case h.win.floor.Height:
		return h.win.floor.Point, true
	}
	return chain.Point{}, false
}

// named returns the point at a height. Where a partial provider skipped the
// height the point is empty: nobody knows its name.
func (h *Hub) named(height chain.Height) *chain.At {
	p, _ := h.pointAt(height)
	return &chain.At{Point: p, Height: height}
}

// takeBack takes the blocks from position first on back from a subscription
// of a partial provider that was given some of them.
func (h *Hub) takeBack(s *sub, to, from *chain.At, first int) {
	s.typed.addRollback(*to, from)
	if s.base != nil && s.base.Height > to.Height {
		gone := make([]*entry, 0, h.win.n-first)
		for i := first; i < h.win.n && h.win.entry(i).at.Height <= s.base.Height; i++ {
			gone = append(gone, h.win.entry(i))
		}
		if !h.correct(s.typed.(*UTxOSubscription), to, gone, s.base) {
			s.typed.discard()
			h.kill(s, fmt.Errorf("rolling back to %v below the base %v: %w", to, s.base, ErrResync))
			return
		}
	}
	s.lowerBase(to)
	s.typed.commit()
	s.w = to.Height
	h.touch(s)
}

// lowerBase brings the base of a view down to a point, if it lies above, and
// closes the group of events that a rollback and its corrections are.
func (s *sub) lowerBase(to *chain.At) {
	if s.base != nil && s.base.Height > to.Height {
		s.base = to
	}
	s.typed.closeGroup()
}

// correct gathers a Created for whatever the blocks, which lie above to and at
// or below the base, have spent and that existed at to (contract 3.3). False if
// one of the heights between was not examined for the subscription.
func (h *Hub) correct(s *UTxOSubscription, to *chain.At, blocks []*entry, base *chain.At) bool {
	limit := h.stampLimit()
	if h.cfg.Capabilities.Partial {
		held := make(map[chain.Height]bool, len(blocks))
		for _, e := range blocks {
			held[e.at.Height] = s.covered(e.cov)
		}
		for x := to.Height + 1; x <= base.Height; x++ {
			if !held[x] { // also a height below the chain's first: nobody examined it
				return false
			}
		}
	}
	for _, e := range blocks {
		if e.b == nil || !s.covered(e.cov) {
			return false
		}
		for i := range e.b.Txs {
			for j := range e.b.Txs[i].Spent {
				if u := e.b.Txs[i].Spent[j].UTxO; norm(u.At).Height <= to.Height && s.q.Match(u) {
					s.addCorrection(u, stamp(norm(u.At), limit), to)
				}
			}
		}
	}
	return true
}

// loadBases reads the blocks above a height that the corrections of a rollback
// to it need.
func (h *Hub) loadBases(to chain.Height) error {
	return h.load(func() []chain.At { return h.thinAbove(to, h.highestBase) })
}

// takeBackGroups takes the blocks from position first on back from the groups
// that were given some of them. Corrections are found through the index.
func (h *Hub) takeBackGroups(to *chain.At, first int) {
	highestBase := to.Height
	for _, g := range h.groups {
		if g.w <= to.Height {
			continue
		}
		for s := g.members.first; s != nil; s = s.next {
			if s.base != nil && s.base.Height > to.Height {
				s.corr = true
				highestBase = max(highestBase, s.base.Height)
			}
		}
	}
	lost := highestBase + 1 // the lowest block whose contents could not be read
	for i := first; i < h.win.n && h.win.entry(i).at.Height <= highestBase; i++ {
		if e := h.win.entry(i); e.b != nil {
			h.match(e.b, matchCorrected)
		} else {
			lost = min(lost, e.at.Height)
		}
	}
	limit := h.stampLimit()
	for _, g := range slices.Clone(h.groups) { // one whose last member ends is taken out
		if g.w <= to.Height {
			continue
		}
		from := h.named(g.w)
		for s := g.members.first; s != nil; {
			next := s.next // it may end
			if s.corr && s.base.Height >= lost {
				s.corr, s.head, s.tail = false, 0, 0
				h.kill(s, fmt.Errorf("rolling back to %v below the base %v: %w", to, s.base, ErrResync))
				s = next
				continue
			}
			s.typed.addRollback(*to, from)
			for _, x := range h.hitsOf(s) {
				if u := x.eff.UTxO; norm(u.At).Height <= to.Height {
					s.typed.(*UTxOSubscription).addCorrection(u, stamp(norm(u.At), limit), to)
				}
			}
			s.corr = false
			s.lowerBase(to)
			s.typed.commit()
			h.touch(s)
			s = next
		}
		g.w = to.Height
	}
	clear(h.touched)
	h.touched, h.hits = h.touched[:0], h.hits[:0]
	h.mergeGroups()
}
