package ourotail_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
)

// payment composes a transaction that can be submitted again after a fork.
func payment(t *testing.T, c *devnode.Chain, spend ...chain.TxIn) ([]byte, chain.TxID) {
	t.Helper()
	raw, id, err := c.Compose(forge.Order{Spend: spend, Pay: []forge.Payment{{Address: payee, Lovelace: 3_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw, id
}

func include(t *testing.T, c *devnode.Chain, raw []byte) {
	t.Helper()
	if _, err := c.Submit(c.LedgerEra(), raw); err != nil {
		t.Fatal(err)
	}
	extend(t, c, 1)
}

func extend(t *testing.T, c *devnode.Chain, n int) {
	t.Helper()
	if err := c.Extend(n); err != nil {
		t.Fatal(err)
	}
}

func fork(t *testing.T, c *devnode.Chain, depth, n int) {
	t.Helper()
	if err := c.Fork(depth, n); err != nil {
		t.Fatal(err)
	}
}

func said(ev ourotail.WatchEvent) string {
	switch ev.Kind {
	case ourotail.Update:
		return fmt.Sprint(ev.Kind, " ", ev.Left)
	case ourotail.NegativeConf:
		return fmt.Sprint(ev.Kind, " ", ev.Depth)
	}
	return ev.Kind.String()
}

// conway is a chain of one era, whose transactions can be submitted in any block.
func conway(t *testing.T, k int) (*devnode.Chain, *ourotail.Follower) {
	t.Helper()
	return varied(t, forge.Options{Seed: 9, K: k, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 12)
}

// A watch tells each step once, forks included: those above its block, that of its
// block, and the way back.
func TestAWatchedTransactionIsToldStepByStep(t *testing.T) {
	const k = 6
	c, f := conway(t, k)
	raw, id := payment(t, c)
	include(t, c, raw)
	next := map[string]func(){
		"update 2":   func() { extend(t, c, 1) },
		"update 1":   func() { fork(t, c, 1, 1); extend(t, c, 1) }, // above it: nothing to tell
		"confirmed":  func() { fork(t, c, 3, 4) },
		"negative 2": func() { include(t, c, raw); extend(t, c, k) },
	}
	var got []string
	var at []chain.At
	for ev, err := range f.WatchTx(t.Context(), id, 2) {
		if err != nil {
			t.Fatal(err)
		}
		s := said(ev)
		if ev.Tx == nil || ev.Tx.ID != id {
			t.Errorf("%s: the transaction is %v", s, ev.Tx)
		}
		got, at = append(got, s), append(at, ev.At)
		if do := next[s]; do != nil {
			delete(next, s)
			do()
		}
	}
	want := []string{"update 2", "update 1", "confirmed", "negative 2", "update 2", "update 1", "confirmed", "done"}
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if at[0] != at[3] || at[3] == at[4] || at[4] != at[7] {
		t.Errorf("they name the blocks %v", at)
	}
}

// What is in the chain already is found, however deep; with depth 0 there is no
// update.
func TestAWatchFindsWhatHasHappened(t *testing.T) {
	const k = 6
	c, f := conway(t, k)
	raw, id := payment(t, c)
	include(t, c, raw)
	in := c.Tip()
	spend, spender := payment(t, c, chain.TxIn{ID: id})
	include(t, c, spend)
	above := c.Tip()
	watch := func(depth int, tx bool) (got []string) {
		seq := f.WatchOutput(t.Context(), chain.TxIn{ID: id}, depth)
		if tx {
			seq = f.WatchTx(t.Context(), id, depth)
		}
		for ev, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if tx && ev.At != in || !tx && (ev.At != above || ev.Tx != nil && ev.Tx.ID != spender) {
				t.Errorf("it was found in %v", ev.At)
			}
			got = append(got, said(ev))
			switch ev.Kind {
			case ourotail.Update:
				extend(t, c, 1)
			case ourotail.Confirmed:
				extend(t, c, k-1)
			}
		}
		return got
	}
	if got := watch(0, true); !slices.Equal(got, []string{"confirmed", "done"}) {
		t.Errorf("at the tip: %v", got)
	}
	if got := watch(k, false); !slices.Equal(got[len(got)-2:], []string{"confirmed", "done"}) {
		t.Errorf("its spender: %v", got)
	}
	extend(t, c, 3*k)
	follows(t, f, c)
	id, in = spender, above // what it made is unspent, which keeps it known
	if got := watch(3, true); !slices.Equal(got, []string{"confirmed", "done"}) {
		t.Errorf("deep down: %v", got)
	}
}

// A watch that waits for what has not happened ends with its context.
func TestAWatchEndsWithItsContext(t *testing.T) {
	c, f := conway(t, 6)
	ctx, cancel := context.WithCancel(t.Context())
	_, id := payment(t, c)
	time.AfterFunc(10*time.Millisecond, cancel)
	var err error
	for _, err = range f.WatchTx(ctx, id, 0) {
		if err == nil {
			t.Error("it was never in a block")
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err = range f.WatchTx(t.Context(), id, 7) {
		break
	}
	if !errors.Is(err, ourotail.ErrOption) {
		t.Error(err)
	}
}
