package ourotail

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/chainsync/txwatch"
	"github.com/ourotail/ourotail/hub"
)

// pool brings together what the hub believes of the transactions that somebody
// follows and what the node's mempool shows. It compares states, not events: what
// was missed is put right at the next look.
type pool struct {
	f     *Follower
	watch *txwatch.Watcher

	mu sync.Mutex
	// left are those that are no longer in the mempool, with the node's tip after
	// that was seen: nil until it is known.
	left map[chain.TxID]*chain.Tip
}

// lookIntoMempool says that somebody has begun to follow a transaction.
func (f *Follower) lookIntoMempool() {
	select {
	case f.followed <- struct{}{}:
	default:
	}
}

// watchMempool runs beside following. While nobody follows a transaction the node
// is asked nothing.
func (f *Follower) watchMempool(ctx context.Context) error {
	node, ok := f.node.(ledgerNode)
	if !ok {
		return nil
	}
	p := &pool{f: f, left: map[chain.TxID]*chain.Tip{}}
	p.watch = txwatch.New(txwatch.Config{Dial: node.mempool, Interval: mempoolEvery, Report: p.report,
		Problem: func(err error) { f.cfg.Logger.Warn("the node's mempool cannot be seen, trying again", "error", err) }})
	var looking sync.WaitGroup
	looking.Go(func() { _ = p.watch.Run(ctx) }) // it ends with ctx
	defer looking.Wait()
	watched := map[chain.TxID]bool{}
	for {
		var timer <-chan time.Time
		if p.compare(watched); f.hub.Followed() {
			p.settle(ctx)
			timer = time.After(mempoolEvery / 4)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.followed:
		case <-timer:
		}
	}
}

// report is told what a look into the mempool found.
func (p *pool) report(e txwatch.Event) {
	p.mu.Lock()
	if e.Pending {
		delete(p.left, e.ID)
	} else if _, known := p.left[e.ID]; !known {
		p.left[e.ID] = nil
	}
	p.mu.Unlock()
	if e.Pending {
		p.f.hub.SeenInMempool(e.ID)
	}
}

// compare has the watcher look for what is followed and not on the chain.
func (p *pool) compare(watched map[chain.TxID]bool) {
	waiting := p.f.hub.Waiting()
	for id, pending := range waiting {
		in, err := p.watch.Pending(id)
		p.mu.Lock()
		_, left := p.left[id]
		p.mu.Unlock()
		switch {
		case pending && (err != nil || !in && !left):
			p.watch.Expect(id) // submitted, or its block was undone
		case err != nil:
			p.watch.Follow(id)
		case in && !pending:
			p.f.hub.SeenInMempool(id)
		}
		watched[id] = true
	}
	for id := range watched {
		if _, still := waiting[id]; !still {
			p.watch.Unfollow(id)
			delete(watched, id)
			p.mu.Lock()
			delete(p.left, id)
			p.mu.Unlock()
		}
	}
}

// settle tells the hub of transactions that have left the mempool and are in no
// block: what the node had when they were missed has to be here first, for the
// mempool knows of a block before the chain brings it to us.
func (p *pool) settle(ctx context.Context) {
	p.mu.Lock()
	left := maps.Clone(p.left)
	p.mu.Unlock()
	if len(left) == 0 {
		return
	}
	var now *chain.Tip // asked for after all of them were missed
	for id, tip := range left {
		if tip != nil && p.has(*tip) {
			p.mu.Lock()
			_, still := p.left[id]
			delete(p.left, id)
			p.mu.Unlock()
			if still {
				p.f.hub.LeftMempool(id)
			}
			continue
		}
		if tip != nil && p.f.Progress().Head.Height < tip.Height {
			continue // on its way
		}
		// Not asked yet, or the node has left that block meanwhile.
		if now == nil {
			t, err := p.f.NodeTip(ctx)
			if err != nil {
				return // it is asked again
			}
			now = &t
		}
		p.mu.Lock()
		if _, still := p.left[id]; still {
			p.left[id] = now
		}
		p.mu.Unlock()
	}
}

// has tells whether the hub has been given a block.
func (p *pool) has(tip chain.Tip) (ok bool) {
	p.f.follow.Locked(func() { // store and hub are at the same block
		_, ok, _ = p.f.Find(tip.Point) // an error ends following
	})
	return ok || tip.Point.IsOrigin()
}

// TxStatus returns what is known of a transaction now (hub.TxStatus has the
// states). If it is not on the chain the node's mempool is looked into, on a
// connection of its own; if that fails the status comes with the error.
func (f *Follower) TxStatus(ctx context.Context, id chain.TxID) (hub.TxStatus, error) {
	sub, err := f.SubscribeStatus(id)
	if err != nil {
		return hub.TxStatus{ID: id}, err
	}
	defer sub.Cancel()
	st, err := sub.Next(ctx) // the present one is there at once
	if err != nil || st.State == hub.TxConfirmed || st.State == hub.TxFailed {
		return st, err
	}
	in, err := f.inMempool(ctx, id)
	if err != nil {
		return st, fmt.Errorf("looking into the node's mempool: %w", err)
	}
	if in {
		f.hub.SeenInMempool(id)
	}
	if newer, ok, err := sub.Poll(); ok && err == nil {
		st = newer
	}
	return st, nil
}

// MempoolSize asks the node how full its mempool is now: what it holds at most, what
// is in it, both in bytes, and how many transactions that is. It needs the node, on a
// connection of its own, but not Run.
func (f *Follower) MempoolSize(ctx context.Context) (chainsync.MempoolSizes, error) {
	node, ok := f.node.(ledgerNode)
	if !ok {
		return chainsync.MempoolSizes{}, errNoLedger
	}
	return node.mempoolSize(ctx)
}

func (f *Follower) inMempool(ctx context.Context, id chain.TxID) (bool, error) {
	node, ok := f.node.(ledgerNode)
	if !ok {
		return false, errNoLedger
	}
	conn, err := node.mempool(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	s, err := conn.Snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer s.Release()
	return s.Has(ctx, id)
}
