package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// leading is a tail that follows. Others may share it, and it gives the directory up
// to a run that asks.
type leading struct {
	sharing atomic.Int32  // readers on the control socket
	able    atomic.Bool   // another follower can go on behind the last line
	asked   chan struct{} // closed when a run has asked for the directory
	once    sync.Once
	wake    func() // called when a reader comes
}

func newLeading(wake func()) *leading { return &leading{asked: make(chan struct{}), wake: wake} }

// leaderHeader says who leads, where it is no run.
const leaderHeader = "Ourotail-Leader"

// errGaveUp ends following where the directory was given up to a run.
var errGaveUp = errors.New("the directory was given up to a run")

// join notes a reader; leave is called when it has gone.
func (l *leading) join() (leave func()) {
	if l == nil {
		return func() {}
	}
	l.sharing.Add(1)
	l.wake()
	return func() { l.sharing.Add(-1) }
}

// shared tells whether others read what we follow.
func (l *leading) shared() bool { return l.sharing.Load() > 0 }

// gaveUp tells whether a run has asked for the directory.
func (l *leading) gaveUp() bool {
	select {
	case <-l.asked:
		return true
	default:
		return false
	}
}

// stops ends following when a run has asked.
func (l *leading) stops(following context.Context, stop context.CancelFunc) {
	select {
	case <-l.asked:
		stop()
	case <-following.Done():
	}
}

// give answers a run that wants the directory. Before its own reader could go on with
// another follower, a tail keeps it.
func (l *leading) give(w http.ResponseWriter, _ *http.Request) error {
	if !l.able.Load() {
		return errors.New("the tail that follows has not come to where its lines begin, or prints what exists: try again")
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // before we end; who asked sees the directory free in any case
	l.once.Do(func() { close(l.asked) })
	return nil
}

// askToLeave asks whoever holds a directory to give it up, and tells whether that is
// a tail that does.
func askToLeave(ctx context.Context, dir string) bool {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	resp, err := requestControl(ctx, http.MethodPost, dir, "/leave", url.Values{})
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

// giveUpWait is how long a reader may take for the line it is at; one whose output is
// stalled goes on with the run when it can.
const giveUpWait = time.Second

// giveUp closes the follower and waits for the reader: what comes behind the last
// line that it has taken comes from the run.
func (t *tail) giveUp(f *ourotail.Follower, read <-chan error) error {
	t.brake.cancel()
	var rerr error
	waiting := false
	select {
	case rerr = <-read:
	case <-time.After(giveUpWait):
		waiting = true
	}
	err := f.Close()
	if waiting {
		rerr = <-read
	}
	t.sink.drop()
	switch {
	case errors.Is(rerr, errLimit):
		return err
	case rerr != nil && !errors.Is(rerr, errGaveUp):
		return errors.Join(err, rerr)
	case err != nil:
		return err
	}
	return errGaveUp
}

// streamError is of where events come from, not of where lines go.
type streamError struct{ cause error }

func (e *streamError) Error() string { return e.cause.Error() }
func (e *streamError) Unwrap() error { return e.cause }

// readOn reads, and where its subscription was given up for the sake of others that
// share us, begins another one behind the last line.
func (t *tail) readOn(ctx context.Context, f *ourotail.Follower, sub hub.Stream[chain.UTxOEvent], first []chain.UTxOEvent) error {
	for {
		err := t.read(ctx, f, sub, first)
		var stream *streamError
		switch ofStream := errors.As(err, &stream); {
		case t.lead.gaveUp() && (err == nil || ofStream):
			return errGaveUp
		case !ofStream || !t.brake.dropped():
			return err
		}
		t.sink.drop()
		if err := t.sink.goOn(); err != nil {
			return err
		}
		t.req = t.onward()
		if sub, first, err = t.req.begin(ctx, f, hub.Unbounded, func(ctx context.Context, h chain.Height) error { return comesTo(ctx, f, h) }); err != nil {
			return &streamError{err}
		}
		t.brake.watch(sub)
	}
}
