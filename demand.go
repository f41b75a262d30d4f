package ourotail

import (
	"context"
	"errors"
	"sync"

	"github.com/ourotail/ourotail/follow"
)

// ErrFollowing is returned by Run and CatchUp while another of them has not
// returned.
var ErrFollowing = errors.New("ourotail: this follower is being run already")

// driver knows who follows: a caller of Run or CatchUp or, while loops want it and
// there is no such caller, a goroutine of our own.
type driver struct {
	mu     sync.Mutex
	called bool // Run or CatchUp has not returned
	wanted int  // loops and watches that live off following
	stop   context.CancelFunc
	done   chan struct{} // of the goroutine; nil if there is none
	closed bool
}

// demand has somebody follow until Close at the latest. The caller gives its
// demand up when it no longer reads.
func (f *Follower) demand() (release func()) {
	d := &f.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted++
	f.driveLocked()
	return sync.OnceFunc(func() {
		d.mu.Lock()
		d.wanted--
		d.mu.Unlock()
	})
}

// driveLocked starts the goroutine if it is wanted. One that has ended by itself
// is not started again: it has ended every subscription.
func (f *Follower) driveLocked() {
	d := &f.driver
	if d.called || d.closed || d.wanted == 0 || d.done != nil {
		return
	}
	// It serves every loop, whatever context the first of them has: Close ends it.
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	d.stop, d.done = stop, done
	go func() {
		defer close(done)
		err := f.run(ctx, f.configured())
		switch {
		case err == nil:
			f.hub.CloseAll()
		case ctx.Err() == nil:
			f.hub.FailAll(err) // unless it has failed of it
		}
	}()
}

// take stops the goroutine, for a caller that follows in its place or for Close.
func (f *Follower) take(closing bool) error {
	d := &f.driver
	d.mu.Lock()
	if d.called && !closing {
		d.mu.Unlock()
		return ErrFollowing
	}
	d.called, d.closed = !closing, d.closed || closing
	stop, done := d.stop, d.done
	d.stop, d.done = nil, nil
	d.mu.Unlock()
	if done != nil {
		stop()
		<-done
	}
	return nil
}

// drive is run on behalf of a caller.
func (f *Follower) drive(ctx context.Context, stop follow.Stop) error {
	if err := f.take(false); err != nil {
		return err
	}
	defer func() {
		f.driver.mu.Lock()
		defer f.driver.mu.Unlock()
		f.driver.called = false
		f.driveLocked()
	}()
	return f.run(ctx, stop)
}
