package main

import (
	"context"
	"sync"

	"github.com/ourotail/ourotail/chain"
)

// brake holds following back while a reader has more unread events than it
// should, or is further behind than a restart could make good: memory stays flat,
// and nothing is lost. Where others read what is followed it holds up nobody: the
// reader loses its subscription, and goes on with another. The zero brake does not
// hold.
type brake struct {
	mu     sync.Mutex
	sub    braked
	shared func() bool         // tells whether others read; nil if nobody can
	shown  func() chain.Height // up to where the reader will be shown; nil if that does not matter
	most   chain.Height        // how far that may be above what is out
	out    chain.Height        // what is out
	room   chan struct{}       // gets a token when the reader has caught up
	lost   bool                // the subscription was given up
	off    bool
}

// braked is a reader's subscription.
type braked interface {
	Pending() int
	Cancel()
}

// Following waits from brakeOn unread events until there are brakeOff left.
var (
	brakeOn  = 20_000
	brakeOff = 5_000
)

// share has a brake hold nothing while others read.
func (b *brake) share(shared func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shared = shared
}

// watch begins to hold back for a subscription.
func (b *brake) watch(sub braked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sub, b.shown, b.lost, b.off = sub, nil, false, false
	if b.room == nil {
		b.room = make(chan struct{}, 1)
	}
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
	for most := brakeOn - 1; b.holds(most); most = brakeOff {
		b.mu.Lock()
		room := b.room
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
	}
	return nil
}

// holds tells whether the reader has more than so many unread events, or is too far
// behind, and nobody else would be held up.
func (b *brake) holds(most int) bool {
	b.mu.Lock()
	sub, shared, off := b.sub, b.shared, b.off
	b.mu.Unlock()
	if sub == nil || off {
		return false
	}
	n := sub.Pending()
	switch {
	case n <= most && b.near():
		return false
	case shared == nil || !shared():
		return true
	case n >= brakeOn: // memory stays flat
		b.mu.Lock()
		b.lost = b.sub == sub
		b.mu.Unlock()
		sub.Cancel()
	}
	return false
}

// dropped tells whether the reader's subscription was given up for the others.
func (b *brake) dropped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// cancel ends the reader's subscription.
func (b *brake) cancel() {
	b.mu.Lock()
	sub := b.sub
	b.mu.Unlock()
	if sub != nil {
		sub.Cancel()
	}
}

// near tells whether what is out is near enough.
func (b *brake) near() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown == nil || b.shown() <= b.out+b.most
}

// read notes that the reader took an event.
func (b *brake) read(sub braked) {
	if sub.Pending() == brakeOff {
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

// wake has whoever waits look again.
func (b *brake) wake() {
	b.mu.Lock()
	room := b.room
	b.mu.Unlock()
	select {
	case room <- struct{}{}:
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
