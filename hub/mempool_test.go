package hub

import (
	"maps"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// TestContract_3_10_Mempool: what leaves the mempool without a block is not
// found, what is in a block stays there, and only what is not is to be looked
// for.
func TestContract_3_10_Mempool(t *testing.T) {
	f := newFx(t)
	var subs []Subscription[TxStatus]
	for _, name := range []string{"a", "b"} {
		s, err := f.SubscribeStatus(f.txid(name))
		must(t, err)
		subs = append(subs, s)
	}
	want := func(s Subscription[TxStatus], state TxState) {
		t.Helper()
		if st, ok, err := s.Poll(); !ok || err != nil || st.State != state {
			t.Fatalf("%+v, %v, %v; want %v", st, ok, err, state)
		}
	}
	waiting := func(w map[chain.TxID]bool) {
		t.Helper()
		if got := f.Waiting(); !maps.Equal(got, w) {
			t.Fatalf("waiting: %v, want %v", got, w)
		}
	}
	a, b := f.txid("a"), f.txid("b")
	waiting(map[chain.TxID]bool{a: false, b: false})
	f.SeenInMempool(a)
	f.Submitted(b)
	f.Submitted(f.txid("nobody asks for it"))
	want(subs[0], TxPending)
	want(subs[1], TxPending)
	waiting(map[chain.TxID]bool{a: true, b: true})
	f.LeftMempool(a)
	f.LeftMempool(f.txid("unheard of"))
	want(subs[0], TxNotFound)
	waiting(map[chain.TxID]bool{a: false, b: true})

	f.block("t: > z")
	f.block("a: > x", "b: > y")
	want(subs[0], TxConfirmed)
	want(subs[1], TxConfirmed)
	waiting(map[chain.TxID]bool{})
	f.LeftMempool(b)
	if st, ok, _ := subs[1].Poll(); ok {
		t.Fatalf("%+v of a transaction in a block that left the mempool", st)
	}
	must(t, f.rollback(0))
	want(subs[0], TxNotFound)
	want(subs[1], TxNotFound) // it left the mempool meanwhile
	waiting(map[chain.TxID]bool{a: false, b: false})

	for _, s := range subs {
		s.Cancel()
	}
	if waiting(map[chain.TxID]bool{}); f.Followed() {
		t.Fatal("followed after the last subscription")
	}
}

// TestContract_3_10_UnknownIsNotRecorded: asking once for what nobody knows does not
// have blocks built for it from then on.
func TestContract_3_10_UnknownIsNotRecorded(t *testing.T) {
	f := newFx(t)
	f.blocks(20)
	s, err := f.SubscribeStatus(chain.TxID{1})
	must(t, err)
	if st, _, _ := s.Poll(); st.State != TxUnknown || f.Subscribers() != 1 {
		t.Fatalf("%+v, %d subscribers", st, f.Subscribers())
	}
	s.Cancel()
	if n := f.Subscribers(); n != 0 {
		t.Fatalf("%d subscribers after the last", n)
	}
}
