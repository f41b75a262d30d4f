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

// The kinds. On one branch of the chain a watch gives its updates, Confirmed, and
// Done, in this order and each once. NegativeConf takes all of it back: it begins
// anew. Zero is the kind of no event, such as comes with an error.
const (
	// Update: it is in a block, and Left more are wanted, fewer each time. The first
	// comes with the block itself; none with a depth of 0.
	Update WatchKind = iota + 1
	// Confirmed: as many blocks as were asked for lie on top.
	Confirmed
	// NegativeConf: a fork has undone its block, with Depth blocks on top.
	NegativeConf
	// Done: k blocks lie on top, no fork can undo it. It is the last.
	Done
)

var watchNames = [...]string{"none", "update", "confirmed", "negative", "done"}

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
	// Tx is shared. It is nil where the transaction is older than the journal, so
	// that Confirmed and Done are all there is.
	Tx *chain.AppliedTx
}

// WatchTx yields what becomes of a transaction until no fork can undo it: how many
// blocks are Left until depth of them lie on top of its own, that it is Confirmed,
// that a fork took it back, that it is Done. A transaction that is in the chain
// already is found; one whose outputs were all spent k blocks ago or more is not,
// unless the directory is an archive. A transaction whose scripts failed is in the
// chain too: see Tx.Valid.
//
// Depth is at most k, in blocks: 0 is at once. As with UTxOs following is started,
// and an error ends the loop.
func (f *Follower) WatchTx(ctx context.Context, id chain.TxID, depth int) iter.Seq2[WatchEvent, error] {
	return f.once(ctx, depth, func(t *chain.AppliedTx) bool { return t.ID == id },
		func(v *View) (chain.Height, bool, error) { return v.heightOf(ctx, id) })
}

// WatchOutput yields what becomes of the transaction that spends an output; see
// WatchTx. A spend that lies k blocks deep or more is found in an archive only.
func (f *Follower) WatchOutput(ctx context.Context, ref chain.TxIn, depth int) iter.Seq2[WatchEvent, error] {
	return f.once(ctx, depth, func(t *chain.AppliedTx) bool {
		for i := range t.Spent {
			if t.Spent[i].UTxO.Ref == ref {
				return true
			}
		}
		return false
	}, func(v *View) (chain.Height, bool, error) {
		_, by, ok, err := v.snap.Spent(ref)
		return by.Height, ok, err
	})
}

// once watches for one transaction. find tells the height of its block if that is in
// the view's chain.
func (f *Follower) once(ctx context.Context, depth int, is func(*chain.AppliedTx) bool, find func(*View) (chain.Height, bool, error)) iter.Seq2[WatchEvent, error] {
	return func(yield func(WatchEvent, error) bool) {
		k := int(f.cfg.Genesis.K)
		if depth < 0 || depth > k {
			yield(WatchEvent{}, fmt.Errorf("%w: a depth of %d, want 0 to k = %d", ErrOption, depth, k))
			return
		}
		defer f.demand()()
		err := f.reachTip(ctx)
		var from chain.At
		var old *chain.At
		if err == nil {
			from, old, err = f.before(find)
		}
		if err != nil {
			yield(WatchEvent{}, err)
			return
		}
		w := watched{depth: depth, k: k, is: is, yield: yield}
		if old != nil {
			w.at, w.included = *old, true
			_ = w.tell(Confirmed, k) && w.tell(Done, k)
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

// before returns the block behind which a watch begins: the head, or the parent of
// the transaction's block. Old is that block if no fork can reach it.
func (f *Follower) before(find func(*View) (chain.Height, bool, error)) (from chain.At, old *chain.At, err error) {
	v := f.View()
	defer v.Close()
	defer damaged(&err)
	h, found, err := find(v)
	if err != nil {
		return from, nil, err
	}
	below := v.Head().Height
	if found {
		below = h - 1
	}
	at := func(h chain.Height) (chain.At, error) {
		if h < f.cfg.Genesis.FirstHeight {
			return chain.Origin, nil
		}
		l, ok, err := v.snap.LinkAt(chain.Position{Height: h})
		if err == nil && !ok {
			err = fmt.Errorf("no block is kept for height %d", h)
		}
		return l.At(), err
	}
	if found && h <= f.State().Highest-chain.Height(f.cfg.Genesis.K) {
		block, err := at(h)
		return from, &block, err
	}
	from, err = at(below)
	return from, nil, err
}

// heightOf returns the height of the block that a transaction is in.
func (v *View) heightOf(ctx context.Context, id chain.TxID) (at chain.Height, ok bool, err error) {
	for h := v.snap.Head().Height; h > chain.OriginHeight; h-- {
		txs, err := v.snap.Txs(chain.Position{Height: h})
		if errors.Is(err, store.ErrNoRecord) {
			break
		}
		if err != nil {
			return 0, false, err
		}
		for i := range txs {
			if txs[i].ID == id {
				return h, true, nil
			}
		}
	}
	// It is deeper, or nowhere: its outputs tell.
	if err := v.snap.UTxOs(ctx, chain.Source{Kind: chain.SourceTx, Key: string(id[:])}, func(o *chain.Output) error {
		at, ok = o.Height, true
		return nil
	}); err != nil || ok {
		return at, ok, err
	}
	o, _, ok, err := v.snap.Spent(chain.TxIn{ID: id})
	return o.Height, ok, err
}

// watched is a watch that is being read.
type watched struct {
	depth, k int
	is       func(*chain.AppliedTx) bool
	yield    func(WatchEvent, error) bool

	included  bool
	confirmed bool
	at        chain.At
	tx        *chain.AppliedTx
	left      int          // of the newest update
	tip       chain.Height // up to which blocks were seen
}

func (w *watched) tell(kind WatchKind, on int) bool {
	e := WatchEvent{Kind: kind, At: w.at, Depth: on, Tx: w.tx}
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
		w.included, w.confirmed, w.tx = false, false, nil
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
		if !w.tell(Confirmed, on) {
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
			w.included, w.at, w.tx, w.left = true, b.At, t, w.depth+1
			return
		}
	}
}
