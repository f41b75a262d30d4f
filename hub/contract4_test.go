package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

func TestContract_4_1_EventsCarryPointAndHeight(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Idle: true})
	b0 := f.block("t: > a")
	b1 := f.block()
	must(t, f.RollbackTo(b0))
	got := all(t, s)
	want := []chain.At{b0, b1, b0}
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, e := range got {
		if e.At != want[i] {
			t.Errorf("event %d at %v, want %v", i, e.At, want[i])
		}
	}
	if got[2].Mark == nil || *got[2].Mark != b1 {
		t.Errorf("the rollback says it left %v, want %v", got[2].Mark, b1)
	}
	must(t, f.RollbackTo(chain.Origin))
	if e := all(t, s); len(e) != 1 || e[0].At != chain.Origin || e[0].At.Height >= 0 {
		t.Fatalf("%+v: origin lies below height 0", e)
	}
}

func TestContract_4_1_TransactionAndBlockEvents(t *testing.T) {
	f := newFx(t)
	txs, err := f.SubscribeTx(query.Involves([]byte("a")), Options{Idle: true})
	must(t, err)
	blocks, err := f.SubscribeBlock(query.EveryBlock(), Options{})
	must(t, err)
	b0 := f.block("bad!: g.0 > b", "other: g.1 > b", "good: > a")
	b1 := f.block()
	must(t, f.RollbackTo(b0))
	ctx := context.Background()
	for i, want := range []struct {
		kind  chain.EventKind
		tx    string
		valid bool
		at    chain.At
		last  bool
	}{
		{chain.Included, "bad", false, b0, false}, {chain.Included, "good", true, b0, true}, {chain.Idle, "", false, b1, true}, {chain.RolledBack, "", false, b0, false},
	} {
		e, err := txs.Next(ctx)
		must(t, err)
		if e.Kind != want.kind || e.At != want.at || e.LastOfBlock != want.last || e.Tx != nil && (f.names[e.Tx.ID] != want.tx || e.Tx.Valid != want.valid) {
			t.Errorf("event %d: %+v, want %+v", i, e, want)
		}
	}
	for i, want := range []struct {
		kind chain.EventKind
		at   chain.At
	}{{chain.Applied, b0}, {chain.Applied, b1}, {chain.RolledBack, b0}} {
		e, err := blocks.Next(ctx)
		must(t, err)
		if e.Kind != want.kind || e.At != want.at {
			t.Errorf("block event %d: %+v, want %+v", i, e, want)
		}
	}
}

func TestContract_4_1_DiscardingASpentRestores(t *testing.T) {
	f := newFx(t)
	f.block()
	s := f.sub(q("a"), Options{Start: Origin})
	f.block("t: g.0")
	must(t, f.rollback(0))
	f.want(s, "seed g.0 @origin", "spent g.0 by t @1", "rolledback @0") // and it is not sent again
}

func TestContract_4_4_Options(t *testing.T) {
	f := newFx(t, func(c *Config) { c.Bound = 2 })
	f.block("t: g.0 > a")
	f.want(f.sub(q("a"), Options{Start: Origin}), "seed g.0 @origin", "spent g.0 by t @0", "created t.0 by t @0")
	f.want(f.sub(q("a"), Options{Start: Origin, Events: CreatedOnly}), "seed g.0 @origin", "created t.0 by t @0")
	f.want(f.sub(q("a"), Options{Start: Origin, Events: SpentOnly}), "spent g.0 by t @0")
	f.want(f.sub(q("a"), Options{}))
	deflt, none, one := f.sub(q("a"), Options{}), f.sub(q("a"), Options{Bound: Unbounded}), f.sub(q("a"), Options{Bound: 1})
	f.block("u: > a a")
	for i, alive := range map[int]bool{0: true, 1: true, 2: false} {
		s := []*UTxOSubscription{deflt, none, one}[i]
		if got := f.got(s); strings.HasPrefix(got[len(got)-1], "end") == alive {
			t.Errorf("bound %d: %v", i, got)
		}
	}
}

