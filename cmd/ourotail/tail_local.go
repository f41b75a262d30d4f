package main

import (
	"context"
	"errors"
	"io"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
	"github.com/ourotail/ourotail/hub"
)

// follow subscribes, and follows and prints until it is done, or errGaveUp. The
// follower is closed then.
func (t *tail) follow(ctx context.Context, f *ourotail.Follower) (err error) {
	closes := true
	defer func() {
		if closes {
			err = errors.Join(err, f.Close())
		}
	}()
	t.lead = newLeading(t.brake.wake)
	t.lead.able.Store(t.sink.last != nil)
	t.brake.share(t.lead.shared)
	following, stop := context.WithCancel(ctx)
	defer stop()
	go t.lead.stops(following, stop)
	sub, first, err := t.req.begin(following, f, hub.Unbounded, func(ctx context.Context, h chain.Height) error {
		rep := newReporter(f, t.cmd.ErrOrStderr(), t.cfg.Logger)
		return attended(ctx, f, rep, t.lead, func(ctx context.Context) error { return f.CatchUp(ctx, h) })
	})
	if err != nil && t.lead.gaveUp() {
		return errGaveUp
	}
	if err != nil {
		return err
	}
	t.brake.watch(sub)
	rep := newReporter(f, nil, t.cfg.Logger)
	// A signal ends following, not reading: what is committed is printed, so that
	// the directory never stands above the last line.
	read := make(chan error, 1)
	go func() {
		err := t.readOn(context.WithoutCancel(ctx), f, sub, first)
		t.brake.release()
		if err != nil {
			stop() // nobody reads: nothing to follow for
		}
		read <- err
	}()
	err = ended(following, attended(following, f, rep, t.lead, f.Run))
	if t.lead.gaveUp() && err == nil {
		closes = false
		return t.giveUp(f, read)
	}
	f.CloseSubscriptions() // unless they have failed, the reader gets what is left, then the end
	if rerr := <-read; !errors.Is(rerr, hub.ErrCancelled) && !errors.Is(rerr, errLimit) {
		err = errors.Join(err, rerr) // its own, or what following failed of
	}
	return err
}

// read prints events until the subscription ends. Output is flushed whenever there
// is nothing more to print for now, and so often that the directory never gets
// further above it than a restart can make good.
func (t *tail) read(ctx context.Context, f *ourotail.Follower, sub hub.Stream[chain.UTxOEvent], first []chain.UTxOEvent) error {
	st := f.State()
	pieces := newPieces(&t.req, stampOf(f))
	pieces.printer.names = t.names
	within := st.K / 2
	t.sink.span = within / 4
	depth := t.req.depth(st.K)
	begins := chain.OriginHeight
	if c, ok := sub.Cursor(); ok {
		begins = c.At.Height
	} else if t.req.after != nil {
		begins = t.req.after.At.Height
	}
	t.brake.keepWithin(within, begins, func() chain.Height { return f.State().Head.Height - depth })
	flushed := begins
	flush := func() error {
		err := t.sink.flush()
		if h, ok := t.sink.reached(); ok && err == nil {
			t.brake.isOut(h)
			flushed = h
		}
		return err
	}
	for i := range first {
		if err := t.print(pieces, &first[i]); err != nil {
			return err
		}
	}
	if c, ok := sub.Cursor(); ok {
		if err := t.sink.take(&piece{Cursor: &chain.Token{Magic: st.Magic, Cursor: c}}); err != nil {
			return err
		}
	}
	t.lead.able.Store(t.sink.last != nil)
	if err := flush(); err != nil {
		return err
	}
	for {
		ev, err := sub.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return t.sink.end()
		case err != nil:
			return errors.Join(&streamError{err}, t.sink.end())
		}
		if err := t.print(pieces, &ev); err != nil {
			return errors.Join(err, t.sink.end())
		}
		if sub.Pending() == 0 || ev.At.Height > flushed+t.sink.span {
			if err := flush(); err != nil {
				return err
			}
		}
		t.brake.read(sub)
	}
}

func (t *tail) print(pieces *pieces, e *chain.UTxOEvent) error {
	p, err := pieces.of(e)
	if err != nil {
		return err
	}
	if err := t.sink.take(&p); err != nil {
		return err
	}
	t.lead.able.Store(!t.sink.begun || t.sink.last != nil)
	return nil
}

// stampOf is what lines say of a follower.
func stampOf(f *ourotail.Follower) record.Stamp {
	st := f.State()
	return record.Stamp{Magic: st.Magic, K: st.K, Highest: func() chain.Height { return f.State().Highest }, Time: f.Time}
}

// depth is how many blocks lie on top of what is shown.
func (q *tailRequest) depth(k chain.Height) chain.Height {
	if q.noRollback {
		return k
	}
	return q.confirmations
}
