package hub

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// ApplyBlock takes the next block and gives every subscription what is due to
// it (contract 3.6). The block belongs to the hub from here on and must not be
// changed. A block that does not come next is refused with ErrHeight.
func (h *Hub) ApplyBlock(b *chain.AppliedBlock) error {
	flush, err := h.BufferBlock(b)
	flush()
	return err
}

// BufferBlock is the first half of ApplyBlock: everything has happened but
// nothing can be observed. The function it returns, never nil, is the second
// half; call it once the caller's own lock is released. Calling it again does
// nothing.
func (h *Hub) BufferBlock(b *chain.AppliedBlock) (flush func(), err error) {
	h.mu.Lock()
	err = h.apply(b)
	return h.unlock(), err
}

func (h *Hub) apply(b *chain.AppliedBlock) error {
	if h.failed != nil {
		return h.failed
	}
	if err := h.comesNext(b.At); err != nil {
		return err
	}
	if !h.cfg.Capabilities.Partial && !b.Coverage.Complete {
		return fmt.Errorf("%w: %v", ErrCoverage, b.At)
	}
	h.win.push(entry{at: b.At, parent: h.tip, cov: b.Coverage, b: b})
	h.tip = b.At
	h.highest = max(h.highest, b.At.Height)
	h.tipChanged()
	h.statusApplied(h.win.entry(h.win.n - 1))
	for s := h.loose.first; s != nil; {
		next := s.next // release may end it
		h.release(s)
		s = next
	}
	h.releaseGroups()
	h.tryHeld()
	h.trim()
	return nil
}

// comesNext checks the height of a block (contract 1.5).
func (h *Hub) comesNext(at chain.At) error {
	if h.cfg.Capabilities.Partial {
		if at.Height <= h.tip.Height || at.Height < h.cfg.FirstHeight {
			return fmt.Errorf("%w: %v, the tip is %v", ErrHeight, at, h.tip)
		}
		return nil
	}
	if want := max(h.tip.Height+1, h.cfg.FirstHeight); at.Height != want {
		return fmt.Errorf("%w: %v, want height %d", ErrHeight, at, want)
	}
	return nil
}

// next is the height that comes after a watermark: the chain has none below
// its first.
func (h *Hub) next(w chain.Height) chain.Height { return max(w+1, h.cfg.FirstHeight) }

// releaseGroups gives every group what is due to it, block by block, so that
// blocks that are due to several groups are matched once.
func (h *Hub) releaseGroups() {
	advanced := false
	for {
		var due chain.Height
		found := false
		for _, g := range h.groups {
			if n := h.next(g.w); n <= h.tip.Height-g.depth && (!found || n < due) {
				due, found = n, true
			}
		}
		if !found {
			break
		}
		advanced = true
		for _, g := range h.groups {
			g.releasing = h.next(g.w) == due && due <= h.tip.Height-g.depth
		}
		h.releaseBlock(h.win.at(due))
		for _, g := range h.groups {
			if g.releasing {
				g.w, g.releasing = due, false
			}
		}
	}
	if advanced && len(h.groups) > 1 {
		h.mergeGroups()
	}
}

// releaseBlock gives a block to the groups that are marked as releasing.
func (h *Hub) releaseBlock(e *entry) {
	start := h.serial
	h.match(e.b, matchReleasing)
	for i, s := range h.touched {
		s.typed.addHits(e.at, h.hitsOf(s))
		s.typed.commit()
		h.touch(s)
		h.touched[i] = nil
	}
	for s := range h.idlers {
		if s.mark <= start && s.group != nil && s.group.root().releasing {
			s.typed.addIdle(e.at)
			s.typed.commit()
			h.touch(s)
		}
	}
	for p := h.index[Blocks].all; p != nil; {
		next := p.next
		h.finish(p.sub, e.at.Point.Slot)
		p = next
	}
	h.touched, h.hits = h.touched[:0], h.hits[:0]
}

// finish ends a subscription over a range of slots once its position has
// passed the range (contract 3.13).
func (h *Hub) finish(s *sub, slot chain.Slot) {
	if s.state == live && (s.group == nil || s.group.root().releasing) && s.typed.passed(slot) {
		h.drop(s)
		s.typed.mail().CloseBuffered()
		h.touch(s)
	}
}

// release gives one subscription everything that is due to it.
func (h *Hub) release(s *sub) {
	if h.addDue(s) {
		s.typed.commit()
	}
}

// addDue gathers everything that is due to a subscription which is not in a
// group; false if it came to a gap and died.
func (h *Hub) addDue(s *sub) bool {
	n := 0
	for due := h.next(s.w); due <= h.tip.Height-s.depth; due = h.next(s.w) {
		e := h.win.at(due)
		if e == nil || !s.typed.covered(e.cov) {
			if !s.started {
				s.w = due
				continue
			}
			s.typed.discard()
			h.kill(s, &GapError{Height: due})
			return false
		}
		s.started = true
		s.w = due
		found := s.typed.addBlock(e.b, chain.WholeBlock)
		if found == 0 && s.idle {
			s.typed.addIdle(e.at)
			found = 1
		}
		n += found
		if s.typed.passed(e.at.Point.Slot) {
			s.typed.commit()
			h.drop(s)
			s.typed.mail().CloseBuffered()
			h.touch(s)
			return false
		}
	}
	if n > 0 {
		h.touch(s)
	}
	return true
}

// trim forgets what nobody can need any more (contract 3.6).
func (h *Hub) trim() {
	h.prune()
	h.thin()
	h.settleStatuses()
	if len(h.orphans) > 0 {
		limit := h.stampLimit()
		for p, o := range h.orphans {
			if o.at.Height <= limit {
				delete(h.orphans, p)
			}
		}
	}
}

// prune drops the blocks that are too deep.
func (h *Hub) prune() {
	low := h.highest - h.cfg.Capabilities.horizon() - h.cfg.Capabilities.MaxConfirmations
	if h.await.n > 0 {
		low = min(low, max(h.awaiting.lowest(h.tip.Height), h.tip.Height-h.cfg.SeedWindow))
	}
	for h.win.n > 0 && h.win.entry(0).at.Height <= low {
		h.dropTxs(h.win.entry(0))
		h.win.dropOldest()
	}
}
