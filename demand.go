package ourotail

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/store"
)

var (
	// ErrFollowing is returned by Run and CatchUp while another of them has not
	// returned.
	ErrFollowing = errors.New("ourotail: this follower is being run already")
	// ErrClosed is wrapped by what Close has ended, or refused.
	ErrClosed = errors.New("ourotail: the follower is closed")
	// ErrEnded is wrapped when following has ended as Config asked, or
	// CloseSubscriptions was called, and what is asked for would need it to go on.
	ErrEnded = errors.New("ourotail: following has ended, open the follower anew")
)

// driver knows who follows: a caller of Run or CatchUp or, while loops want it and
// there is no such caller, a goroutine of our own.
type driver struct {
	mu     sync.Mutex
	called bool // Run or CatchUp has not returned
	wanted int  // loops and watches that live off following
	// Of the call or of the goroutine; nil if there is neither. The goroutine's stay
	// when it has ended by itself.
	stop   context.CancelCauseFunc
	done   chan struct{}
	closed bool
}

// closed tells whether Close was called.
func (f *Follower) closed() bool {
	f.driver.mu.Lock()
	defer f.driver.mu.Unlock()
	return f.driver.closed
}

// named gives an error of the hub or the store that comes of the end its name.
func (f *Follower) named(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrClosed), errors.Is(err, ErrEnded):
		return err
	case f.closed() && (errors.Is(err, hub.ErrClosed) || errors.Is(err, store.ErrClosed)):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, hub.ErrClosed):
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return err
}

// ended tells why nothing more is published; nil as long as it is.
func (f *Follower) ended() error {
	tips, err := f.hub.SubscribeTip()
	if err == nil {
		tips.Cancel()
	}
	return err
}

// over is ended in the words of the library.
func (f *Follower) over() error { return f.named(f.ended()) }

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
	if d.called || d.closed || d.wanted == 0 || d.done != nil || f.ended() != nil {
		return
	}
	// It serves every loop, whatever context the first of them has: Close ends it.
	ctx, stop := context.WithCancelCause(context.Background())
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

// take stops the goroutine for a caller, who follows in its place with a context
// that stop ends, and will say that it is done.
func (f *Follower) take(stop context.CancelCauseFunc) (done chan struct{}, err error) {
	d := &f.driver
	d.mu.Lock()
	if d.closed || d.called {
		defer d.mu.Unlock()
		if d.closed {
			return nil, ErrClosed
		}
		return nil, ErrFollowing
	}
	stopOld, old := d.stop, d.done
	done = make(chan struct{})
	d.called, d.stop, d.done = true, stop, done
	d.mu.Unlock()
	if old != nil {
		stopOld(nil)
		<-old
	}
	return done, nil
}

// give lets the loops' goroutine follow again if it is wanted.
func (f *Follower) give(done chan struct{}) {
	d := &f.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called, d.stop, d.done = false, nil, nil
	close(done)
	f.driveLocked()
}

// halt ends following for good, whoever drives, and waits for it.
func (f *Follower) halt() {
	d := &f.driver
	d.mu.Lock()
	d.closed = true
	stop, done := d.stop, d.done
	d.mu.Unlock()
	if done != nil {
		stop(ErrClosed)
		<-done
	}
}

// drive is run on behalf of a caller.
func (f *Follower) drive(ctx context.Context, until follow.Stop) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done, err := f.take(stop)
	if err != nil {
		return err
	}
	defer f.give(done)
	if err := f.over(); err != nil { // a block that is committed could not be published
		return err
	}
	err = f.run(ctx, until)
	var fatal *follow.FatalError // the last commit failed: that is no clean end
	if cause := context.Cause(ctx); errors.Is(cause, ErrClosed) && errors.Is(err, ctx.Err()) && !errors.As(err, &fatal) {
		return ErrClosed
	}
	return err
}
