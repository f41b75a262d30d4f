package hub

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// SeedResult is what became of a seed.
type SeedResult uint8

// The results (contract 3.5).
const (
	SeedIgnored SeedResult = iota // the subscription has one already, or is dead
	SeedTaken
	SeedHeld  // the hub is not there yet, or does not know enough: it waits
	SeedStale // to be read again
	SeedFatal // the subscription failed
)

var seedNames = [...]string{"ignored", "ok", "held", "stale", "dead"}

// String names the result.
func (r SeedResult) String() string {
	if int(r) < len(seedNames) {
		return seedNames[r]
	}
	return fmt.Sprintf("result(%d)", uint8(r))
}

// Seed hands in the outputs that the query wants and that existed at a point:
// the seed of a subscription registered with SeedLater (contract 3.5). The rows
// are the hub's from here on.
func (s *UTxOSubscription) Seed(at chain.At, rows []*chain.UTxO) (r SeedResult) {
	s.hub.lockedFlush(func() { r = s.hub.seed(&s.sub, norm(at), rows) })
	return r
}

// SeedFailed says that the seed could not be read: the subscription fails with
// ErrSeed and the cause.
func (s *UTxOSubscription) SeedFailed(cause error) {
	s.hub.lockedFlush(func() {
		if s.state == await && !s.wait.held {
			s.hub.kill(&s.sub, fmt.Errorf("%w: %w", ErrSeed, cause))
		}
	})
}

func (h *Hub) seed(s *sub, at chain.At, rows []*chain.UTxO) SeedResult {
	waits := func() bool { return s.state == await && !s.wait.held }
	if !waits() {
		return SeedIgnored
	}
	err := h.load(func() []chain.At {
		if !waits() {
			return nil
		}
		return h.thinAbove(min(at.Height, h.gate(s.depth, s.w)), h.tip.Height)
	})
	switch {
	case !waits():
		return SeedIgnored
	case err != nil:
		h.kill(s, fmt.Errorf("a seed read at %v: %w: %w", at, ErrResync, err))
		return SeedFatal
	}
	s.wait.at, s.wait.rows, s.wait.held = at, rows, true
	h.held[s] = struct{}{}
	return h.trySeed(s)
}

// tryHeld tries the seeds again that came too early.
func (h *Hub) tryHeld() {
	for s := range h.held {
		stale := s.wait.stale
		if h.trySeed(s) == SeedStale && stale != nil {
			h.later = append(h.later, stale)
		}
	}
}

func (h *Hub) trySeed(s *sub) SeedResult {
	w := s.wait
	turnDown := func() SeedResult {
		delete(h.held, s)
		w.at, w.rows, w.held = chain.At{}, nil, false
		return SeedStale
	}
	fatal := func() SeedResult {
		h.kill(s, fmt.Errorf("a seed read at %v: %w", w.at, ErrResync))
		return SeedFatal
	}
	if w.at.Height > h.tip.Height { // ahead of the hub
		if _, gone := h.orphans[w.at.Point]; gone {
			return turnDown()
		}
		return SeedHeld
	}
	if w.at.Height < h.win.floor.Height {
		return fatal()
	}
	if p, ok := h.pointAt(w.at.Height); !ok || p != w.at.Point {
		return turnDown()
	}
	// Where it stands: at its own point, or wound back to the gate.
	stands, at, rows := w.at.Height, &chain.At{}, w.rows
	*at = w.at
	if gate := h.gate(s.depth, s.w); stands > gate {
		if gate < h.win.floor.Height {
			return fatal()
		}
		if !h.coveredAll(s, gate, stands) {
			return SeedHeld
		}
		rows = h.windBack(s.typed.(*UTxOSubscription), rows, gate, stands)
		stands, at = gate, h.named(gate)
	}
	if !h.coveredAll(s, stands, h.tip.Height) {
		return turnDown()
	}
	delete(h.held, s)
	h.delist(s)
	s.w, s.base = stands, at
	h.highestBase = max(h.highestBase, stands)
	s.typed.(*UTxOSubscription).seed(rows, at, h.stampLimit())
	h.goLive(s)
	return SeedTaken
}

// coveredAll tells whether every height above low, up to high, was examined
// for the subscription.
func (h *Hub) coveredAll(s *sub, low, high chain.Height) bool {
	for x := h.next(low); x <= high; x++ {
		if e := h.win.at(x); e == nil || !s.typed.covered(e.cov) {
			return false
		}
	}
	return true
}

// windBack takes the blocks above low, up to high, back out of a seed (contract
// 3.4).
func (h *Hub) windBack(s *UTxOSubscription, rows []*chain.UTxO, low, high chain.Height) []*chain.UTxO {
	made := map[chain.TxIn]struct{}{}
	var back []*chain.UTxO
	for x := high; x > low; x-- {
		e := h.win.at(x)
		if e == nil {
			continue
		}
		for i := range e.b.Txs {
			t := &e.b.Txs[i]
			for j := range t.Created {
				made[t.Created[j].UTxO.Ref] = struct{}{}
			}
			for j := range t.Spent {
				if u := t.Spent[j].UTxO; s.q.Match(u) {
					back = append(back, u)
				}
			}
		}
	}
	if len(made) == 0 && len(back) == 0 {
		return rows
	}
	out := make([]*chain.UTxO, 0, len(rows)+len(back))
	for _, list := range [...][]*chain.UTxO{rows, back} {
		for _, u := range list {
			if _, ok := made[u.Ref]; !ok {
				out = append(out, u)
			}
		}
	}
	return out
}

// seed buffers a seed that stands at a point. Rows made at or below the limit
// carry origin.
func (s *UTxOSubscription) seed(rows []*chain.UTxO, at *chain.At, limit chain.Height) {
	last := len(rows) - 1
	s.box.SeedBuffered(len(rows), func(i int) chain.UTxOEvent {
		u := rows[i]
		e := chain.UTxOEvent{Kind: chain.Created, Because: chain.Seed, UTxO: u, At: stamp(norm(u.At), limit), Base: at, NoCursor: true}
		if i == last {
			e.Mark, e.NoCursor = at, false
		}
		return e
	})
}
