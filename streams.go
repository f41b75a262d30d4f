package ourotail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// UTxOs yields what happens to the outputs that the query wants: in the order of the
// chain, and what one block does together. Every loop over it is a subscription of
// its own, made when the loop begins; leaving the loop ends it.
//
// Following is started if nobody runs it, and goes on until Close. An error is
// yielded once, with an event that means nothing, and ends the loop: that of ctx when
// it has ended, an *OverflowError if the reader was too slow, what following
// failed of. When following ends as Config asked, the loop ends without one, after
// the last event; so does one that begins later, unless it begins at the tip, where
// nothing more will happen: its error wraps ErrEnded.
//
// The output an event names is shared and must not be written to.
func (f *Follower) UTxOs(ctx context.Context, q query.UTxO, opts ...UTxOOption) iter.Seq2[UTxOEvent, error] {
	stamp := stamp{f}
	return loop(ctx, f, opts, source[chain.UTxOEvent]{
		subscribe: func(o hub.Options) (hub.Subscription[chain.UTxOEvent], error) { return f.SubscribeUTxOs(ctx, q, o) },
		seed: func(at chain.At, yield func(chain.UTxOEvent, error) bool) (bool, error) {
			return f.seed(ctx, at, q, yield)
		},
	}, func(e chain.UTxOEvent) UTxOEvent { return UTxOEvent{e, stamp} })
}

// Txs yields the transactions that the query wants as blocks include them, those
// whose scripts failed among them; see UTxOs.
func (f *Follower) Txs(ctx context.Context, q query.Tx, opts ...Option) iter.Seq2[TxEvent, error] {
	stamp := stamp{f}
	return loop(ctx, f, opts, source[chain.TxEvent]{
		subscribe: func(o hub.Options) (hub.Subscription[chain.TxEvent], error) { return f.SubscribeTxs(q, o) },
	}, func(e chain.TxEvent) TxEvent { return TxEvent{e, stamp} })
}

// Blocks yields the blocks that the query wants, with everything they did; see UTxOs.
// With a query for a range of slots the loop ends when the chain has passed it.
func (f *Follower) Blocks(ctx context.Context, q query.Block, opts ...Option) iter.Seq2[BlockEvent, error] {
	stamp := stamp{f}
	return loop(ctx, f, opts, source[chain.BlockEvent]{
		subscribe: func(o hub.Options) (hub.Subscription[chain.BlockEvent], error) { return f.SubscribeBlocks(q, o) },
	}, func(e chain.BlockEvent) BlockEvent { return BlockEvent{e, stamp} })
}

// Tips yields the newest committed block, first the present one; origin if there is
// none. A slow reader misses those in between, never the last.
func (f *Follower) Tips(ctx context.Context) iter.Seq2[chain.Tip, error] {
	return func(yield func(chain.Tip, error) bool) {
		sub, err := f.SubscribeTips()
		if err != nil {
			yield(chain.Origin, err)
			return
		}
		defer sub.Cancel()
		defer f.demand()()
		pour(ctx, sub, yield)
	}
}

// source is where the events of a loop come from.
type source[E any] struct {
	subscribe func(hub.Options) (hub.Subscription[E], error)
	// seed yields the outputs that existed behind a block and tells whether the
	// reader wants more; nil where there are none.
	seed func(at chain.At, yield func(E, error) bool) (more bool, err error)
}

// loop yields the events of a source as the library's.
func loop[E, V any, O UTxOOption](ctx context.Context, f *Follower, opts []O, src source[E], wrap func(E) V) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		s, err := settle(opts)
		if err == nil {
			err = f.place(s)
		}
		if err == nil && s.hub.Start == hub.Tip {
			s.late = f.over() != nil
			defer f.demand()()
			err = f.reachTip(ctx)
		}
		if err != nil && !s.ended(err) {
			yield(none, f.named(err))
			return
		}
		src.pour(ctx, f, s, func(e E, err error) bool {
			if err != nil {
				return yield(none, f.named(f.overflow(err)))
			}
			return yield(wrap(e), nil)
		})
	}
}

// ended tells whether a start at the tip can do with what there is, following having
// ended before it got there: outputs that exist are read all the same, and a loop
// that was there in time has missed nothing.
func (s *settings) ended(err error) bool {
	if s.hub.Start != hub.Tip || !errors.Is(err, ErrEnded) || s.late && s.hub.Seed == hub.NoSeed {
		return false
	}
	s.resumes = true
	return true
}

