package ourotail

import (
	"context"
	"errors"
	"io"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// AutoResume lets a slow reader's loop go on where it would end with a
// *OverflowError: the rest is read from history, as fast as the reader takes it,
// with no event left out and none twice. So the loop holds no more than its Buffer,
// or what one fork takes back and corrects if that is more; Existing's outputs are
// read one by one while the reader takes them. It ends only when the reader is more
// than history behind: k blocks, or all of the chain with an archive.
func AutoResume() Option { return anyOption(func(s *settings) { s.resumes = true }) }

// resuming is a loop with AutoResume: one subscription after another.
type resuming[E any] struct {
	f         *Follower
	opts      hub.Options
	idle      bool // the reader wants them; for our cursor they are always asked for
	subscribe func(hub.Options) (hub.Subscription[E], error)
	yield     func(E, error) bool

	moved     bool            // the reader has come to a cursor since the last subscription
	corrected map[string]bool // ids of the corrections since the last RolledBack
	seeded    int             // genesis outputs, behind which there is no cursor yet, that the reader has had
	again     int             // how many of them the present subscription has still to give again
}

// event is what of an event does not depend on its kind.
type event interface {
	Cursor() (chain.Cursor, bool)
	ID() string
}

// kinds returns the kind of an event, and why it comes.
func kinds(e any) (k chain.EventKind, because chain.Because) {
	switch e := e.(type) {
	case *chain.UTxOEvent:
		return e.Kind, e.Because
	case *chain.TxEvent:
		return e.Kind, because
	case *chain.BlockEvent:
		return e.Kind, because
	}
	return 0, because
}

// run yields until the reader leaves or the loop ends.
func (r *resuming[E]) run(ctx context.Context) {
	r.idle, r.opts.Idle = r.opts.Idle, true
	r.corrected = map[string]bool{}
	for {
		err := r.one(ctx)
		var over *hub.OverflowError
		if !errors.As(err, &over) {
			if err != nil {
				var none E
				r.yield(none, err)
			}
			return
		}
		if !r.moved && r.opts.Bound > 0 { // what lies before the next cursor does not fit
			r.opts.Bound *= 2
		}
	}
}

// one reads one subscription, keeping where the reader stands. Nil is the end of the
// loop.
func (r *resuming[E]) one(ctx context.Context) error {
	sub, err := r.subscribe(r.opts)
	if err != nil {
		return err
	}
	defer sub.Cancel()
	r.moved, r.again = false, r.seeded
	for {
		e, err := sub.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !r.take(&e) {
			return nil
		}
	}
}

// take gives the reader an event, unless it did not ask for it or has had it, and
// tells whether it wants more.
func (r *resuming[E]) take(e *E) bool {
	ev := any(e).(event)
	kind, because := kinds(e)
	skip := kind == chain.Idle && !r.idle
	switch {
	case because == chain.Correction:
		skip = r.corrected[ev.ID()]
		r.corrected[ev.ID()] = true
	case because == chain.Seed && r.again > 0: // always in the same order
		skip = true
		r.again--
	case because == chain.Seed:
		r.seeded++
	case kind == chain.RolledBack:
		clear(r.corrected)
	}
	if !skip && !r.yield(*e, nil) {
		return false
	}
	if c, ok := ev.Cursor(); ok {
		r.moved = true
		r.opts.Start, r.opts.After, r.opts.Seed = hub.Resume, c, hub.NoSeed
	}
	return true
}

// atGate turns a start at the tip into one behind the block where it would stand now,
// so that it does not move while nothing has been read.
func (f *Follower) atGate(o *hub.Options) error {
	depth := o.Confirmations
	if o.NoRollback {
		depth = max(depth, chain.Height(f.cfg.Genesis.K))
	}
	var gate chain.At
	var err error
	f.follow.Locked(func() { // the hub knows it, even if a fork undoes it from here on
		gate = f.hub.Tip()
		if h := gate.Height - depth; depth > 0 && h >= f.cfg.Genesis.FirstHeight {
			gate, err = f.createdAt(h)
		} else if depth > 0 {
			gate = chain.Origin
		}
	})
	if err != nil {
		return err
	}
	o.Start, o.After = hub.Resume, chain.Cursor{At: gate, Place: chain.WholeBlock}
	return nil
}

// seed yields the outputs that existed behind a block of our chain as a seed, and
// tells whether the reader wants more.
func (f *Follower) seed(ctx context.Context, at chain.At, q query.UTxO, yield func(chain.UTxOEvent, error) bool) (more bool, err error) {
	v, err := f.ViewAt(ctx, at.Point)
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(f.life, stop)()
	limit := f.State().Highest - chain.Height(f.cfg.Genesis.K)
	var held *chain.UTxOEvent // one is held back: the last has to be marked
	more = true
	give := func() {
		if more && held != nil {
			more = yield(*held, nil)
		}
	}
	rows, ended := readSeed(ctx, v, q)
	for some := range rows {
		for _, u := range some {
			give()
			held = &chain.UTxOEvent{Kind: chain.Created, Because: chain.Seed, UTxO: u, At: u.At, Base: &at, NoCursor: true}
			if u.At.Height <= limit {
				held.At = chain.Origin
			}
		}
		if !more {
			stop()
		}
	}
	err = <-ended
	switch {
	case !more:
		return false, nil
	case f.life.Err() != nil:
		return false, ErrClosed
	case err == nil && held != nil:
		held.Mark, held.NoCursor = &at, false
		give()
	}
	return more, err
}

// seedRows is how many outputs of a seed are read at a time.
const seedRows = 64

// readSeed reads and closes a view on a goroutine of its own, no faster than it is
// read and until ctx ends: whoever is in the middle of a seed may close the follower,
// which waits for what reads the store.
func readSeed(ctx context.Context, v *View, q query.UTxO) (rows <-chan []*chain.UTxO, ended <-chan error) {
	out, end := make(chan []*chain.UTxO), make(chan error, 1)
	go func() {
		defer close(out)
		defer v.Close()
		var some []*chain.UTxO
		hand := func() error {
			select {
			case out <- some:
				some = nil
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err := v.UTxOs(ctx, q, func(u *chain.UTxO) error {
			if some = append(some, u); len(some) == seedRows {
				return hand()
			}
			select {
			case out <- some: // the reader waits
				some = nil
			default:
			}
			return nil
		})
		if err == nil && len(some) > 0 {
			err = hand()
		}
		end <- err
	}()
	return out, end
}
