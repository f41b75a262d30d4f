package mailbox

import (
	"context"
	"errors"
	"sync"
)

// ErrCancelled is what Next returns after the reader cancelled.
var ErrCancelled = errors.New("subscription cancelled")

// life is what both kinds of mailbox share: how they die and how readers wait.
// mu guards it and everything in the struct it is embedded in.
type life struct {
	mu      sync.Mutex
	end     error         // what Next returns once nothing is left; nil while alive
	pending error         // an end that no Flush has shown yet
	told    bool          // the owner knows of the end, or is just being told
	dirty   bool          // something was buffered since the last Flush
	waking  bool          // the callback is running
	again   bool          // and has to run once more
	wait    chan struct{} // closed when there is something to see; nil if nobody waits
	wake    func()
}

// Wake sets the callback that runs after every flush, close, failure or
// cancellation that has something to see, on the goroutine that did it, with
// no lock held and never twice at once. It must not block; it may read, cancel
// or subscribe. It is not run for what was there before: read once after
// setting it. Nil takes it away.
func (l *life) Wake(fn func()) {
	l.mu.Lock()
	l.wake = fn
	l.mu.Unlock()
}

// await waits for ch or the context; ch was taken under the lock.
func await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waiterLocked returns the channel that is closed at the next change.
func (l *life) waiterLocked() <-chan struct{} {
	if l.wait == nil {
		l.wait = make(chan struct{})
	}
	return l.wait
}

// notifyLocked releases whoever waits.
func (l *life) notifyLocked() {
	if l.wait != nil {
		close(l.wait)
		l.wait = nil
	}
}

// runWake runs the callback outside the lock. A second caller, or the callback
// itself by way of something it called, leaves word and returns: whoever runs
// it runs it again.
func (l *life) runWake() {
	l.mu.Lock()
	if l.wake == nil {
		l.mu.Unlock()
		return
	}
	if l.waking {
		l.again = true
		l.mu.Unlock()
		return
	}
	l.waking = true
	for fn := l.wake; fn != nil; fn = l.wake {
		l.again = false
		l.mu.Unlock()
		fn()
		l.mu.Lock()
		if !l.again {
			break
		}
	}
	l.waking = false
	l.mu.Unlock()
}
