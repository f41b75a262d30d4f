// Package trial is what this project's own tests may do to a follower: be told
// of each step, so that they can end the process there, and wait for less long.
// It stands at the bottom, so that every room may take it.
package trial

import (
	"context"
	"time"
)

// Trial is a test's hold on a follower. A nil one does nothing; its zero fields
// change nothing.
type Trial struct {
	// Step is called with the name of each step of opening, committing, undoing and
	// publishing, by the goroutine that is about to take it.
	Step func(name string)
	// MemTable is the size of the database's memtables in bytes, below what any
	// setting gives: then ordinary blocks are too large for a transaction, and
	// tables are written all the time.
	MemTable int64
	// Unmerged leaves the database's tables as they were written: nothing merges them
	// in the background. It must not write as many of them as make writers wait.
	Unmerged bool
	// Limits replace the defaults where they are set.
	Limits
}

type key struct{}

// With returns a context in which a follower that is opened is on trial: nobody outside
// this project can make one, and the options that everybody sees do not speak of it.
func With(ctx context.Context, t *Trial) context.Context { return context.WithValue(ctx, key{}, t) }

// Of returns the trial of a context, nil in all but tests.
func Of(ctx context.Context) *Trial {
	t, _ := ctx.Value(key{}).(*Trial)
	return t
}

// Limits are how long a follower waits.
type Limits struct {
	Handshake time.Duration // for a node to agree on a version
	Answer    time.Duration // for an answer that it owes
	Quiet     time.Duration // for a word of it, before it is asked over another connection
	Frozen    time.Duration // while it has another tip and does not tell
	Retry     time.Duration // the longest between two attempts to connect
}

// At tells the test of a step.
func (t *Trial) At(step string) {
	if t != nil && t.Step != nil {
		t.Step(step)
	}
}

// Waits returns the limits.
func (t *Trial) Waits() Limits {
	if t == nil {
		return Limits{}
	}
	return t.Limits
}