// pour yields a source's events until it ends or the reader does.
func (src source[E]) pour(ctx context.Context, f *Follower, s *settings, yield func(E, error) bool) {
	var none E
	if s.resumes {
		defer f.demand()()
		if more, err := src.begin(f, &s.hub, yield); err != nil {
			yield(none, err)
		} else if more {
			r := resuming[E]{f: f, opts: s.hub, subscribe: src.subscribe, yield: yield}
			r.run(ctx)
		}
		return
	}
	sub, err := src.subscribe(s.hub)
	if err != nil && s.ended(err) {
		src.pour(ctx, f, s, yield)
		return
	}
	if err != nil {
		yield(none, err)
		return
	}
	defer sub.Cancel()
	defer f.demand()()
	pour(ctx, sub, yield)
}

// begin gives a start at the tip its place, and the reader its seed.
func (src source[E]) begin(f *Follower, o *hub.Options, yield func(E, error) bool) (more bool, err error) {
	if o.Start != hub.Tip {
		return true, nil
	}
	seeds := o.Seed != hub.NoSeed && o.Events != hub.SpentOnly
	o.Seed = hub.NoSeed
	for {
		if err := f.atGate(o); err != nil || !seeds {
			return true, err
		}
		o.After.Base, o.After.HasBase = o.After.At, true
		more, err = src.seed(o.After.At, yield)
		if orphaned := (*hub.OrphanedError)(nil); !errors.As(err, &orphaned) {
			return more, err
		}
		// A fork came before its first output was read.
	}
}

// pour yields the values of a subscription until it ends or the reader does.
func pour[E any](ctx context.Context, sub hub.Subscription[E], yield func(E, error) bool) {
	for {
		e, err := sub.Next(ctx)
		if errors.Is(err, io.EOF) || !yield(e, err) || err != nil {
			return
		}
	}
}

// place turns the point or the text where a loop begins into what the hub knows.
func (f *Follower) place(s *settings) error {
	switch s.hub.Start {
	case hub.After:
		at, err := f.standing(*s.point)
		s.hub.After = chain.Cursor{At: at, Place: chain.WholeBlock}
		return err
	case hub.Resume:
		c, err := f.parseToken(s.cursor)
		if err != nil && s.cursor == "" {
			return fmt.Errorf("ourotail: resuming: %w: while there is none yet say where to begin: FromOrigin, FromTip, From or Existing", err)
		}
		if err != nil {
			return fmt.Errorf("ourotail: resuming: %w", err)
		}
		s.hub.After = c
	}
	return nil
}

// standing gives a point that stands on our chain its height; see From for errors.
func (f *Follower) standing(p chain.Point) (chain.At, error) {
	if p.IsOrigin() {
		return chain.Origin, nil
	}
	m := f.moment()
	defer m.close()
	l, ok, err := m.v.Find(p)
	if err != nil {
		return chain.Origin, err
	}
	if ok {
		return m.published(l.At())
	}
	common, err := m.ancestor(p)
	if err != nil {
		return chain.Origin, err
	}
	if l, _, err = m.v.OrphanLink(p.Hash); err != nil {
		return chain.Origin, err
	}
	at := chain.At{Point: p, Height: l.Height}
	return at, &hub.OrphanedError{Point: at, Ancestor: common}
}

// askAgain is how long to wait before a node that did not tell its tip is asked
// again.
const askAgain = 500 * time.Millisecond

// reachTip waits until following has come to the node's present tip.
func (f *Follower) reachTip(ctx context.Context) error {
	tips, err := f.SubscribeTips()
	if err != nil {
		return err
	}
	defer tips.Cancel()
	if now := f.Progress(); now.Phase == follow.Following && now.Head.Height >= now.Tip.Height {
		return nil
	}
	tip, err := f.NodeTip(ctx)
	for err != nil {
		if _, _, ended := tips.Poll(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAgain):
		}
		tip, err = f.NodeTip(ctx)
	}
	for {
		at, err := tips.Next(ctx)
		if errors.Is(err, io.EOF) {
			return f.named(hub.ErrClosed)
		}
		if err != nil || at.Height >= tip.Height {
			return err
		}
	}
}
