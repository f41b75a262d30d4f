package ourotail

import (
	"errors"
	"sync"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/eras"
)

// calendar turns slots into times and back: after the node's era summaries once it
// has been asked, which is certain, before that after the genesis files, which
// take the lengths of Shelley to hold for ever.
type calendar struct {
	genesis eras.Summaries // empty if the files do not tell when Byron ended

	mu   sync.Mutex
	node eras.Summaries // empty until it was asked
}

func newCalendar(g *ledger.Genesis) calendar {
	s, ok := g.Eras()
	if !ok {
		s = eras.Summaries{SystemStart: g.SystemStart}
	}
	return calendar{genesis: s}
}

func (c *calendar) set(s eras.Summaries) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node = s
}

// best returns the node's, or that of the genesis.
func (c *calendar) best() eras.Summaries {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.node.List) > 0 {
		return c.node
	}
	return c.genesis
}

// Time returns when a slot begins, in UTC: of every event, for instance, whose
// point is known. The node's own calendar answers once it has been asked, the
// genesis before that. A slot of the future beyond what the node is certain of
// (some days ahead) is an *eras.HorizonError, which wraps eras.ErrHorizon; so is any
// slot while neither calendar is known, which only happens on networks whose genesis
// files do not tell when Byron ended.
func (f *Follower) Time(slot chain.Slot) (time.Time, error) {
	t, err := f.calendar.best().Time(slot)
	if errors.Is(err, eras.ErrHorizon) && slot <= f.store.Head().Point.Slot {
		// It is on the chain, and the node's answer older than that. The store's head,
		// which is there before its events are: whoever was told of a slot may ask.
		if t, gerr := f.calendar.genesis.Time(slot); gerr == nil {
			return t, nil
		}
	}
	return t, err
}

// Slot returns the slot that a time lies in: the last that has begun. Errors are
// those of Time, or wrap eras.ErrBeforeStart.
func (f *Follower) Slot(t time.Time) (chain.Slot, error) {
	slot, err := f.calendar.best().Slot(t)
	if errors.Is(err, eras.ErrHorizon) {
		if old, gerr := f.calendar.genesis.Slot(t); gerr == nil && old <= f.store.Head().Point.Slot {
			return old, nil
		}
	}
	return slot, err
}

// slotNow is Slot for a guess at the present: that of the genesis will do, where
// a node that is far behind the clock has no answer.
func (f *Follower) slotNow(t time.Time) (chain.Slot, bool) {
	for _, s := range []eras.Summaries{f.calendar.genesis, f.calendar.best()} {
		if slot, err := s.Slot(t); err == nil {
			return slot, true
		}
	}
	return 0, false
}
