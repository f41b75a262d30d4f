package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/eras"
	"github.com/ourotail/ourotail/ledger/params"
)

// inConway is a follower of a chain that begins in Conway, running until the test
// ends.
func inConway(t *testing.T, blocks int) (*node, *ourotail.Follower) {
	t.Helper()
	n := conway(t, blocks)
	f := open(t, n.config(t, t.TempDir()))
	keepRunning(t, f)
	return n, f
}

func conway(t *testing.T, blocks int) *node {
	return generated(t, forge.Options{Seed: 6, K: 30, EpochBlocks: 8, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}}}, blocks)
}

func keepRunning(t *testing.T, f *ourotail.Follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (n *node) reached(t *testing.T, f *ourotail.Follower) {
	t.Helper()
	devtest.Eventually(t, "the follower is at the tip", func() bool { return f.State().Head.Point == n.chain.Tip().Point })
}

func (n *node) compose(t *testing.T) ([]byte, chain.TxID) {
	t.Helper()
	tx, id, err := n.chain.Compose(forge.Order{Pay: []forge.Payment{{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	return tx, id
}

// next reads the next value of a subscription, which has to come soon.
func next[T any](t *testing.T, sub hub.Subscription[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	v, err := sub.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// becomes reads statuses until one is in the state, and returns what it passed
// through.
func becomes(t *testing.T, sub hub.Subscription[hub.TxStatus], state hub.TxState) (st hub.TxStatus) {
	t.Helper()
	for st.State != state || st.ID == (chain.TxID{}) {
		st = next(t, sub)
	}
	return st
}

func follows(t *testing.T, f *ourotail.Follower, id chain.TxID) hub.Subscription[hub.TxStatus] {
	t.Helper()
	sub, err := f.SubscribeStatus(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Cancel)
	return sub
}

// TestStatusOfASubmission: pending as Submit returns, confirmed by its block;
// when a fork takes that, the node has forgotten the transaction, so it is not found
// once the fork is here; submitted again it is pending and confirmed again.
func TestStatusOfASubmission(t *testing.T) {
	n, f := inConway(t, 20)
	n.reached(t, f)
	tx, id := n.compose(t)
	sub := follows(t, f, id)
	if st := next(t, sub); st.State != hub.TxNotFound && st.State != hub.TxUnknown {
		t.Fatalf("%+v of a transaction that was never seen", st)
	}
	for range 2 {
		if got, err := f.Submit(t.Context(), tx); err != nil || got != id {
			t.Fatal(got, err)
		}
		if st, ok, err := sub.Poll(); err != nil || !ok || st.State != hub.TxPending {
			t.Fatalf("%+v, %v, %v as Submit returns", st, ok, err)
		}
		if err := n.chain.Extend(1); err != nil {
			t.Fatal(err)
		}
		if st := becomes(t, sub, hub.TxConfirmed); st.At != n.chain.Tip() {
			t.Fatalf("%+v, the tip is %v", st, n.chain.Tip())
		}
		if err := n.chain.Fork(1, 2); err != nil {
			t.Fatal(err)
		}
		if st := becomes(t, sub, hub.TxNotFound); st.At != (chain.At{}) {
			t.Fatalf("%+v", st)
		}
	}
}

// TestStatusFromTheMempool: what somebody else submits is seen in the mempool, and
// is gone when it leaves without a block; in a block it is confirmed.
func TestStatusFromTheMempool(t *testing.T) {
	n, f := inConway(t, 20)
	n.reached(t, f)
	tx, id := n.compose(t)
	sub := follows(t, f, id)
	next(t, sub)
	n.chain.HoldMempool(true)
	for range 2 {
		if _, no := n.chain.Submit(chain.Conway, tx); no != nil {
			t.Fatal(no.Text)
		}
		becomes(t, sub, hub.TxPending)
		n.chain.DropFromMempool(id)
		becomes(t, sub, hub.TxNotFound)
	}
	if _, no := n.chain.Submit(chain.Conway, tx); no != nil {
		t.Fatal(no.Text)
	}
	becomes(t, sub, hub.TxPending)
	n.chain.HoldMempool(false)
	if err := n.chain.Extend(1); err != nil {
		t.Fatal(err)
	}
	// It leaves the mempool for a block: never not found on the way.
	if st := next(t, sub); st.State != hub.TxConfirmed {
		t.Fatalf("%+v", st)
	}
}

// TestTxStatusNow: one look, without waiting: into the mempool too.
func TestTxStatusNow(t *testing.T) {
	n, f := inConway(t, 20)
	n.reached(t, f)
	tx, id := n.compose(t)
	want := func(state hub.TxState) {
		t.Helper()
		if st, err := f.TxStatus(t.Context(), id); err != nil || st.State != state || st.ID != id {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	want(hub.TxNotFound)
	if _, no := n.chain.Submit(chain.Conway, tx); no != nil {
		t.Fatal(no.Text)
	}
	want(hub.TxPending)
	if err := n.chain.Extend(1); err != nil {
		t.Fatal(err)
	}
	n.reached(t, f)
	want(hub.TxConfirmed)
}

// TestMempoolSize: the library says what is in the node's mempool, and that nobody can
// be asked.
func TestMempoolSize(t *testing.T) {
	n, f := inConway(t, 4)
	empty, err := f.MempoolSize(t.Context())
	if err != nil || empty.Capacity == 0 || empty.Size != 0 || empty.Txs != 0 {
		t.Errorf("%+v, %v", empty, err)
	}
	tx, _ := n.compose(t)
	if _, err := f.Submit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if got, err := f.MempoolSize(t.Context()); err != nil || got.Capacity != empty.Capacity || got.Size != uint32(len(tx)) || got.Txs != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	n.Stop()
	if _, err := f.MempoolSize(t.Context()); !chainsync.Retryable(err) {
		t.Errorf("with no node: %v", err)
	}
}

// TestNodeGenesis: the node tells the genesis it was started with, which is ours; where
// it is not, each difference is named.
func TestNodeGenesis(t *testing.T) {
	n, f := inConway(t, 4)
	g, err := f.NodeGenesis(t.Context())
	if err != nil || g.ActiveSlots.RatString() != "1/20" || g.SlotLength.RatString() != "1" || len(g.Raw) == 0 || g.MaxKESEvolutions != 62 {
		t.Fatalf("%+v, %v", g, err)
	}
	if d := ourotail.GenesisDifferences(g, n.genesis); len(d) != 0 {
		t.Error(d)
	}
	other := *n.genesis
	other.K, other.ActiveSlots, other.SystemStart = other.K+1, 0.1, other.SystemStart.Add(time.Second)
	if d := ourotail.GenesisDifferences(g, &other); len(d) != 3 {
		t.Error(d)
	}
}

// TestStatusAfterARestart: what is in the journal is known to a new process, and
// below that what the outputs tell; nobody says not found of what is on the chain.
func TestStatusAfterARestart(t *testing.T) {
	n := conway(t, 20)
	dir := t.TempDir()
	var ids []chain.TxID
	var at []chain.At
	for range 5 {
		// Two outputs that nobody spends: what makes one may have failed.
		pay := forge.Payment{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}
		made, err := n.chain.Include(forge.Order{Pay: []forge.Payment{pay, pay}})
		if err != nil {
			t.Fatal(err)
		}
		ids, at = append(ids, made[0]), append(at, n.chain.Tip())
		if err := n.chain.Extend(9); err != nil {
			t.Fatal(err)
		}
	}
	cfg := n.config(t, dir)
	cfg.ExitAtTip = true
	for range 2 {
		f := open(t, cfg)
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			st, err := f.TxStatus(t.Context(), id)
			if err != nil || st.State != hub.TxConfirmed || st.At != at[i] {
				t.Errorf("transaction %d: %+v, %v; want %v", i, st, err, at[i])
			}
		}
		if st, err := f.TxStatus(t.Context(), chain.TxID{1}); err != nil || st.State != hub.TxUnknown || st.At.IsOrigin() {
			t.Errorf("%+v, %v", st, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubmitRejected: the ledger's reason, typed; nothing becomes pending. What is
// no transaction is not sent, and a node that is away says so.
func TestSubmitRejected(t *testing.T) {
	n, f := inConway(t, 20)
	n.reached(t, f)
	tx, id := n.compose(t)
	if _, err := f.Submit(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if err := n.chain.Extend(1); err != nil {
		t.Fatal(err)
	}
	n.reached(t, f)
	var no *chainsync.RejectedError
	if got, err := f.Submit(t.Context(), tx); !errors.As(err, &no) || !errors.Is(err, chainsync.ErrRejected) || got != id || no.Error() == "" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := f.Submit(t.Context(), []byte{0x80}); !errors.Is(err, ledger.ErrNotATx) {
		t.Error(err)
	}
	n.Stop()
	if _, err := f.Submit(t.Context(), []byte{0x80}); !errors.Is(err, ledger.ErrNotATx) || err.Error() != "not a transaction: an array of 0 items, want [body, witnesses, ...]" {
		t.Errorf("with no node: %v", err)
	}
	if _, err := f.Submit(t.Context(), tx); err == nil || errors.Is(err, chainsync.ErrRejected) {
		t.Error(err)
	}
	if st, err := f.TxStatus(t.Context(), id); err != nil || st.State != hub.TxConfirmed {
		t.Errorf("%+v, %v", st, err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestParamsByEpoch: a subscriber is given the parameters at once if they are known,
// and again in every new epoch, forward and back.
func TestParamsByEpoch(t *testing.T) {
	n, f := inConway(t, 4)
	sub, err := f.SubscribeParams()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Cancel()
	first := next(t, sub)
	p, err := params.Decode(first.Era, first.Raw)
	if err != nil || p.TxFeeFixed != forge.FeeFixed || first.Era != chain.Conway || first.Epoch != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	for first.Epoch < 2 {
		if err := n.chain.Extend(8); err != nil {
			t.Fatal(err)
		}
		got := next(t, sub)
		if got.Epoch <= first.Epoch || got.At != n.chain.Tip() {
			t.Fatalf("epoch %d at %v after epoch %d, the tip is %v", got.Epoch, got.At, first.Epoch, n.chain.Tip())
		}
		first = got
	}
	late, err := f.SubscribeParams()
	if err != nil {
		t.Fatal(err)
	}
	defer late.Cancel()
	if got, ok, err := late.Poll(); err != nil || !ok || !slices.Equal(got.Raw, first.Raw) {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
}

// TestParamsAreALoop: the loop starts following and yields the parameters of each
// epoch taken apart. What ends it is in TestParamsFailAlone.
func TestParamsAreALoop(t *testing.T) {
	n := conway(t, 4)
	f := open(t, n.config(t, t.TempDir()))
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var epochs []uint64
	for p, err := range f.Params(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if p.DecodeError != nil || p.Params.TxFeeFixed != forge.FeeFixed || len(p.Raw) == 0 || p.Era != chain.Conway {
			t.Fatalf("%+v", p)
		}
		if epochs = append(epochs, p.Epoch); len(epochs) == 3 {
			break
		}
		if err := n.chain.Extend(8); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(epochs) || len(epochs) != 3 {
		t.Errorf("epochs %v", epochs)
	}
}

// TestTimes: every slot of the chain has a time, with the node as without, and a
// time its slot; beyond the horizon it is said where that is.
func TestTimes(t *testing.T) {
	n := conway(t, 40)
	f := open(t, n.config(t, t.TempDir()))
	check := func() {
		t.Helper()
		for i := range n.chain.Len() {
			slot := n.chain.At(i).Point.Slot
			at, err := f.Time(slot)
			want, _ := n.genesis.Time(slot)
			if err != nil || !at.Equal(want) || at.Location() != time.UTC {
				t.Fatalf("slot %d: %v, %v; want %v", slot, at, err, want)
			}
			if got, err := f.Slot(at); err != nil || got != slot {
				t.Fatalf("%v: slot %d, %v; want %d", at, got, err, slot)
			}
		}
	}
	check()
	if _, err := f.Time(1 << 30); err != nil { // the genesis believes that nothing changes
		t.Fatal(err)
	}
	keepRunning(t, f)
	n.reached(t, f)
	var beyond *eras.HorizonError
	devtest.Eventually(t, "the node's horizon is known", func() bool {
		_, err := f.Time(1 << 30)
		return errors.As(err, &beyond)
	})
	check()
	if _, err := f.Slot(beyond.Time); !errors.Is(err, eras.ErrHorizon) {
		t.Error(err)
	}
	if _, err := f.Slot(n.genesis.SystemStart.Add(-time.Second)); !errors.Is(err, eras.ErrBeforeStart) {
		t.Error(err)
	}
	for range 6 {
		if err := n.chain.Extend(8); err != nil {
			t.Fatal(err)
		}
		n.reached(t, f)
		check()
	}
}