// keyed are queries that are found by one key each, and an output they want.
func keyed(n int) []query.UTxO {
	h := chain.Hash28{byte(n), byte(n >> 8), 1}
	id := chain.TxID{byte(n), byte(n >> 8), 2}
	base := append(append([]byte{0x01}, h[:]...), h[:]...)
	return []query.UTxO{
		query.Address(base), query.Payment(h), query.Stake(h), query.Policy(h), query.Asset(h, []byte("x")),
		query.OutputsOf(id), query.Inputs(chain.TxIn{ID: id, Index: 3}), query.AllOf(query.Address(base), query.MinLovelace(1)),
	}
}

// Contract 5.1: subscriptions are found by lookup. With a thousand of each kind
// an output is compared only with those that share a key with it.
func TestContract_5_1_MatchingCostsWhatTheBlockHolds(t *testing.T) {
	f := newFx(t)
	const n = 1000
	var wanted []*UTxOSubscription
	for i := range n {
		for _, q := range keyed(i) {
			s := f.sub(q, Options{})
			if i == 7 {
				wanted = append(wanted, s)
			}
		}
	}
	txs := 0
	for i := range n {
		s, err := f.SubscribeTx(query.Involves(keyAddress(i)), Options{})
		must(t, err)
		s.Wake(func() { txs++ })
	}
	h := chain.Hash28{7, 0, 1}
	u := &chain.UTxO{Ref: chain.TxIn{ID: chain.TxID{7, 0, 2}, Index: 3}, Out: chain.TxOut{
		Address: keyAddress(7), Lovelace: 1, Assets: []chain.Asset{{Policy: h, Name: []byte("x"), Quantity: 1}, {Policy: h, Name: []byte("y"), Quantity: 1}},
	}}
	b := f.next()
	u.At = b.At
	b.Txs = []chain.AppliedTx{{ID: u.Ref.ID, Valid: true, Created: []chain.Effect{{UTxO: u}}}}
	looked := 0
	query.EachSource(u, f.index[UTxOs].kinds, make([]byte, 64), func(k chain.SourceKind, key []byte) bool {
		for p := f.index[UTxOs].find(uint8(k), key); p != nil; p = p.next {
			looked++
		}
		return true
	})
	if looked != len(keyed(0)) {
		t.Errorf("%d subscriptions looked at, want %d", looked, len(keyed(0)))
	}
	f.apply(b)
	for i, s := range wanted {
		if got := all(t, s); len(got) != 1 || got[0].UTxO != u {
			t.Errorf("query %d got %+v", i, got)
		}
	}
	if txs != 1 {
		t.Errorf("%d transaction subscriptions woke", txs)
	}
	for _, q := range keyed(0) {
		if keys, _ := q.Keys(); len(keys) != 1 || keys[0].Kind == chain.SourceAll {
			t.Errorf("%v is found under %v", q, keys)
		}
	}
}

func keyAddress(n int) []byte {
	keys, _ := keyed(n)[0].Keys()
	return []byte(keys[0].Key)
}

func TestContract_5_1_FoundByTwoKeysGivenOnce(t *testing.T) {
	f := newFx(t)
	h := chain.Hash28{1}
	s := f.sub(query.AnyOf(q("a"), query.Policy(h), query.Asset(h, nil)), Options{})
	txs, err := f.SubscribeTx(query.AnyTx(query.Involves([]byte("a")), query.Spends(f.set["g.0"].Ref)), Options{})
	must(t, err)
	b := f.next("t: g.0 > a")
	b.Txs[0].Created[0].UTxO.Out.Assets = []chain.Asset{{Policy: h, Quantity: 1}}
	f.apply(b)
	f.want(s, "spent g.0 by t @0", "created t.0 by t @0")
	if _, ok, _ := txs.Poll(); !ok {
		t.Fatal("no transaction")
	}
	if e, ok, _ := txs.Poll(); ok {
		t.Fatalf("twice: %+v", e)
	}
}

func TestContract_5_1_WhatAKeyCannotDecideIsMatched(t *testing.T) {
	f := newFx(t)
	s := f.sub(query.AllOf(q("a"), query.Not(query.Inputs(f.set["g.0"].Ref))), Options{})
	f.block("t: g.0 > a")
	f.want(s, "created t.0 by t @0")
}

