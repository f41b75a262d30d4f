package hub

import (
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

func TestContract_1_1_RawBlockIsHandedThrough(t *testing.T) {
	f := newFx(t)
	s, err := f.SubscribeBlock(query.EveryBlock(), Options{})
	must(t, err)
	b := f.next()
	f.apply(b)
	e, _, _ := s.Poll()
	if e.Kind != chain.Applied || &e.Block.Block[0] != &b.Block[0] {
		t.Fatalf("%+v", e)
	}
	none := newFx(t, func(c *Config) { c.Capabilities.Kinds[Blocks] = false })
	_, err = none.SubscribeBlock(query.EveryBlock(), Options{})
	none.wantErr(err, ErrUnsupported)
}

func TestContract_1_2_FailedTransactions(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a,b"), Options{})
	f.block("bad!: g.0 > a")
	f.want(s, "spent g.0 by bad @0", "created bad.7 by bad @0")
	f = newFx(t)
	s = f.sub(q("a,b"), Options{})
	f.block("bad!: g.0", "good: g.1 > a")
	for i, e := range all(t, s) {
		if want := i > 0; e.TxValid != want {
			t.Errorf("event %d: valid %v, want %v", i, e.TxValid, want)
		}
	}
}

func TestContract_1_2_SpendsCarryTheirCreation(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Events: SpentOnly})
	made := f.block("t1: g.0 > a")
	f.block("t2: t1.0")
	got := all(t, s)
	if len(got) != 2 || !got[0].UTxO.At.IsOrigin() || got[1].UTxO.At != made || string(got[1].UTxO.Out.Address) != "a" {
		t.Fatalf("%+v", got)
	}
}

func TestContract_1_3_OnlyCoveredBlocksReach(t *testing.T) {
	for name, c := range map[string]struct {
		q     query.UTxO
		cover string
		gets  bool
	}{
		"source":                      {q("a"), "a", true},
		"other source":                {q("a"), "b", false},
		"union, both arms":            {q("a,b"), "a,b", true},
		"union, one arm":              {q("a,b"), "a", false},
		"intersection, one arm":       {query.AllOf(q("a"), query.Policy(chain.Hash28{1})), "a", true},
		"intersection, no arm":        {query.AllOf(q("a"), query.Policy(chain.Hash28{1})), "b", false},
		"filter":                      {query.AllOf(q("a"), query.MinLovelace(0)), "a", true},
		"complement is never covered": {query.Not(q("b")), "a,b", false},
		"everything is never covered": {query.Everything(), "a,b", false},
	} {
		f := newFx(t, partial)
		s := f.sub(c.q, Options{Idle: true})
		f.covering(c.cover)
		if got := f.got(s); (len(got) == 1) != c.gets {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestContract_1_3_CompleteAnswersEverything(t *testing.T) {
	f := newFx(t, partial)
	s := f.sub(query.Everything(), Options{Idle: true})
	f.block()
	f.want(s, "idle @0")
}

func TestContract_1_4_AnEmptyBlockSaysLookedNothing(t *testing.T) {
	f := newFx(t, partial)
	s := f.sub(q("a"), Options{Idle: true})
	f.covering("a")
	f.covering("a", "t1: g.0 > a")
	f.want(s, "idle @0", "spent g.0 by t1 @1", "created t1.0 by t1 @1")
	if s.watermark() != 1 {
		t.Fatal(s.watermark())
	}
}

func TestContract_1_5_HeightsAscendOnce(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{})
	f.blocks(2)
	for _, h := range []chain.Height{-1, 0, 1, 3, 9} {
		b := &chain.AppliedBlock{At: pt('x', h), Coverage: chain.Complete}
		f.wantErr(f.ApplyBlock(b), ErrHeight)
	}
	// Nothing was spoilt.
	f.block("t1: g.0 > a")
	f.want(s, "spent g.0 by t1 @2", "created t1.0 by t1 @2")
	must(t, f.rollback(1))
}

func TestContract_1_5_FirstHeightIsDeclared(t *testing.T) {
	f := newFx(t, func(c *Config) { c.FirstHeight = 1 })
	f.wantErr(f.ApplyBlock(&chain.AppliedBlock{At: pt('x', 0), Coverage: chain.Complete}), ErrHeight)
	if at := f.block(); at.Height != 1 {
		t.Fatal(at)
	}
}

func TestContract_1_5_OnlyPartialProvidersSkip(t *testing.T) {
	f := newFx(t, partial)
	must(t, f.ApplyBlock(f.cover(&chain.AppliedBlock{At: pt('x', 4)}, "a")))
	f.wantErr(f.ApplyBlock(f.cover(&chain.AppliedBlock{At: pt('x', 4)}, "a")), ErrHeight)
	f.wantErr(f.ApplyBlock(f.cover(&chain.AppliedBlock{At: pt('x', 3)}, "a")), ErrHeight)
	whole := newFx(t)
	whole.wantErr(whole.ApplyBlock(whole.cover(whole.next(), "a")), ErrCoverage)
}

func TestContract_1_6_LeavingABoundaryBlockIsNoEvent(t *testing.T) {
	// A boundary block is not applied; leaving it names its predecessor, the tip.
	f := newFx(t)
	s := f.sub(q("a"), Options{Idle: true})
	f.block()
	must(t, f.RollbackTo(f.at))
	f.want(s, "idle @0")
	f.block()
	f.want(s, "idle @1")
}

func TestContract_1_7_GenesisOutputsSeedFromOrigin(t *testing.T) {
	for _, seed := range []SeedMode{NoSeed, SeedNow, SeedLater} {
		f := newFx(t)
		f.block("t1: g.0 > a")
		s := f.sub(q("a"), Options{Start: Origin, Seed: seed})
		f.want(s, "seed g.0 @origin", "spent g.0 by t1 @0", "created t1.0 by t1 @0")
		s = f.sub(q("a"), Options{Start: Origin, Seed: seed, Events: SpentOnly})
		f.want(s, "spent g.0 by t1 @0")
		s = f.sub(q("a"), Options{Start: Origin, Seed: seed, Events: CreatedOnly})
		f.want(s, "seed g.0 @origin", "created t1.0 by t1 @0")
	}
}

func TestContract_1_7_WhatTheLedgerRemovesIsUndoneLikeASpend(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Start: Origin})
	f.block()
	f.block("ledger: g.0")
	f.want(s, "seed g.0 @origin", "spent g.0 by ledger @1")
	must(t, f.rollback(0))
	f.want(s, "rolledback @0")
}

func TestContract_1_8_NoBackfill(t *testing.T) {
	f := newFx(t, partial)
	f.covering("a")
	again := f.cover(&chain.AppliedBlock{At: f.at}, "b")
	f.wantErr(f.ApplyBlock(again), ErrHeight)
}
