package ourotail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ourotail/ourotail/hub"
)

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
