package hub

import (
	"fmt"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

func TestContract_3_10_Status(t *testing.T) {
	f := newFx(t)
	watch := func(name string) Subscription[TxStatus] {
		s, err := f.SubscribeStatus(f.txid(name))
		must(t, err)
		return s
	}
	want := func(s Subscription[TxStatus], state TxState, at chain.At) {
		t.Helper()
		st, ok, err := s.Poll()
		if !ok || err != nil || st.State != state || st.At != at {
			t.Fatalf("%+v, %v, %v; want %v at %v", st, ok, err, state, at)
		}
	}
	sent, seen, fails := watch("sent"), watch("seen"), watch("fails")
	for _, s := range []Subscription[TxStatus]{sent, seen, fails} {
		want(s, TxNotFound, chain.At{}) // the window reaches origin
	}
	f.Submitted(f.txid("sent"))
	f.SeenInMempool(f.txid("seen"))
	f.SeenInMempool(f.txid("somebody else's"))
	want(sent, TxPending, chain.At{})
	want(seen, TxPending, chain.At{})
	f.block("t: > a")
	at := f.block("sent: > a", "fails!: g.0 > a", "seen: > b")
	want(sent, TxConfirmed, at)
	want(seen, TxConfirmed, at)
	want(fails, TxFailed, at)
	late := watch("sent") // answered from the window
	want(late, TxConfirmed, at)
	must(t, f.rollback(0))
	want(sent, TxPending, chain.At{})
	want(late, TxPending, chain.At{})
	want(fails, TxNotFound, chain.At{}) // it was seen to leave the chain
	if n := len(f.statuses.table); n != 3 {
		t.Fatalf("%d transactions recorded", n)
	}
}

func TestContract_3_10_UnknownNamesTheOldestPoint(t *testing.T) {
	f := newFx(t)
	f.blocks(20)
	s, err := f.SubscribeStatus(chain.TxID{1})
	must(t, err)
	if st, _, _ := s.Poll(); st.State != TxUnknown || st.At != f.Floor() || st.At.IsOrigin() {
		t.Fatalf("%+v", st)
	}
	// With history to origin it is known.
	old := pt('o', 3)
	f = newFx(t, func(c *Config) {
		c.History = func(id chain.TxID) (chain.At, bool, bool, chain.At) { return old, id[0] == 2, id[0] >= 2, chain.Origin }
	})
	f.blocks(20)
	for i, want := range []TxState{1: TxNotFound, 2: TxConfirmed, 3: TxFailed} {
		if i == 0 {
			continue
		}
		s, err := f.SubscribeStatus(chain.TxID{byte(i)})
		must(t, err)
		st, _, _ := s.Poll()
		if st.State != want || (st.At == old) != (i > 1) {
			t.Errorf("%d: %+v, want %v", i, st, want)
		}
	}
}

// What was watched since the window reached origin stays known, also while nobody
// subscribes to it.
func TestContract_3_10_WhatWasWatchedStaysKnown(t *testing.T) {
	f := newFx(t)
	s, err := f.SubscribeStatus(f.txid("never"))
	must(t, err)
	s.Cancel()
	f.blocks(20)
	again, err := f.SubscribeStatus(f.txid("never"))
	must(t, err)
	if st, _, _ := again.Poll(); st.State != TxNotFound {
		t.Fatalf("%+v", st)
	}
}

func TestContract_3_10_PartialNeverSaysNotFound(t *testing.T) {
	f := newFx(t, partial)
	s, err := f.SubscribeStatus(f.txid("t"))
	must(t, err)
	states := func() (out []TxState) {
		for {
			st, ok, err := s.Poll()
			must(t, err)
			if !ok {
				return out
			}
			out = append(out, st.State)
		}
	}
	if got := states(); len(got) != 1 || got[0] != TxUnknown {
		t.Fatal(got)
	}
	f.covering("a")
	f.covering("a", "t: > a")
	states()
	must(t, f.rollback(0))
	if got := states(); len(got) != 1 || got[0] != TxUnknown {
		t.Fatal(got)
	}
}

func TestContract_3_10_TheTableIsBounded(t *testing.T) {
	f := newFx(t, func(c *Config) { c.StatusTable = 10 })
	kept, err := f.SubscribeStatus(f.txid("kept"))
	must(t, err)
	for i := range 100 {
		f.Submitted(f.txid(fmt.Sprint(i)))
	}
	if n := len(f.statuses.table); n != 11 {
		t.Fatalf("%d recorded", n)
	}
	// An entry that nobody subscribes to goes once it is k deep.
	f.Submitted(f.txid("mine"))
	f.block("mine: > a", "kept: > a")
	f.blocks(2)
	if f.statuses.table[f.txid("mine")] == nil {
		t.Fatal("gone before it was settled")
	}
	f.block()
	if f.statuses.table[f.txid("mine")] != nil || f.statuses.table[f.txid("kept")] == nil {
		t.Fatalf("mine %v, kept %v", f.statuses.table[f.txid("mine")], f.statuses.table[f.txid("kept")])
	}
	kept.Cancel()
	if f.statuses.table[f.txid("kept")] != nil {
		t.Fatal("kept after its last subscriber went")
	}
	for range 50 {
		s, err := f.SubscribeStatus(f.txid("nobody"))
		must(t, err)
		s.Cancel()
	}
	if n := len(f.statuses.table); n > 10 {
		t.Fatalf("%d recorded", n)
	}
}
