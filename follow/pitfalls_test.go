package follow

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// TestForeignChainIsNotFollowedFromOrigin: a node that has none of our blocks is
// a reason to stop, whether or not origin was among what we offered; nothing is
// touched.
func TestForeignChainIsNotFollowedFromOrigin(t *testing.T) {
	for _, blocks := range []int{15, 40, 150} { // origin is offered, is offered, is not
		t.Run(fmt.Sprint(blocks), func(t *testing.T) {
			w := newWorld(t, 10, forge.Options{EpochBlocks: 50})
			w.extend(t, blocks)
			w.catchUp(t)
			before, events := w.store.Head(), len(w.hub.events)
			w.cfg = func(c *Config) { c.MaxBlocks = 20 } // fewer than a hundred points are kept
			other := newWorld(t, 10, forge.Options{Seed: 99, EpochBlocks: 50})
			other.extend(t, blocks+20)
			w.node.blocks = other.node.blocks
			err := w.follower().Run(t.Context(), atTip)
			var fatal *FatalError
			if !errors.Is(err, ErrDiverged) || !errors.As(err, &fatal) || fatal.Hint == "" {
				t.Errorf("got %v", err)
			}
			if w.store.Head() != before || len(w.hub.events) != events {
				t.Errorf("it was at %v, it is at %v, with %d new events", before.At(), w.store.Head().At(), len(w.hub.events)-events)
			}
		})
	}
}

// TestForkWhileOfflineIsFoundAtItsDepth: whatever part of the last k blocks left
// the chain while nobody followed, exactly that part is rolled back.
func TestForkWhileOfflineIsFoundAtItsDepth(t *testing.T) {
	const k = 40
	for depth := 1; depth <= k; depth++ {
		w := newWorld(t, k, forge.Options{EpochBlocks: 500, Eras: []forge.EraSpan{{Era: chain.Conway}}})
		w.extend(t, 2*k)
		w.catchUp(t)
		w.hub.events = nil
		w.fork(t, depth, depth+1)
		w.catchUp(t)
		want := fmt.Sprintf("!%d", 2*k-1-depth)
		if len(w.hub.events) == 0 || w.hub.events[0] != want {
			t.Fatalf("%d blocks left the chain: the first event is %v, want %s", depth, w.hub.events[:min(1, len(w.hub.events))], want)
		}
	}
}

// TestUnredeemedVouchersGoAtTheAllegraBoundary: they leave the set with Allegra's
// first block, in no transaction, and come back when that block is undone.
func TestUnredeemedVouchersGoAtTheAllegraBoundary(t *testing.T) {
	w := newWorld(t, 60, forge.Options{EpochBlocks: 6, Eras: []forge.EraSpan{{Era: chain.Byron, Epochs: 1}, {Era: chain.Shelley, Epochs: 1}, {Era: chain.Allegra}}})
	left := func() (n int) {
		live, err := w.store.Live(w.avvm)
		if err != nil {
			t.Fatal(err)
		}
		return len(live)
	}
	for w.node.Tip().IsOrigin() || w.node.blocks[len(w.node.blocks)-1].Era < chain.Allegra {
		w.extend(t, 1)
	}
	at := len(w.node.blocks) - 1 // Allegra's first
	w.node.blocks = w.node.blocks[:at]
	if err := w.follower().Run(context.Background(), atTip); err != nil {
		t.Fatal(err)
	}
	before := left()
	if before == 0 {
		t.Fatal("every voucher was redeemed: the test does not test what it says")
	}
	if err := w.forge.Rewind(1); err != nil {
		t.Fatal(err)
	}
	w.extend(t, 5)
	w.catchUp(t)
	if n := left(); n != 0 {
		t.Errorf("%d vouchers are left in Allegra", n)
	}
	e := w.store.blocks[at]
	if e.Era != chain.Allegra || !e.Txs[0].ID.IsZero() || e.Txs[0].Spent != before || e.Txs[0].Created != 0 {
		t.Errorf("%v begins with %+v, %d vouchers were left", e.At(), e.Txs[0], before)
	}
	w.fork(t, 5, 7) // Allegra's first block is another now
	w.catchUp(t)
	if n := left(); n != 0 {
		t.Errorf("%d vouchers are left after a fork", n)
	}
	if err := w.store.Rollback(t.Context(), w.store.blocks[at-1].Point); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != before {
		t.Errorf("%d vouchers came back, want %d", n, before)
	}
}

// TestLargeBatchOnAChainOfSmallK: far from the tip a batch may hold more blocks
// than points are kept. What ends its session, or rolls it back, finds it whole.
func TestLargeBatchOnAChainOfSmallK(t *testing.T) {
	const k = 5
	toTip := func(t *testing.T, w *world) {
		t.Helper()
		w.hub.subs = 0 // or batches would be small
		if err := w.follower().Run(t.Context(), atTip); err != nil {
			t.Fatal(err)
		}
		if err := w.store.agrees(w.forge.Oracle()); err != nil || w.store.Head().At() != w.node.Tip() {
			t.Errorf("at %v: %v", w.store.Head().At(), err)
		}
	}
	t.Run("nonsense behind it", func(t *testing.T) {
		w := newWorld(t, k, forge.Options{EpochBlocks: 50})
		w.extend(t, 300)
		run := []chain.Message{w.back(chain.Point{})}
		for _, b := range w.node.blocks[:140] {
			run = append(run, w.fwd(b))
		}
		w.script(append(run, w.fwd(w.node.blocks[210])))
		script := w.cfg
		nonsense := 0
		w.cfg = func(c *Config) {
			script(c)
			c.MaxBytes = 1 << 30
			c.Retry = func(err error, _ int) (time.Duration, bool) {
				nonsense++
				return 0, errors.Is(err, ErrNonsense) && nonsense == 1
			}
		}
		toTip(t, w)
	})
	t.Run("a roll backward within it", func(t *testing.T) {
		w := newWorld(t, k, forge.Options{EpochBlocks: 50})
		w.extend(t, 300)
		run := []chain.Message{w.back(chain.Point{})}
		for _, b := range w.node.blocks[:140] {
			run = append(run, w.fwd(b))
		}
		run = append(run, w.back(w.node.blocks[20].Point))
		for _, b := range w.node.blocks[21:] {
			run = append(run, w.fwd(b))
		}
		w.script(append(run, await))
		script := w.cfg
		w.cfg = func(c *Config) { script(c); c.MaxBytes = 1 << 30 }
		toTip(t, w)
	})
}
