package ourotail

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/store"
)

// ViewAt opens the set of unspent outputs as it was behind a block among the last k
// of our chain; a boundary block stands for the block below it. It is the present
// view wound back over the journal, so it holds in memory what the blocks above the
// point spent, and the references of what they made; reading it costs what reading
// View does. Whatever is followed meanwhile does not change it. It must be closed.
//
// The error is a *hub.OlderError if the point is too old, which names the oldest
// possible; a *hub.OrphanedError if a fork undid it; it wraps ErrForgotten if the
// point is not known.
func (f *Follower) ViewAt(ctx context.Context, p chain.Point) (*View, error) {
	for {
		v := f.View() // first, so that a point that stands is not above it
		at, err := f.standing(p)
		if err == nil {
			var same bool
			if same, err = v.windBack(ctx, at); same && err == nil {
				return v, nil
			}
		}
		v.Close()
		if errors.Is(err, store.ErrNoRecord) {
			floor, ferr := f.published(f.State().Floor)
			if ferr != nil {
				return nil, ferr
			}
			err = &hub.OlderError{Point: at, Oldest: floor}
		}
		if err != nil {
			return nil, err
		}
		// The chain grew to the point, or a fork came to it, between the two looks.
	}
}

// windBack makes the view show the set behind a block; false if that is not on the
// chain of its snapshot.
func (v *View) windBack(ctx context.Context, at chain.At) (same bool, err error) {
	defer damaged(&err)
	w := &wound{head: chain.Link{Height: chain.OriginHeight}, gone: map[chain.TxIn]struct{}{}}
	if !at.IsOrigin() {
		l, ok, err := v.snap.LinkAt(chain.Position{Height: at.Height})
		if err != nil || !ok || l.Point != at.Point {
			return false, err
		}
		w.head = l
	}
	var e chain.Effects
	for h := v.snap.Head().Height; h > at.Height; h-- {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		pos := chain.Position{Height: h}
		if _, main, err := v.snap.LinkAt(pos); err != nil {
			return true, err
		} else if !main && at.IsOrigin() {
			break // the genesis boundary block
		}
		if err := v.snap.Effects(pos, &e); err != nil {
			return true, fmt.Errorf("winding back to %v: %w", at, err)
		}
		for i := range e.Created {
			w.gone[e.Created[i].Ref] = struct{}{}
		}
		for i := range e.Spent {
			if o := &e.Spent[i]; o.Height <= at.Height {
				w.back = append(w.back, *o)
			}
		}
	}
	slices.SortFunc(w.back, func(a, b chain.Output) int { return a.Ref.Compare(b.Ref) })
	v.wound = w
	return true, nil
}

// wound is how the set behind a block differs from that of a snapshot above it. Nil
// is no difference.
type wound struct {
	head chain.Link
	gone map[chain.TxIn]struct{} // what the blocks between made
	back []chain.Output          // what they spent and did not make, ascending by reference
}

// merge returns what to call for each output of the snapshot, in ascending order of
// reference, and what to call after the last, for fn to be called with each output
// of the set in that order.
func (w *wound) merge(fn func(*chain.Output) error) (take func(*chain.Output) error, rest func() error) {
	if w == nil {
		return fn, func() error { return nil }
	}
	back := w.back
	until := func(ref *chain.TxIn) error {
		for len(back) > 0 && (ref == nil || back[0].Ref.Compare(*ref) < 0) {
			o := back[0]
			back = back[1:]
			if err := fn(&o); err != nil {
				return err
			}
		}
		return nil
	}
	take = func(o *chain.Output) error {
		if err := until(&o.Ref); err != nil {
			return err
		}
		if _, gone := w.gone[o.Ref]; gone {
			return nil
		}
		return fn(o)
	}
	return take, func() error { return until(nil) }
}

func (w *wound) get(snap *store.Snapshot, ref chain.TxIn) (o chain.Output, ok bool, err error) {
	if w == nil {
		return snap.Get(ref)
	}
	if i, ok := slices.BinarySearchFunc(w.back, ref, func(o chain.Output, ref chain.TxIn) int { return o.Ref.Compare(ref) }); ok {
		return w.back[i], true, nil
	}
	if _, gone := w.gone[ref]; gone {
		return o, false, nil
	}
	return snap.Get(ref)
}
