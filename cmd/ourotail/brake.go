package main

import (
	"context"
	"sync"

	"github.com/ourotail/ourotail/chain"
)

// brake holds following back while a reader has more unread events than it
// should, or is further behind than a restart could make good: memory stays flat,
// and nothing is lost. The zero brake does not hold.
type brake struct {
	mu      sync.Mutex
	pending func() int
	shown   func() chain.Height // up to where the reader will be shown; nil if that does not matter
	most    chain.Height        // how far that may be above what is out
	out     chain.Height        // what is out
	room    chan struct{}       // gets a token when the reader has caught up
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

// keepWithin begins to hold back so that shown stays within most blocks of what is
// out, which is at a height now.
func (b *brake) keepWithin(most chain.Height, out chain.Height, shown func() chain.Height) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.most, b.out, b.shown = most, out, shown
}

// wait returns when there is room, or with the error of ctx.
func (b *brake) wait(ctx context.Context) error {
	b.mu.Lock()
	pending, room := b.pending, b.room
	b.mu.Unlock()
	if pending == nil || pending() < brakeOn && b.near() {
		return nil
	}
	for pending() > brakeOff || !b.near() {
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

// near tells whether what is out is near enough.
func (b *brake) near() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown == nil || b.shown() <= b.out+b.most
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

// isOut notes that everything up to a height is out.
func (b *brake) isOut(h chain.Height) {
	b.mu.Lock()
	b.out = h
	b.mu.Unlock()
	b.wake()
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
