package follow

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

var (
	// ErrDiverged is wrapped when the node's chain has no point of ours that we
	// can still roll back to.
	ErrDiverged = errors.New("the node's chain left ours deeper than we can roll back")
	// ErrBehind is wrapped while the node's chain is a part of ours: it is still
	// synchronising, and we wait.
	ErrBehind = errors.New("the node is behind us")
	// ErrNonsense is wrapped when the node said what no honest node says; the
	// session ends and the next one asks again.
	ErrNonsense = errors.New("the node sent what does not fit its own chain")
	// ErrUndecodable is wrapped when a block does not decode.
	ErrUndecodable = errors.New("a block does not decode")
	// ErrHandover is what Conn.Next returns when there is nothing more on this
	// connection and the next Dial goes on elsewhere: no failure.
	ErrHandover = errors.New("the connection has come to its end")
)

// FatalError ends Run: waiting will not help, a person must act.
type FatalError struct {
	Op    string // what was being done
	At    chain.At
	Cause error
	Hint  string
}

// Error implements error.
func (e *FatalError) Error() string {
	s := fmt.Sprintf("%s at %s: %v", e.Op, e.At, e.Cause)
	if e.Hint != "" {
		s += "\n  hint: " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *FatalError) Unwrap() error { return e.Cause }

// UndecodableError names a block that does not decode and where its bytes are.
type UndecodableError struct {
	Parent chain.At // our head when it came
	Size   int
	Saved  string // where its bytes were kept; empty if they were not
	Cause  error
}

// Error implements error.
func (e *UndecodableError) Error() string {
	s := fmt.Sprintf("%v: behind %s, %d bytes: %v", ErrUndecodable, e.Parent, e.Size, e.Cause)
	if e.Saved != "" {
		s += "; its bytes are in " + e.Saved
	}
	return s
}

// Unwrap returns ErrUndecodable and the cause.
func (e *UndecodableError) Unwrap() []error { return []error{ErrUndecodable, e.Cause} }