func TestContract_5_1_NoAllocationWhenNothingMatches(t *testing.T) {
	f := newFx(t)
	subs := make([]*UTxOSubscription, 0, 1000)
	for i := range cap(subs) {
		subs = append(subs, f.sub(keyed(i)[i%7], Options{}))
	}
	var blocks []*chain.AppliedBlock
	for i := range chain.Height(600) {
		blocks = append(blocks, mainnetLike(int(i), pt('m', i)))
	}
	i := 0
	apply := func() {
		must(t, f.ApplyBlock(blocks[i]))
		i++
	}
	for range 100 {
		apply()
	}
	if n := testing.AllocsPerRun(400, apply); n > 0 {
		t.Errorf("%v allocations a block", n)
	}
	for _, s := range subs {
		if len(all(t, s)) > 0 {
			t.Fatal("something matched")
		}
	}
}

// A subscription over a hundred thousand addresses is one subscription.
func TestContract_5_1_ManyAddressesAreOneSubscription(t *testing.T) {
	f := newFx(t)
	const n = 100_000
	var qs []query.UTxO
	for i := range n {
		qs = append(qs, query.Address(fmt.Appendf(nil, "addr %d", i)))
	}
	many := query.AnyOf(qs...)
	s := f.sub(many, Options{})
	if f.Subscribers() != 1 || len(f.Sources()) != n {
		t.Fatalf("%d subscriptions, %d sources", f.Subscribers(), len(f.Sources()))
	}
	other := f.sub(query.AnyOf(q("addr"), query.Address([]byte("addr 5"))), Options{})
	b := f.next()
	u := &chain.UTxO{Out: chain.TxOut{Address: []byte("addr 99999")}, At: b.At}
	b.Txs = []chain.AppliedTx{{Valid: true, Created: []chain.Effect{{UTxO: u}}}}
	f.apply(b)
	if got := all(t, s); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	s.Cancel()
	if f.Subscribers() != 1 || len(f.Sources()) != 2 {
		t.Fatalf("%d subscriptions, %d sources after it went", f.Subscribers(), len(f.Sources()))
	}
	b = f.next()
	v := &chain.UTxO{Out: chain.TxOut{Address: []byte("addr 5")}, At: b.At}
	b.Txs = []chain.AppliedTx{{Valid: true, Created: []chain.Effect{{UTxO: v}}}}
	f.apply(b)
	if got := all(t, other); len(got) != 1 {
		t.Fatalf("the other one got %+v", got)
	}
	// Refused, it leaves nothing behind.
	_, err := f.SubscribeUTxO(many, Options{Start: After, After: chain.Cursor{At: pt('?', 1), Place: chain.WholeBlock}})
	f.wantErr(err, ErrUnknownPoint)
	if len(f.Sources()) != 2 {
		t.Fatalf("%d sources", len(f.Sources()))
	}
	f.CloseAll()
}

// A query that wants nothing gets nothing, and can be lived with.
func TestEmptyQuery(t *testing.T) {
	f := newFx(t)
	s := f.sub(query.AnyOf(), Options{Idle: true})
	f.block("t: g.0 > a")
	f.want(s, "idle @0")
	s.Cancel()
	if f.Subscribers() != 0 {
		t.Fatal("still there")
	}
}

// Contract 5.2: names and positions of events depend neither on the query nor
// on what was probed.
func TestContract_5_2_NamesDoNotDependOnTheQuery(t *testing.T) {
	f := newFx(t)
	wide, narrow := f.sub(q("a,b"), Options{}), f.sub(q("b"), Options{Events: CreatedOnly})
	f.block("t: g.0 g.1 > a b", "u: t.0 > b a")
	w, n := all(t, wide), all(t, narrow)
	if len(w) != 7 || len(n) != 2 {
		t.Fatalf("%d and %d events", len(w), len(n))
	}
	for _, pair := range [][2]int{{3, 0}, {5, 1}} {
		a, b := w[pair[0]], n[pair[1]]
		ca, _ := a.Cursor()
		cb, _ := b.Cursor()
		if a.ID() != b.ID() || ca != cb {
			t.Errorf("%s %v and %s %v", a.ID(), ca, b.ID(), cb)
		}
	}
	seen := map[string]bool{}
	for _, e := range w {
		if seen[e.ID()] {
			t.Errorf("%s twice", e.ID())
		}
		seen[e.ID()] = true
	}
	// Once more in another hub: the same events, the same names.
	again := newFx(t)
	again.fork = f.fork - 1
	s := again.sub(q("a,b"), Options{})
	again.block("t: g.0 g.1 > a b", "u: t.0 > b a")
	for i, e := range all(t, s) {
		if e.ID() != w[i].ID() {
			t.Errorf("event %d is called %s and %s", i, w[i].ID(), e.ID())
		}
	}
}

