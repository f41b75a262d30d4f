package hub

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/mailbox"
)

// What the hub refuses, and what subscriptions die of.
var (
	// ErrClosed is wrapped by every refusal after CloseAll.
	ErrClosed = errors.New("the hub is closed")
	// ErrFailed is wrapped, with the cause, by every refusal after FailAll.
	ErrFailed = errors.New("the hub has failed")
	// ErrUnsupported is wrapped by refusals of what the capabilities exclude.
	ErrUnsupported = errors.New("not supported")
	// ErrReach refuses a depth that window and journal do not reach (yet).
	ErrReach = errors.New("deeper than the blocks at hand")
	// ErrShallow refuses a start above what the depth allows to be seen.
	ErrShallow = errors.New("above the depth asked for")
	// ErrUnknownPoint refuses a point that is not on the hub's chain.
	ErrUnknownPoint = errors.New("not on this chain")
	// ErrHeight refuses a block that does not come next.
	ErrHeight = errors.New("not the next height")
	// ErrCoverage refuses a partial block from a provider that declared itself complete.
	ErrCoverage = errors.New("partial block from a complete provider")
	// ErrNoHorizon refuses a rollback from a provider that declared none.
	ErrNoHorizon = errors.New("no rollback horizon declared")
	// ErrAhead refuses a rollback to a height above the tip.
	ErrAhead = errors.New("above the tip")
	// ErrResync ends a subscription, or refuses a resume: what it needs is no
	// longer held, it has to start again from a new seed.
	ErrResync = errors.New("resync required")
	// ErrSeed ends a subscription whose seed could not be read.
	ErrSeed = errors.New("seed unreadable")
	// ErrBusy refuses an operation that needs a hub without subscribers.
	ErrBusy = errors.New("the hub has subscribers")
	// ErrCancelled is what a subscription returns after it was cancelled.
	ErrCancelled = mailbox.ErrCancelled
)

// GapError ends a subscription at a height that was due but not examined for
// it (contract 3.6), or refuses a start before one.
type GapError struct{ Height chain.Height }

func (e *GapError) Error() string {
	return fmt.Sprintf("gap: height %d was not examined for this query", e.Height)
}

// OrphanedError refuses a start after a point that has left the chain.
type OrphanedError struct{ Point, Ancestor chain.At }

func (e *OrphanedError) Error() string {
	return fmt.Sprintf("%v was orphaned; the common ancestor is %v", e.Point, e.Ancestor)
}

// OlderError refuses a start before the oldest point within reach, or inside the block
// of that point, whose events are no longer kept.
type OlderError struct{ Point, Oldest chain.At }

func (e *OlderError) Error() string {
	if e.Point == e.Oldest { // a cursor inside that block
		return fmt.Sprintf("the rest of block %v is no longer kept: what lies behind it is", e.Point)
	}
	return fmt.Sprintf("%v is older than the oldest point available, %v", e.Point, e.Oldest)
}

// OverflowError ends a subscription whose buffer filled up (contract 2.1).
type OverflowError struct {
	// Cursor is that of the last event which Next returned.
	Cursor chain.Cursor
	// Resumable tells whether Cursor is set: false if nothing was read, or the
	// seed not to its end, and there is nothing to resume from.
	Resumable bool
	// Lost counts the events after it that will never be read.
	Lost int
}

func (e *OverflowError) Error() string {
	if !e.Resumable {
		return fmt.Sprintf("buffer overflowed: %d events lost, and nothing to resume from (the start was not read to its end)", e.Lost)
	}
	return fmt.Sprintf("buffer overflowed: %d events lost after %v", e.Lost, e.Cursor)
}
