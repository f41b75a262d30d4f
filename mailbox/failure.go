package mailbox

import (
	"errors"
	"io"
)

// failure is the cause of a death that wraps io.EOF: a connection's end, say. It is
// that cause in every way but one: it must not pass for the clean end, which io.EOF
// tells, or what is missing would look complete.
type failure struct{ cause error }

// failed returns a cause as Next may give it.
func failed(cause error) error {
	if cause != nil && errors.Is(cause, io.EOF) {
		return failure{cause}
	}
	return cause
}

// Error implements error.
func (f failure) Error() string { return f.cause.Error() }

// Is tells whether the cause is target, for every target but io.EOF.
func (f failure) Is(target error) bool { return target != io.EOF && errors.Is(f.cause, target) }

// As finds in the cause what errors.As looks for.
func (f failure) As(target any) bool { return errors.As(f.cause, target) }