// Contract 5.2: with the buffer drained the cursor is the watermark; a cursor
// resumes exactly after its event.
func TestContract_5_2_CursorOfAReader(t *testing.T) {
	f := newFx(t)
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedLater})
	if c, ok := s.Cursor(); ok {
		t.Fatalf("%v before its seed", c)
	}
	f.block("t: g.0 > a a")
	if r := s.Seed(f.at, rowsIn(f.set, q("a"))); r != SeedTaken {
		t.Fatal(r)
	}
	base := f.at
	ctx := context.Background()
	if _, err := s.Next(ctx); err != nil {
		t.Fatal(err)
	}
	if c, ok := s.Cursor(); ok {
		t.Fatalf("%v inside its seed", c)
	}
	_, _ = s.Next(ctx)
	f.blocks(3) // quiet
	if c, ok := s.Cursor(); !ok || c != (chain.Cursor{At: f.at, Place: chain.WholeBlock, Base: base, HasBase: true}) {
		t.Fatalf("%v, %v", c, ok)
	}
	f.block("u: t.0 t.1 > a")
	e, _ := s.Next(ctx)
	c, ok := s.Cursor()
	if want, _ := e.Cursor(); !ok || c != want || c.Place != 0 {
		t.Fatalf("%v", c)
	}
	s.Cancel()
	if c, ok := s.Cursor(); ok {
		t.Fatalf("%v after the end", c)
	}
	text, _ := c.MarshalText()
	var back chain.Cursor
	if err := back.UnmarshalText(text); err != nil || back != c {
		t.Fatalf("%s: %v, %v", text, back, err)
	}
	r := f.sub(q("a"), Options{Start: Resume, After: back})
	f.want(r, "spent t.1 by u @5", "created u.0 by u @5")
	gated := f.sub(q("a"), Options{Confirmations: 2})
	if c, ok := gated.Cursor(); !ok || c.At != f.back(3) || c.HasBase {
		t.Fatalf("%v", c)
	}
	deep := newFx(t).sub(q("a"), Options{})
	if c, ok := deep.Cursor(); !ok || c.At != chain.Origin {
		t.Fatalf("%v", c)
	}
}

// Contract 5.2: a rollback and its corrections carry the point rolled back to and
// the old base, the last of them the new one: whoever stops among them gets them
// again.
func TestContract_5_2_CursorsOfARollbackAndItsCorrections(t *testing.T) {
	f := newFx(t)
	f.block("t: > a a")
	to := f.at
	f.block("u: t.0 t.1")
	base := f.at
	s := f.sub(q("a"), Options{Seed: SeedNow})
	f.want(s, "seed g.0 @origin")
	must(t, f.rollback(0))
	got := all(t, s)
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []chain.At{base, base, to} {
		c, ok := got[i].Cursor()
		if !ok || c != (chain.Cursor{At: to, Place: chain.WholeBlock, Base: want, HasBase: true}) {
			t.Errorf("event %d: %v, want base %v", i, c, want)
		}
	}
	f.block() // the block that replaces it
	among, _ := got[1].Cursor()
	r := f.sub(q("a"), Options{Start: Resume, After: among, Idle: true})
	f.want(r, "correction t.0 @0", "correction t.1 @0", "idle @1")
	behind, _ := got[2].Cursor()
	r = f.sub(q("a"), Options{Start: Resume, After: behind, Idle: true})
	f.want(r, "idle @1")
}
