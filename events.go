package ourotail

import (
	"time"

	"github.com/ourotail/ourotail/chain"
)

// UTxOEvent is an output created or spent, a RolledBack, or an Idle. On RolledBack a
// reader discards every event whose At.Height is greater than that of its At: what
// was created there is gone, what was spent there is unspent again.
type UTxOEvent struct {
	chain.UTxOEvent
	origin stamp
}

// Cursor returns the text from which Resume goes on behind this event; empty for
// Existing's outputs, but for the last of them: before that there is nothing to
// resume from.
func (e *UTxOEvent) Cursor() string { return e.origin.cursor(e.UTxOEvent.Cursor()) }

// Time returns when the slot of At began, in UTC: for an output of Existing that of
// its creation. It is zero where At is origin, and where Follower.Time has no answer.
func (e *UTxOEvent) Time() time.Time { return e.origin.time(e.At.Point) }

// TxEvent is a transaction included in a block, a RolledBack, or an Idle; see
// UTxOEvent for what a RolledBack means.
type TxEvent struct {
	chain.TxEvent
	origin stamp
}

// Cursor returns the text from which Resume goes on behind this event.
func (e *TxEvent) Cursor() string { return e.origin.cursor(e.TxEvent.Cursor()) }

// Time returns when the slot of At began, in UTC; zero where At is origin.
func (e *TxEvent) Time() time.Time { return e.origin.time(e.At.Point) }

// BlockEvent is a block applied, or a RolledBack; see UTxOEvent for what that means.
type BlockEvent struct {
	chain.BlockEvent
	origin stamp
}

// Cursor returns the text from which Resume goes on behind this event.
func (e *BlockEvent) Cursor() string { return e.origin.cursor(e.BlockEvent.Cursor()) }

// Time returns when the slot of At began, in UTC; zero where At is origin.
func (e *BlockEvent) Time() time.Time { return e.origin.time(e.At.Point) }

// stamp turns the slots and cursors of a follower's events into times and text.
type stamp struct{ f *Follower }

func (s stamp) cursor(c chain.Cursor, ok bool) string {
	if !ok || s.f == nil {
		return ""
	}
	return chain.Token{Magic: s.f.cfg.Genesis.Magic, Cursor: c}.String()
}

func (s stamp) time(p chain.Point) time.Time {
	if p.IsOrigin() || s.f == nil {
		return time.Time{}
	}
	t, err := s.f.Time(p.Slot)
	if err != nil { // no calendar tells when Byron ended
		return time.Time{}
	}
	return t
}
