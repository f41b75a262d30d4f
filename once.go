package ourotail

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
	"github.com/ourotail/ourotail/store"
)

// WatchKind is what a watch tells.
type WatchKind uint8

// The kinds. On one branch of the chain a watch gives its updates, Confirmed or
// Failed, and Done, in this order and each once. NegativeConf takes all of it back:
// it begins anew, and may go the other way. Zero is the kind of no event, such as
// comes with an error.
const (
	// Update: it is in a block, and Left more are wanted, fewer each time. The first
	// comes with the block itself; none with a depth of 0.
	Update WatchKind = iota + 1
	// Confirmed: as many blocks as were asked for lie on top, and its scripts passed.
	Confirmed
	// NegativeConf: a fork has undone its block, with Depth blocks on top.
	NegativeConf
	// Done: k blocks lie on top, no fork can undo it. It is the last, of one whose
	// scripts failed too: see Valid.
	Done
	// Failed stands in the place of Confirmed if the transaction's scripts failed
	// (phase 2). It is in the chain, but it did nothing except that it spent its
	// collateral, and made the return of that: its outputs do not exist.
	Failed
)

var watchNames = [...]string{"none", "update", "confirmed", "negative", "done", "failed"}

// String returns the kind in lower case.
func (k WatchKind) String() string {
	if int(k) < len(watchNames) {
		return watchNames[k]
	}
	return fmt.Sprintf("watch(%d)", uint8(k))
}

// WatchEvent is what has become of a transaction.
type WatchEvent struct {
	Kind  WatchKind
	At    chain.At // its block; of NegativeConf the one that it was in
	Left  int      // of Update: blocks still wanted on top
	Depth int      // blocks on top; of NegativeConf those that were
	// Valid tells whether its scripts passed, of every kind of event. Of Confirmed
	// it is true, of Failed false.
	Valid bool
	// Tx is shared. It is nil where the transaction is older than the journal, so
	// that Confirmed or Failed, and Done, are all there is.
	Tx *chain.AppliedTx
}

// WatchTx yields what becomes of a transaction until no fork can undo it: how many
// blocks are Left until depth of them lie on top of its own, that it is Confirmed,
// that a fork took it back, that it is Done. One whose scripts failed is in the chain
// too: it is Failed instead of Confirmed.
//
// A transaction that is in the chain already is found, however deep, unless nothing is
// kept of it: its outputs were all spent k blocks ago or more, and the directory is no
// archive; or it made none (of those that failed, one without a collateral return).
// Such a one is waited for in vain. Where what is kept does not tell whether the
// scripts passed, the node is asked for the block.
//
// Depth is at most k, in blocks: 0 is at once. As with UTxOs following is started,
// and an error ends the loop.
func (f *Follower) WatchTx(ctx context.Context, id chain.TxID, depth int) iter.Seq2[WatchEvent, error] {
	return f.once(ctx, depth, func(t *chain.AppliedTx) bool { return t.ID == id },
		func(v *View) (spot, bool, error) { return f.spotOf(ctx, v, id) })
}

// WatchOutput yields what becomes of the transaction that spends an output; see
// WatchTx. If that is Failed it spent the output all the same, as its collateral. A
// spend that lies k blocks deep or more is found in an archive only.
func (f *Follower) WatchOutput(ctx context.Context, ref chain.TxIn, depth int) iter.Seq2[WatchEvent, error] {
	return f.once(ctx, depth, func(t *chain.AppliedTx) bool {
		for i := range t.Spent {
			if t.Spent[i].UTxO.Ref == ref {
				return true
			}
		}
		return false
	}, func(v *View) (spot, bool, error) {
		_, by, ok, err := v.snap.Spent(ref)
		if err != nil || !ok {
			return spot{}, false, err
		}
		s, made, err := f.made(ctx, v.snap, by.Tx)
		if !made {
			s = spot{id: by.Tx, height: by.Height}
		}
		return s, true, err
	})
}

// once watches for one transaction. find tells where it is if that is in the view's
// chain.
func (f *Follower) once(ctx context.Context, depth int, is func(*chain.AppliedTx) bool, find func(*View) (spot, bool, error)) iter.Seq2[WatchEvent, error] {
	return func(yield func(WatchEvent, error) bool) {
		k := int(f.cfg.Genesis.K)
		if depth < 0 || depth > k {
			yield(WatchEvent{}, fmt.Errorf("%w: a depth of %d, want 0 to k = %d", ErrOption, depth, k))
			return
		}
		defer f.demand()()
		err := f.reachTip(ctx)
		var from chain.At
		var old *settled
		if err == nil {
			from, old, err = f.before(ctx, find)
		}
		if err != nil {
			yield(WatchEvent{}, err)
			return
		}
		w := watched{depth: depth, k: k, is: is, yield: yield}
		if old != nil {
			w.at, w.included, w.valid = old.at, true, old.valid
			_ = w.tell(w.good(), k) && w.tell(Done, k)
			return
		}
		s := &settings{hub: hub.Options{Start: hub.Resume, After: chain.Cursor{At: from, Place: chain.WholeBlock}, Bound: watchBuffer}, resumes: true}
		blocks := source[chain.BlockEvent]{subscribe: func(o hub.Options) (hub.Subscription[chain.BlockEvent], error) {
			return f.SubscribeBlocks(query.EveryBlock(), o)
		}}
		blocks.pour(ctx, f, s, w.take)
	}
}

