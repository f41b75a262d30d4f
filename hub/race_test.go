package hub

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// TestModelReadersOnOtherGoroutines drives a hub from one goroutine while
// others subscribe, seed, read, stop and resume; at the end every reader's fold is
// the set. Run it with -race.
func TestModelReadersOnOtherGoroutines(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		// Only what makes chains; the subscriptions are made here.
		w := newWorld(r.IntN, func(format string, args ...any) { t.Fatalf(format, args...) })
		w.partial, w.thin, w.k, w.deepest = false, seed%2 == 1, 4, 6
		w.start(State{Tip: chain.Origin, Highest: -1, Floor: chain.Origin})

		// publish is the provider's lock: a seed is read at the hub's tip.
		var publish sync.Mutex
		readSeed := func(q query.UTxO) (chain.At, []*chain.UTxO) {
			publish.Lock()
			defer publish.Unlock()
			return w.fed.at, w.rows(w.fed, q)
		}
		var readers sync.WaitGroup
		type result struct {
			q    query.UTxO
			fold map[chain.TxIn]bool
			err  error
		}
		results := make(chan result, 64)
		stop := make(chan struct{})
		for i := range 8 {
			readers.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				q := query.Address([]byte(worldAddrs[i%len(worldAddrs)]))
				if i%3 == 0 {
					q = query.AnyOf(q, query.Asset(worldPolicies[0], nil))
				}
				for {
					fold, err := followOnce(w.hub, q, chain.Height(i%3), readSeed, r)
					select {
					case <-stop:
						results <- result{q, fold, err}
						return
					default:
					}
					if err != nil && !errors.Is(err, ErrCancelled) {
						results <- result{q, fold, err}
						return
					}
				}
			})
		}
		for n := range 400 {
			w.grow()
			if n%7 == 3 && w.node.at.Height > 6 {
				w.node = w.node.below(w.node.at.Height - chain.Height(1+r.IntN(2)))
				w.grow()
			}
			for w.fed != w.node {
				publish.Lock()
				if a := ancestorOf(w.fed, w.node); a != w.fed {
					w.fed = a
					flush, err := w.hub.BufferRollback(a.at)
					publish.Unlock()
					must(t, err)
					flush()
					continue
				}
				next := w.node
				for next.parent != w.fed {
					next = next.parent
				}
				w.fed = next
				flush, err := w.hub.BufferBlock(w.applied(next, chain.Complete))
				publish.Unlock()
				must(t, err)
				flush()
			}
		}
		close(stop)
		// Deep subscriptions hear of the last blocks only when others lie on top.
		last := w.fed
		for range 3 {
			b := &chain.AppliedBlock{At: chain.At{Point: chain.Point{Slot: 1 << 40, Hash: w.id('e')}, Height: w.fed.at.Height + 1}, Coverage: chain.Complete}
			publish.Lock()
			flush, err := w.hub.BufferBlock(b)
			w.fed = &wblock{at: b.At, parent: w.fed, set: w.fed.set}
			w.byAtMu.Lock()
			w.byAt[b.At.Point] = w.fed
			w.byAtMu.Unlock()
			publish.Unlock()
			must(t, err)
			flush()
		}
		w.hub.CloseAll()
		readers.Wait()
		close(results)
		for x := range results {
			if x.err != nil {
				if !errors.Is(x.err, ErrClosed) && !errors.Is(x.err, ErrCancelled) {
					t.Errorf("%v: %v", x.q, x.err)
				}
				continue
			}
			for ref, u := range last.set {
				if x.q.Match(u) != x.fold[ref] {
					t.Errorf("%v: %v in the set %v, in the fold %v", x.q, ref, x.q.Match(u), x.fold[ref])
				}
			}
		}
	}
}

// followOnce subscribes with a seed and reads until the end, or stops of its own
// accord and reports ErrCancelled.
func followOnce(h *Hub, q query.UTxO, depth chain.Height, read func(query.UTxO) (chain.At, []*chain.UTxO), r *rand.Rand) (map[chain.TxIn]bool, error) {
	s, err := h.SubscribeUTxO(q, Options{Seed: SeedLater, Confirmations: depth, Bound: Unbounded, Idle: r.IntN(2) == 0})
	if err != nil {
		return nil, err
	}
	for {
		at, rows := read(q)
		switch res := s.Seed(at, rows); res {
		case SeedStale:
			continue
		case SeedFatal, SeedIgnored: // the chain went on without this goroutine, or the hub was closed
			return nil, ErrCancelled
		case SeedHeld:
			return nil, errors.New("a seed read at the hub's tip has to wait")
		}
		break
	}
	x := &wreader{}
	most := 1 + r.IntN(400)
	for n := 0; ; n++ {
		e, err := s.Next(context.Background())
		switch {
		case errors.Is(err, io.EOF):
			return x.fold(), nil
		case err != nil:
			return nil, err
		}
		x.take(&e)
		if n == most {
			s.Cancel()
			return nil, ErrCancelled
		}
	}
}
