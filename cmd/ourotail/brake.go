package main

import (
	"context"
	"sync"
)

// brake holds following back while a reader has more unread events than it
// should: memory stays flat, and nothing is lost. The zero brake does not hold.
type brake struct {
	mu      sync.Mutex
	pending func() int
	room    chan struct{} // gets a token when the reader has caught up
	off     bool
}

// Following waits from brakeOn unread events until there are brakeOff left.
const (
	brakeOn  = 20_000
	brakeOff = 5_000
)

// watch begins to hold back for a subscription.
func (b *brake) watch(sub interface{ Pending() int }) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending, b.room = sub.Pending, make(chan struct{}, 1)
}

// wait returns when there is room, or with the error of ctx.
func (b *brake) wait(ctx context.Context) error {
	b.mu.Lock()
	pending, room := b.pending, b.room
	b.mu.Unlock()
	if pending == nil || pending() < brakeOn {
		return nil
	}
	for pending() > brakeOff {
		if b.released() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
	}
	return nil
}

func (b *brake) released() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.off
}

// read notes that the reader took an event.
func (b *brake) read() {
	if b.pending() == brakeOff {
		b.wake()
	}
}

func (b *brake) wake() {
	select {
	case b.room <- struct{}{}:
	default:
	}
}

// release stops holding back: the reader is gone.
func (b *brake) release() {
	b.mu.Lock()
	b.off = true
	b.mu.Unlock()
	b.wake()
}
