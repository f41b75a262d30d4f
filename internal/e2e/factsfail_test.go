package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/hub"
)

// TestParamsFailAlone: a node that serves its chain but not its parameters fails the
// subscribers for them, and nobody else: following, health and other subscriptions
// go on.
func TestParamsFailAlone(t *testing.T) {
	n := conway(t, 12)
	mute := devnode.NewChain() // of blocks alone, without a ledger to ask
	for i := range n.chain.Len() {
		raw, err := n.chain.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		b := devnode.Block{Raw: raw}
		b.Point, b.Height, b.Era = n.chain.At(i).Point, n.chain.At(i).Height, chain.Conway
		if i > 0 {
			b.Parent = n.chain.At(i - 1).Point.Hash
		}
		if err := mute.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	srv := devtest.Start(t, devnode.Config{Magic: n.genesis.Magic, Chain: mute})
	f := open(t, n.settings(t, srv.Socket(), t.TempDir()))
	keepRunning(t, f)
	n.reached(t, f)
	tips, err := f.SubscribeTips()
	if err != nil {
		t.Fatal(err)
	}
	defer tips.Cancel()
	for next(t, tips).Point != n.chain.Tip().Point { //nolint:revive // a subscription may lag behind the store
	}
	sub, err := f.SubscribeParams()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var node *chainsync.Error
	if p, err := sub.Next(ctx); !errors.As(err, &node) {
		t.Errorf("%+v, %v; want what the node did", p, err)
	}
	var loop error
	for p, err := range f.Params(ctx) {
		if loop = err; err == nil {
			t.Errorf("%+v", p)
		}
	}
	if !errors.As(loop, &node) {
		t.Errorf("the loop ended with %v", loop)
	}
	if _, ok, err := tips.Poll(); ok || err != nil {
		t.Errorf("the tip's subscriber: %v, %v", ok, err)
	}
	if h := f.Health(); h.Grade != ourotail.Healthy {
		t.Errorf("%+v", h)
	}
}

// TestStatusWhileTheNodeIsAway: what is pending stays so while nobody can tell, and
// what the node lost with its mempool is not found once it is back.
func TestStatusWhileTheNodeIsAway(t *testing.T) {
	n, f := inConway(t, 20)
	n.reached(t, f)
	tx, id := n.compose(t)
	sub := follows(t, f, id)
	next(t, sub)
	n.chain.HoldMempool(true)
	if _, err := f.Submit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	becomes(t, sub, hub.TxPending)
	n.Stop()
	n.chain.DropFromMempool(id)
	time.Sleep(1500 * time.Millisecond) // longer than from one look to the next
	if st, ok, err := sub.Poll(); ok || err != nil {
		t.Fatalf("%+v, %v while the node is away", st, err)
	}
	if st, err := f.TxStatus(t.Context(), id); err == nil || st.State != hub.TxPending {
		t.Errorf("%+v, %v; want the last that is known, and why there is no more", st, err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	becomes(t, sub, hub.TxNotFound)
}
