package chainsync_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/chainsync/txwatch"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/eras"
	"github.com/ourotail/ourotail/ledger/params"
	"github.com/ourotail/ourotail/ledger/reject"
)

var start = time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)

func dialDevnode(t *testing.T, c *devnode.Chain) (*chainsync.Conn, chainsync.Config, *devnode.Server) {
	t.Helper()
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cfg := chainsync.Config{SocketPath: srv.Socket(), Magic: forge.DefaultMagic}
	conn, err := chainsync.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, cfg, srv
}

func inConway(t *testing.T) *devnode.Chain {
	return devtest.Generate(t, forge.Options{Seed: 4, K: 30, EpochBlocks: 8, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}}, SystemStart: start}, 20)
}

// TestFactsOfEveryEra: as the chain grows through the eras the node's parameters
// are those of its era and epoch, and its calendar says of every slot up to the
// tip what the genesis files say.
func TestFactsOfEveryEra(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 9, K: 30, EpochBlocks: 8, Plain: true, SystemStart: start}, 1)
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	g, err := ledger.LoadGenesis(dir + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	calendar, ok := g.Eras()
	if !ok {
		t.Fatal("the genesis files give no calendar")
	}
	_, cfg, _ := dialDevnode(t, c)
	seen := map[chain.Era]bool{}
	for c.Len() < 160 {
		if err := c.Extend(5); err != nil {
			t.Fatal(err)
		}
		tip := c.Tip()
		s, err := chainsync.ReadEras(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for slot := chain.Slot(0); slot <= tip.Point.Slot; slot += 1 + tip.Point.Slot/50 {
			ours, err := s.Time(slot)
			theirs, err2 := calendar.Time(slot)
			if err != nil || err2 != nil || !ours.Equal(theirs) {
				t.Fatalf("slot %d: %v %v, %v %v", slot, ours, err, theirs, err2)
			}
			if back, err := s.Slot(ours); err != nil || back != slot {
				t.Fatalf("%v is in slot %d, %v", ours, back, err)
			}
		}
		horizon, at, ok := s.Horizon()
		if !ok || horizon <= tip.Point.Slot {
			t.Fatalf("tip %v, horizon %d", tip, horizon)
		}
		var h *eras.HorizonError
		if _, err := s.Slot(at); !errors.As(err, &h) || h.Slot != horizon {
			t.Fatalf("at the horizon: %v", err)
		}
		p, err := chainsync.ReadParams(t.Context(), cfg)
		if p.Era == chain.Byron {
			if !errors.Is(err, chainsync.ErrNoQuery) {
				t.Fatalf("in byron: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		epoch, _, err := s.Epoch(tip.Point.Slot)
		if err != nil || p.At != tip || p.Epoch != epoch {
			t.Fatalf("%v, epoch %d; want %v, %d, %v", p.At, p.Epoch, tip, epoch, err)
		}
		d, err := params.Decode(p.Era, p.Raw)
		if err != nil || d.ProtocolVersion.Major != forge.ProtocolVersion(p.Era) {
			t.Fatalf("%+v, %v", d, err)
		}
		seen[p.Era] = true
	}
	if len(seen) != 6 {
		t.Errorf("only %v were seen", seen)
	}
}

// TestSubmit: a transaction is accepted, is in the mempool with its own bytes,
// is in the next block, and is rejected then, in words and in bytes; all beside
// a chain that is followed and a ledger state that is held.
func TestSubmit(t *testing.T) {
	c := inConway(t)
	conn, _, srv := dialDevnode(t, c)
	ctx := t.Context()
	if _, ok, _, err := conn.Intersect(ctx, []chain.Point{c.Tip().Point}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	pay := forge.Order{Pay: []forge.Payment{{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}}}
	tx, want, err := c.Compose(pay)
	if err != nil {
		t.Fatal(err)
	}
	id, err := conn.Submit(ctx, 0, tx)
	if err != nil || id != want {
		t.Fatalf("%v, %v; want %v", id, err, want)
	}
	state, err := conn.AcquireTip(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Release()
	if h, err := state.Height(ctx); err != nil || h != c.Tip().Height || state.At() != c.Tip().Point || state.Era() != chain.Conway {
		t.Errorf("%v %d %v %v", state.At(), h, state.Era(), err)
	}
	m, err := conn.Mempool(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Mempool(ctx); !errors.Is(err, chainsync.ErrUsage) {
		t.Errorf("a second snapshot: %v", err)
	}
	got, ok, err := m.Next(ctx)
	if err != nil || !ok || got.ID != want || got.Era != chain.Conway || !bytes.Equal(got.Raw, tx) || m.Slot() <= c.Tip().Point.Slot {
		t.Errorf("%+v %v %v", got, ok, err)
	}
	if rest, err := m.TxIDs(ctx); err != nil || len(rest) != 0 {
		t.Errorf("%v %v", rest, err)
	}
	for id, in := range map[chain.TxID]bool{want: true, {7}: false} {
		if has, err := m.Has(ctx, id); err != nil || has != in {
			t.Errorf("%v: %v %v", id, has, err)
		}
	}
	if s, err := m.Sizes(ctx); err != nil || s != (chainsync.MempoolSizes{Capacity: devnode.MempoolCapacity, Size: uint32(len(tx)), Txs: 1}) {
		t.Errorf("%+v %v", s, err)
	}
	if all, err := m.Measures(ctx); err != nil || !slices.Equal(all, []chainsync.Measure{{Name: "transaction_bytes", Size: int64(len(tx)), Capacity: devnode.MempoolCapacity}}) {
		t.Errorf("%+v %v", all, err)
	}
	m.Release()
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	if !inNext(t, conn, want) {
		t.Error("the next block has not got it")
	}
	var no *chainsync.RejectedError
	_, err = conn.Submit(ctx, chain.Conway, tx)
	if !errors.Is(err, chainsync.ErrRejected) || !errors.As(err, &no) || no.ID != want || chainsync.Retryable(err) {
		t.Fatalf("again: %v", err)
	}
	if r, err := reject.Decode(no.Raw); err != nil || r.Era != chain.Conway || r.Failures[0].Name != "ConwayMempoolFailure" {
		t.Errorf("%x: %+v %v", no.Raw, r, err)
	}
	if _, err = conn.Submit(ctx, chain.Babbage, tx); !errors.As(err, &no) || no.Error() != "a transaction of babbage, while the ledger is in conway" {
		t.Errorf("of another era: %v", err)
	}
	srv.Behave(devnode.Behaviour{OnSubmit: func(chain.Era, []byte) []byte { return []byte{0x82, 1, 0x9f, 0xff} }})
	if _, err = conn.Submit(ctx, chain.Conway, tx); !errors.As(err, &no) || no.Error() != "[1, [_ ]]" {
		t.Errorf("a reason that nobody knows: %v", err)
	}
	for _, bad := range [][]byte{nil, {0xa0}, append(slices.Clone(tx), 0)} {
		if _, err := conn.Submit(ctx, 0, bad); !errors.Is(err, ledger.ErrNotATx) || !strings.Contains(err.Error(), ": not a transaction: ") ||
			strings.Contains(err.Error(), "not possible now") || chainsync.Retryable(err) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if _, err := conn.Submit(ctx, 0, tx); !errors.Is(err, chainsync.ErrUsage) {
		t.Errorf("the node's era is asked for while a state is held: %v", err)
	}
	if _, err := conn.Submit(ctx, chain.Byron, tx); !errors.Is(err, chainsync.ErrUsage) {
		t.Errorf("byron: %v", err)
	}
}

// inNext reads the next block and tells whether a transaction is in it.
func inNext(t *testing.T, conn *chainsync.Conn, id chain.TxID) bool {
	t.Helper()
	for {
		msgs, err := conn.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer msgs.Release()
		for _, m := range msgs.List {
			if m.Kind != chain.RollForward {
				continue
			}
			var b ledger.Block
			if err := b.Walk(m.Raw); err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(b.Txs, func(tx ledger.Tx) bool { return tx.ID == id })
		}
	}
}

// TestWatchDevnode: the watcher of package txwatch sees a transaction enter and
// leave a real mempool over a real socket.
func TestWatchDevnode(t *testing.T) {
	c := inConway(t)
	conn, cfg, _ := dialDevnode(t, c)
	events := make(chan txwatch.Event, 10)
	w := txwatch.New(txwatch.Config{Dial: txwatch.Node(cfg), Interval: time.Millisecond, Report: func(e txwatch.Event) { events <- e },
		Problem: func(err error) { t.Error(err) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	tx, id, err := c.Compose(forge.Order{Pay: []forge.Payment{{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	w.Follow(id)
	if _, err := conn.Submit(ctx, chain.Conway, tx); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e != (txwatch.Event{ID: id, Pending: true}) {
		t.Errorf("%+v", e)
	}
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e != (txwatch.Event{ID: id}) {
		t.Errorf("%+v", e)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
