package mailbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// TestAFailureIsNoCleanEnd: a mailbox that fails of a broken connection never looks
// like one that was closed, and its error is still the connection's.
func TestAFailureIsNoCleanEnd(t *testing.T) {
	broken := &net.OpError{Op: "read", Err: fmt.Errorf("the node: %w", io.EOF)}
	delta, latest := NewDelta[int](4, nil), NewLatest[int](nil)
	delta.Fail(fmt.Errorf("the parameters: %w", broken))
	latest.Fail(broken)
	_, err := delta.Next(context.Background())
	_, lerr := latest.Next(context.Background())
	for _, err := range []error{err, lerr} {
		var op *net.OpError
		if err == nil || errors.Is(err, io.EOF) || !errors.Is(err, broken) || !errors.As(err, &op) || op != broken {
			t.Errorf("it ended with %v", err)
		}
	}
	n := 0
	for _, err := range delta.All(context.Background()) {
		if n++; err == nil {
			t.Error("a value came out")
		}
	}
	if n != 1 {
		t.Errorf("the loop told of %d errors", n)
	}
	plain := errors.New("disk")
	if failed(plain) != plain || failed(nil) != nil {
		t.Error("other causes do not stay as they are")
	}
}
