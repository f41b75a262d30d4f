package record

import (
	"time"

	"github.com/ourotail/ourotail/chain"
)

// Stamp is what a line says beside its event: when it was, where to resume behind it,
// and how final it is.
type Stamp struct {
	Magic uint32       // of the network
	K     chain.Height // its security parameter, in blocks
	// Highest returns the greatest height ever applied. It is called for each line.
	Highest func() chain.Height
	// Time returns when a slot begins; nil leaves times out.
	Time func(chain.Slot) (time.Time, error)
}

// Of returns the envelope of an event with its time, its cursor, the text of a chain.Token,
// and whether its block is final: k blocks lie on top of it, so that no rollback can
// reach it, counted as contract 3.9 does.
func (s Stamp) Of(e *chain.UTxOEvent) Envelope {
	env := Of(e)
	env.Time = s.time(e.At.Point)
	if t, ok := s.Token(e); ok {
		env.Cursor = t.String()
	}
	if e.Kind != chain.RolledBack {
		final := s.Highest()-e.At.Height >= s.K
		env.Final = &final
	}
	return env
}

// Token returns where a reader stands that has taken the event; false inside a seed.
func (s Stamp) Token(e *chain.UTxOEvent) (chain.Token, bool) {
	c, ok := e.Cursor()
	return chain.Token{Magic: s.Magic, Cursor: c}, ok
}

// time is the text of when a point's slot began; empty for origin, and where no
// calendar tells.
func (s Stamp) time(p chain.Point) string {
	if s.Time == nil || p.IsOrigin() {
		return ""
	}
	t, err := s.Time(p.Slot)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