// watchBuffer is how many blocks may wait for the reader of a watch.
const watchBuffer = 64

// settled is a transaction that no fork can reach.
type settled struct {
	at    chain.At // its block
	valid bool
}

// before returns the block behind which a watch begins: the head, or the parent of
// the transaction's block. Old is the transaction if no fork can reach it.
func (f *Follower) before(ctx context.Context, find func(*View) (spot, bool, error)) (from chain.At, old *settled, err error) {
	s, from, at, err := f.whereabouts(find)
	if err != nil || at == nil {
		return from, nil, err
	}
	if s.verdict == undecided {
		if s.verdict, err = f.decide(ctx, from, *at, s.id); err != nil {
			return from, nil, fmt.Errorf("whether the scripts of %v passed, which is in %v: %w", s.id, *at, err)
		}
	}
	return from, &settled{*at, s.verdict == passed}, nil
}

// whereabouts has no at unless no fork can reach that.
func (f *Follower) whereabouts(find func(*View) (spot, bool, error)) (s spot, from chain.At, at *chain.At, err error) {
	v := f.View()
	defer v.Close()
	defer damaged(&err)
	s, found, err := find(v)
	if err != nil {
		return s, from, nil, err
	}
	if !found {
		from, err = f.linkAt(v.snap, v.Head().Height)
		return s, from, nil, err
	}
	if from, err = f.linkAt(v.snap, s.height-1); err != nil || s.height > f.State().Highest-chain.Height(f.cfg.Genesis.K) {
		return s, from, nil, err
	}
	block, err := f.linkAt(v.snap, s.height)
	return s, from, &block, err
}

// spotOf finds the block that a transaction is in.
func (f *Follower) spotOf(ctx context.Context, v *View, id chain.TxID) (spot, bool, error) {
	for h := v.snap.Head().Height; h > chain.OriginHeight; h-- {
		txs, err := v.snap.Txs(chain.Position{Height: h})
		if errors.Is(err, store.ErrNoRecord) {
			break
		}
		if err != nil {
			return spot{}, false, err
		}
		for i := range txs {
			if txs[i].ID == id {
				return spot{id, h, verdictOf(txs[i].Valid)}, true, nil
			}
		}
	}
	return f.made(ctx, v.snap, id) // it is deeper, or nowhere: its outputs tell
}

// watched is a watch that is being read.
type watched struct {
	depth, k int
	is       func(*chain.AppliedTx) bool
	yield    func(WatchEvent, error) bool

	included  bool
	confirmed bool
	valid     bool
	at        chain.At
	tx        *chain.AppliedTx
	left      int          // of the newest update
	tip       chain.Height // up to which blocks were seen
}

// good is what it is called once it is deep enough.
func (w *watched) good() WatchKind {
	if w.valid {
		return Confirmed
	}
	return Failed
}

func (w *watched) tell(kind WatchKind, on int) bool {
	e := WatchEvent{Kind: kind, At: w.at, Depth: on, Valid: w.valid, Tx: w.tx}
	if kind == Update {
		e.Left = w.depth - on
	}
	return w.yield(e, nil)
}

// take looks at a block, and tells whether the watch goes on.
func (w *watched) take(e chain.BlockEvent, err error) bool {
	if err != nil {
		return w.yield(WatchEvent{}, err)
	}
	if e.Kind == chain.RolledBack {
		on := int(w.tip - w.at.Height)
		w.tip = e.At.Height
		if !w.included || w.at.Height <= e.At.Height {
			return true
		}
		more := w.tell(NegativeConf, on)
		w.included, w.valid, w.confirmed, w.tx = false, false, false, nil
		return more
	}
	if e.Kind != chain.Applied {
		return true
	}
	w.tip = e.At.Height
	if !w.included {
		w.find(e.Block)
	}
	if !w.included {
		return true
	}
	on := int(w.tip - w.at.Height)
	if !w.confirmed && on < w.depth {
		if left := w.depth - on; left < w.left { // else a fork above it made us wait again
			w.left = left
			return w.tell(Update, on)
		}
		return true
	}
	if !w.confirmed {
		w.confirmed = true
		if !w.tell(w.good(), on) {
			return false
		}
	}
	if on < w.k {
		return true
	}
	w.tell(Done, on)
	return false
}

func (w *watched) find(b *chain.AppliedBlock) {
	for i := range b.Txs {
		if t := &b.Txs[i]; w.is(t) {
			w.included, w.valid, w.at, w.tx, w.left = true, t.Valid, b.At, t, w.depth+1
			return
		}
	}
}
