package main

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// output is what a command prints to. It keeps the first error, so that none is
// lost where a command prints without looking, and writes nothing after it.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = &outputError{err}
	}
	return n, o.err
}

// failed returns what went wrong with writing, if anything did.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// outputError tells the standard output from everything else that is written to:
// a node's socket breaks with the same error as a pipe to a reader that had enough.
type outputError struct{ cause error }

func (e *outputError) Error() string { return "writing the output: " + e.cause.Error() }
func (e *outputError) Unwrap() error { return e.cause }

// readerGone tells whether an error is that nobody reads our output any more: a
// pipe's reader has ended, or a socket's. That is no failure.
func readerGone(err error) bool {
	e, ok := err.(*outputError) //nolint:errorlint // the leaf itself
	return ok && (errors.Is(e.cause, syscall.EPIPE) || errors.Is(e.cause, syscall.ECONNRESET))
}
