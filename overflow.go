package ourotail

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// OverflowError ends a loop that was slower than its Buffer. It wraps the hub's.
type OverflowError struct {
	// Cursor is that of the last event the reader was given: Resume goes on behind it.
	// It is empty if there was none, or what Existing gives was not read to its end:
	// then the loop has to begin as it began.
	Cursor string
	// Lost counts the events that waited for the reader and were let go.
	Lost int

	cause *hub.OverflowError
}

// Error implements error.
func (e *OverflowError) Error() string {
	if e.Cursor == "" {
		return fmt.Sprintf("the reader was too slow, %d events were let go, and it had no cursor yet: begin anew, with a larger Buffer or AutoResume", e.Lost)
	}
	return fmt.Sprintf("the reader was too slow, %d events were let go: resume behind %s, or use AutoResume", e.Lost, e.Cursor)
}

// Unwrap returns the hub's error.
func (e *OverflowError) Unwrap() error { return e.cause }

// overflow gives the hub's overflow a cursor that Resume takes; other errors stay as
// they are.
func (f *Follower) overflow(err error) error {
	over := (*hub.OverflowError)(nil)
	if !errors.As(err, &over) {
		return err
	}
	e := &OverflowError{Lost: over.Lost, cause: over}
	if over.Resumable {
		e.Cursor = chain.Token{Magic: f.cfg.Genesis.Magic, Cursor: over.Cursor}.String()
	}
	return e
}
