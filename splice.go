package ourotail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

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

// step goes on with the replay until there is something to read, or over to the
// live hub, which it tells. An error of ctx ends nothing.
func (s *spliced[E]) step(ctx context.Context) (live bool, err error) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	type outcome struct {
		live bool
		err  error
	}
	// A reader whose patience ends leaves what was begun to go on: one that asks often
	// and waits briefly gets there, however slow the node is.
	done := make(chan outcome, 1)
	go func() {
		_, err := s.goOn(s.ctx, false)
		o := outcome{s.past == nil, err}
		<-s.reading
		done <- o
	}()
	select {
	case o := <-done:
		return o.live, o.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// pollBlocks is how many blocks of the journal Poll may read.
const pollBlocks = 256

// goOn is step for whoever has taken s.reading. With local it does nothing that
// waits for others, and not much; waits tells that it ended for that.
func (s *spliced[E]) goOn(ctx context.Context, local bool) (waits bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	for n := 0; ; n++ {
		if s.past == nil {
			return false, nil
		}
		cur, err := s.current()
		if err != nil || cur.Pending() > 0 {
			return false, err
		}
		switch {
		case s.f.life.Err() != nil:
			return false, s.failed(fmt.Errorf("%w: before the past was given whole: %w", ErrClosed, hub.ErrClosed))
		case s.ctx.Err() != nil:
			return false, hub.ErrCancelled
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
		head := s.f.hub.Tip()
		if head.Height-s.past.hub.Tip().Height <= nearEnough(&s.opts) {
			if done, err := s.goOver(cur); done || err != nil {
				return false, s.failed(err)
			}
		}
		before := s.past.hub.Tip()
		atTip := before == s.f.hub.Tip()
		if atTip && s.closing {
			s.past.hub.CloseAll() // the reader gets what is left, then the end
			return false, nil
		}
		if local && (atTip || n == pollBlocks || s.past.far()) {
			return true, nil
		}
		if atTip {
			if err := s.waitTip(ctx); err != nil {
				return false, err
			}
			continue
		}
		if s.past.far() { // within k there is little left, and a place to lose
			s.f.follow.GiveWay(ctx)
		}
		if err := s.past.feed(ctx, s.f.hub.Tip().Height); err != nil {
			if ctx.Err() != nil {
				continue
			}
			return false, s.failed(err)
		}
		if s.past.hub.Tip() == before { // a fork is under way
			if local {
				return true, nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

// waitTip waits until the live hub's tip is another than when it was called, or the
// hub ends.
func (s *spliced[E]) waitTip(ctx context.Context) error {
	tips, err := s.f.hub.SubscribeTip()
	if errors.Is(err, hub.ErrClosed) {
		s.closing = true
		return nil
	}
	if err != nil {
		return s.failed(err)
	}
	defer tips.Cancel()
	for range 2 { // the first is what it is now
		tip, err := tips.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			s.closing = true
			return nil
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return s.failed(err)
		case tip.Point != s.past.hub.Tip().Point:
			return nil
		}
	}
	return nil
}

// goOver subscribes to the live hub behind what the replay has given; false if
// that must be tried again.
func (s *spliced[E]) goOver(cur hub.Stream[E]) (bool, error) {
	if cur.Pending() > 0 {
		return false, nil
	}
	at, ok := cur.Watermark()
	if !ok { // a range of slots has passed, or it has failed: its reader is told
		return false, nil
	}
	opts := s.opts
	opts.Start, opts.After = hub.Resume, at
	var live hub.Stream[E]
	var err error
	moved := false
	s.f.follow.Locked(func() {
		far := s.f.hub.Tip().Height-s.past.hub.Tip().Height > nearEnough(&opts)
		if moved = far || at.At.Height < s.f.store.Floor().Height; !moved { // what it begins with is in the journal
			live, err = s.subscribe(s.f.hub, opts)
		}
	})
	if moved {
		return false, nil
	}
	var older *hub.OlderError
	if errors.As(err, &older) || errors.Is(err, hub.ErrShallow) {
		return false, nil // following has gone on
	}
	if errors.Is(err, hub.ErrClosed) { // what was committed is given all the same
		s.closing = true
		return false, nil
	}
	if lost(err) && (s.refused != at || s.refusedBy != s.f.hub.Tip()) { // the replay goes back, or says how old it is
		s.refused, s.refusedBy = at, s.f.hub.Tip()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	s.cur, s.live = live, true
	if s.wake != nil {
		live.Wake(s.wake)
	}
	s.mu.Unlock()
	s.past.close()
	s.past = nil
	if s.ctx.Err() != nil {
		live.Cancel()
	}
	return true, nil
}

// failed ends the stream with an error.
func (s *spliced[E]) failed(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.cur.Cancel()
		if s.past != nil {
			s.past.close()
		}
	}
	return s.err
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
