package ordeal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/e2e"
	"github.com/ourotail/ourotail/query"
)

// readers are subscribers of all kinds to one follower. Those that walk see every
// block and go on behind it when the follower is started again; the others begin
// with the set as it is then, and fold.
type readers struct {
	t      *testing.T
	oracle *forge.Oracle
	watch  query.UTxO // what the folding readers of addresses want
	walks  map[string]*walk

	ctx   context.Context
	stop  context.CancelFunc
	wait  sync.WaitGroup
	mu    sync.Mutex
	bad   []error // what walking readers found
	folds []fold
	tip   hub.Subscription[chain.Tip]
}

// fold is a reader that begins with a seed.
type fold struct {
	name  string
	q     query.UTxO
	depth chain.Height
	*e2e.Reader
}

// subscribe begins, or goes on, on a follower that does not run yet.
func (r *readers) subscribe(f *ourotail.Follower) {
	r.t.Helper()
	r.ctx, r.stop = context.WithCancel(context.Background())
	first := r.walks == nil
	if first {
		r.walks = map[string]*walk{}
	}
	for _, kind := range []string{"outputs", "transactions", "blocks"} {
		opts := hub.Options{Idle: true, Bound: hub.Unbounded, Start: hub.Origin}
		w := r.walks[kind]
		if first {
			w = newWalk(r.oracle, chain.Origin)
			r.walks[kind] = w
		} else {
			at, err := f.Ancestor(w.at().Point)
			if err == nil && at != w.at() {
				err = w.back(at, nil) // what a reader does that knows where it stood
			}
			if err != nil {
				r.t.Fatalf("going on reading %s behind %v: %v", kind, w.at(), err)
			}
			opts.Start, opts.After = hub.After, chain.Cursor{At: at, Place: chain.WholeBlock}
		}
		var err error
		switch kind {
		case "outputs":
			var sub hub.Subscription[chain.UTxOEvent]
			if sub, err = f.SubscribeUTxOs(r.ctx, query.Everything(), opts); err == nil {
				read(r, kind, sub, w.utxo)
			}
		case "transactions":
			var sub hub.Subscription[chain.TxEvent]
			if sub, err = f.SubscribeTxs(query.Tx{}, opts); err == nil {
				read(r, kind, sub, w.tx)
			}
		default:
			opts.Idle = false
			var sub hub.Subscription[chain.BlockEvent]
			if sub, err = f.SubscribeBlocks(query.EveryBlock(), opts); err == nil {
				read(r, kind, sub, w.block)
			}
		}
		if err != nil {
			r.t.Fatalf("reading %s behind %v: %v", kind, w.at(), err)
		}
	}
	r.folds = nil
	for _, x := range []fold{
		{name: "all outputs, seeded", q: query.Everything()},
		{name: "all outputs, seeded, 2 deep", q: query.Everything(), depth: 2},
		{name: "addresses, seeded", q: r.watch},
		{name: "addresses, seeded, 5 deep", q: r.watch, depth: 5},
	} {
		sub, err := f.SubscribeUTxOs(r.ctx, x.q, hub.Options{Seed: hub.SeedLater, AcceptScan: true, Confirmations: x.depth, Bound: hub.Unbounded})
		if errors.Is(err, hub.ErrReach) && x.depth > 0 {
			continue // a young chain
		}
		if err != nil {
			r.t.Fatalf("%s: %v", x.name, err)
		}
		x.Reader = e2e.NewReader(r.ctx, sub)
		r.folds = append(r.folds, x)
	}
	var err error
	if r.tip, err = f.SubscribeTips(); err != nil {
		r.t.Fatal(err)
	}
	r.wait.Go(func() {
		for at, err := range r.tip.All(r.ctx) {
			if err != nil {
				return
			}
			if _, err := r.oracle.Effects(at.Point.Hash); err != nil {
				r.note("tips", fmt.Errorf("%v: %w", at, err))
			}
		}
	})
}

func (r *readers) note(kind string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bad) < 5 {
		r.bad = append(r.bad, fmt.Errorf("reading %s: %w", kind, err))
	}
}

// read walks until the subscription ends.
func read[E any](r *readers, kind string, sub hub.Subscription[E], take func(*E) error) {
	r.wait.Go(func() {
		for e, err := range sub.All(r.ctx) {
			if err != nil {
				return // the follower's end is its owner's business
			}
			r.mu.Lock()
			err := take(&e)
			r.mu.Unlock()
			if err != nil {
				r.note(kind, err)
				return
			}
		}
	})
}

// all tells whether all that walk are at a block.
func (r *readers) all(at chain.At) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.walks {
		if w.at() != at {
			return false
		}
	}
	return true
}

// finish waits for the end of all subscriptions and compares: each reader knows
// what there is at the head, or as deep below it as it asked for. A failure may
// have dropped what those that fold had not read.
func (r *readers) finish(head chain.Link, failed bool) error {
	r.wait.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bad) > 0 {
		return errors.Join(r.bad...)
	}
	path, err := r.oracle.Path(head.Point.Hash)
	if err != nil {
		return err
	}
	for len(path) > 0 && path[len(path)-1].Boundary {
		path = path[:len(path)-1]
	}
	top := chain.Origin
	if len(path) > 0 {
		top = path[len(path)-1].At()
	}
	for _, kind := range sortedNames(r.walks) {
		if w := r.walks[kind]; w.at() != top {
			return fmt.Errorf("reading %s: the last word was %v, the head is %v", kind, w.at(), top)
		}
	}
	for _, x := range r.folds {
		x.Wait()
		problems, err := x.Problems()
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, follow.ErrDiverged) || len(problems) > 0 {
			return fmt.Errorf("%s: %v %w", x.name, problems, err)
		}
		if failed {
			continue
		}
		// It stands as deep as it asked for; less deep where a fork took the head below
		// what it had been told, and the follower was stopped before it was up again.
		var problem error
		got := x.Lines()
		for h := top.Height - x.depth; h <= top.Height; h++ {
			want, err := r.wanted(path, h, x.q)
			if err != nil {
				return err
			}
			if slices.Equal(got, want) {
				problem = nil
				break
			}
			problem = errors.Join(problem, fmt.Errorf("%s: %d outputs, want %d at height %d: %s", x.name, len(got), len(want), h, firstDifference(got, want)))
		}
		if problem != nil {
			return problem
		}
	}
	return nil
}

// wanted returns the lines of the outputs that a query wants after the newest
// block of a path at or below a height.
func (r *readers) wanted(path []chain.Link, h chain.Height, q query.UTxO) (want []string, err error) {
	at := chain.Hash{}
	for _, l := range path {
		if l.Height <= h {
			at = l.Point.Hash
		}
	}
	set, err := r.oracle.Set(at)
	if err != nil {
		return nil, err
	}
	for ref, out := range set {
		if q.Match(&chain.UTxO{Ref: ref, Out: chain.TxOut{Address: out.Address, Lovelace: out.Lovelace, Assets: out.Assets}}) {
			want = append(want, out.Line())
		}
	}
	slices.Sort(want)
	return want, nil
}
