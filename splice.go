package ourotail

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// spliced is a stream that begins in the past: first a replay gives it events, on
// the goroutine of whoever reads, then the live hub does. It goes over behind a block
// that the replay has given whole, at a moment when nothing moves, so that there is no
// gap and no repeat; what forks have done meanwhile the hub makes good, as for any
// cursor.
type spliced[E any] struct {
	f         *Follower
	subscribe func(*hub.Hub, hub.Options) (hub.Stream[E], error)
	opts      hub.Options
	behind    chain.Cursor // events of its block up to its place were given before

	reading chan struct{} // full while somebody goes on with the replay: one at a time
	past    *replay       // guarded by reading; nil once live
	closing bool          // the live hub is closed: the end is its tip

	refused   chain.Cursor // that the live hub, at refusedBy, could not begin behind
	refusedBy chain.At

	ctx    context.Context // ends with Cancel
	cancel context.CancelFunc

	mu    sync.Mutex
	live  bool // cur is the live hub's
	cur   hub.Stream[E]
	wake  func()
	last  chain.Cursor // of the last event that the reader got
	stood bool         // it has one
	err   error        // why it ended, if the hub does not say so
}

// splice subscribes in the past.
func splice[E any](f *Follower, at chain.At, opts hub.Options, subscribe func(*hub.Hub, hub.Options) (hub.Stream[E], error)) (_ hub.Stream[E], err error) {
	floor, err := f.published(f.store.Floor())
	if err != nil {
		return nil, err
	}
	of, behind := opts, chain.Cursor{Place: chain.WholeBlock}
	if opts.Start != hub.Origin && opts.After.Place >= 0 && at == opts.After.At && at.Height <= floor.Height {
		// The block begun is read again, from the node: what was given of it is left out.
		l, ok, err := f.store.LinkAt(chain.Position{Height: at.Height - 1})
		if err != nil {
			return nil, err
		}
		behind = opts.After
		if at = l.At(); !ok {
			at = chain.Origin
		}
		of.After.At, of.After.Place = at, chain.WholeBlock
	}
	past, err := f.newReplay(at, f.depth(&opts), of.After.At.Height)
	if err != nil {
		return nil, err
	}
	s := &spliced[E]{behind: behind, f: f, subscribe: subscribe, opts: opts, past: past, reading: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(f.life)
	of.Bound = hub.Unbounded // it is fed no faster than it is read
	if s.cur, err = subscribe(past.hub, of); err != nil {
		past.close()
		s.cancel()
		return nil, err
	}
	return s, nil
}

func (s *spliced[E]) current() (hub.Stream[E], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur, s.err
}

// Next implements hub.Subscription.
func (s *spliced[E]) Next(ctx context.Context) (v E, err error) {
	for {
		cur, err := s.current()
		if err != nil {
			return v, err
		}
		v, ok, err := cur.Poll()
		if ok && s.before(&v) {
			continue
		}
		if ok || err != nil {
			return v, s.given(&v, ok, err)
		}
		live, err := s.step(ctx)
		if err != nil {
			return v, err
		}
		if live {
			cur, err := s.current()
			if err != nil {
				return v, err
			}
			v, err = cur.Next(ctx)
			return v, s.given(&v, err == nil, err)
		}
	}
}

// before tells whether an event was given before the stream began.
func (s *spliced[E]) before(v *E) bool {
	if s.behind.Place == chain.WholeBlock {
		return false
	}
	e, is := any(v).(interface{ Cursor() (chain.Cursor, bool) })
	if !is {
		return false
	}
	c, ok := e.Cursor()
	return ok && c.At == s.behind.At && c.Place != chain.WholeBlock && c.Place <= s.behind.Place
}

// given remembers the cursor of what the reader gets. An overflow behind which the
// live hub knows none, since it was read in the past, gets it.
func (s *spliced[E]) given(v *E, ok bool, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		e, is := any(v).(interface{ Cursor() (chain.Cursor, bool) })
		if is {
			s.last, s.stood = e.Cursor()
		}
		return err
	}
	var full *hub.OverflowError
	if errors.As(err, &full) && !full.Resumable && s.stood {
		return &hub.OverflowError{Cursor: s.last, Resumable: true, Lost: full.Lost}
	}
	return err
}

// Replaying tells whether the stream is still in the past.
func (s *spliced[E]) Replaying() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.live && s.err == nil
}

// Poll implements hub.Subscription. In the past it does not wait either: what the
// replay has to read is read by another goroutine, and the wake callback tells.
func (s *spliced[E]) Poll() (v E, ok bool, err error) {
	cur, err := s.current()
	if err != nil {
		return v, false, err
	}
	for {
		if v, ok, err = cur.Poll(); ok && s.before(&v) {
			continue
		}
		if ok || err != nil || !s.Replaying() {
			return v, ok, s.given(&v, ok, err)
		}
		select {
		case s.reading <- struct{}{}:
		default:
			return v, false, nil
		}
		waits, err := s.goOn(s.ctx, true)
		if err != nil {
			<-s.reading
			return v, false, err
		}
		if waits {
			break
		}
		<-s.reading
		if cur, err = s.current(); err != nil {
			return v, false, err
		}
	}
	go func() {
		_, _ = s.goOn(s.ctx, false) // an error is kept
		<-s.reading
		s.mu.Lock()
		wake := s.wake
		s.mu.Unlock()
		if wake != nil {
			wake()
		}
	}()
	return v, false, nil
}

// All implements hub.Subscription.
func (s *spliced[E]) All(ctx context.Context) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for {
			v, err := s.Next(ctx)
			if errors.Is(err, io.EOF) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Wake implements hub.Subscription.
func (s *spliced[E]) Wake(fn func()) {
	s.mu.Lock()
	s.wake = fn
	cur, live := s.cur, s.live
	s.mu.Unlock()
	if live {
		cur.Wake(fn)
	}
}

// Pending implements hub.Subscription: what has been replayed and not read.
func (s *spliced[E]) Pending() int {
	cur, _ := s.current()
	return cur.Pending()
}

// Cancel implements hub.Subscription.
func (s *spliced[E]) Cancel() {
	s.cancel()
	cur, _ := s.current()
	cur.Cancel()
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	if s.past != nil {
		s.past.close()
		s.past = nil
	}
}

// Cursor implements hub.Stream.
func (s *spliced[E]) Cursor() (chain.Cursor, bool) {
	cur, _ := s.current()
	return s.notBefore(cur.Cursor())
}

// notBefore is the cursor of a reader that began inside a block and has not got
// further yet: where it began.
func (s *spliced[E]) notBefore(c chain.Cursor, ok bool) (chain.Cursor, bool) {
	b := s.behind
	if ok && b.Place != chain.WholeBlock && (c.At.Height < b.At.Height || c.At == b.At && c.Place != chain.WholeBlock && c.Place < b.Place) {
		return b, true
	}
	return c, ok
}

// Watermark implements hub.Stream.
func (s *spliced[E]) Watermark() (chain.Cursor, bool) {
	cur, _ := s.current()
	return s.notBefore(cur.Watermark())
}
