package hub

import (
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

func TestContract_3_6_TheWindowKeepsHorizonPlusDepth(t *testing.T) {
	f := newFx(t)
	f.blocks(20)
	if got := f.Floor().Height; got != 19-3-5 {
		t.Fatalf("floor %d", got)
	}
	// Counted from the highest ever, not from the tip.
	must(t, f.rollback(17))
	f.block()
	if got := f.Floor().Height; got != 19-3-5 {
		t.Fatalf("floor %d", got)
	}
	// A gated reader at the greatest depth survives the deepest rollback.
	s := f.sub(q("a"), Options{Confirmations: 5, Idle: true})
	must(t, f.rollback(16))
	f.blocks(6)
	for _, e := range all(t, s) {
		if e.Kind != chain.Idle {
			t.Errorf("%+v", e)
		}
	}
}

func TestContract_3_6_AnUncoveredDueHeightIsAGap(t *testing.T) {
	for name, hole := range map[string]func(*fx){
		"not probed": func(f *fx) { f.covering("b", "t1: g.0") },
		"skipped": func(f *fx) {
			b := f.cover(f.next(), "a")
			b.At.Height++
			f.apply(b)
		},
	} {
		f := newFx(t, partial)
		s := f.sub(q("a"), Options{})
		gated := f.sub(q("a"), Options{Confirmations: 1, Idle: true})
		f.covering("a")
		hole(f)
		var gap *GapError
		if _, _, err := s.Poll(); !errors.As(err, &gap) || gap.Height != 1 {
			t.Errorf("%s: %v, want a gap at 1", name, err)
		}
		if name == "not probed" {
			f.want(gated, "idle @0") // not due yet
			f.covering("a")
			f.want(gated, "end: gap")
		}
	}
}

func TestContract_3_6_HeightsBelowTheSeedBelongToIt(t *testing.T) {
	f := newFx(t, partial)
	f.covering("b")
	f.covering("b")
	s := f.sub(q("a"), Options{Seed: SeedNow})
	f.want(s, "seed g.0 @origin")
	f.covering("a")
	f.want(s)
}

func TestContract_3_6_WithoutSeedItBeginsWhereItIsFirstCovered(t *testing.T) {
	f := newFx(t, partial)
	s := f.sub(q("a"), Options{Idle: true})
	f.covering("b", "t1: g.0 > a")
	f.covering("b")
	f.want(s)
	f.covering("a", "t2: t1.0")
	f.want(s, "spent t1.0 by t2 @2")
	f.covering("b")
	f.want(s, "end: gap")
}

func TestContract_3_7_SpendsBeforeCreationsInBlockOrder(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{})
	f.block("t1: g.0 > a b a", "t2: t1.0 t1.2 > a")
	f.want(s, "spent g.0 by t1 @0", "created t1.0 by t1 @0", "created t1.2 by t1 @0",
		"spent t1.0 by t2 @0", "spent t1.2 by t2 @0", "created t2.0 by t2 @0")
}

func TestContract_3_8_IdleIfDeclaredAndAskedFor(t *testing.T) {
	for _, declared := range []bool{false, true} {
		f := newFx(t, func(c *Config) { c.Capabilities.Idle = declared })
		for _, asked := range []bool{false, true} {
			s := f.sub(q("a"), Options{Idle: asked, Events: CreatedOnly})
			at := f.block("t: g.1 > b")
			f.set["g.1"] = f.set["t.0"]
			got := all(t, s)
			if want := declared && asked; (len(got) == 1) != want || want && (got[0].Kind != chain.Idle || got[0].At != at) {
				t.Errorf("declared %v, asked %v: %+v", declared, asked, got)
			}
		}
	}
	// A block that holds only what was not asked for is quiet.
	f := newFx(t)
	s := f.sub(q("a"), Options{Idle: true, Events: CreatedOnly})
	f.block("t: g.0")
	f.want(s, "idle @0")
	f.block("u: > a")
	f.want(s, "created u.0 by u @1")
}

func TestContract_3_9_RefusedRollbacks(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Idle: true})
	f.blocks(3)
	f.got(s)
	f.wantErr(f.RollbackTo(pt('?', 1)), ErrUnknownPoint)
	f.wantErr(f.RollbackTo(pt('?', 2)), ErrUnknownPoint) // at the height of the tip
	f.wantErr(f.RollbackTo(pt('?', 3)), ErrAhead)
	f.want(s) // nothing happened
	f.block()
	f.want(s, "idle @3")
	none := newFx(t, func(c *Config) { c.Capabilities.Horizon = NoHorizon })
	none.blocks(2)
	none.wantErr(none.rollback(0), ErrNoHorizon)
}

func TestContract_3_9_ToTheTipIsNoEvent(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{})
	f.blocks(2)
	must(t, f.RollbackTo(f.at))
	f.want(s)
	// Also at a height that a partial provider skipped.
	p := newFx(t, partial)
	b := p.cover(p.next(), "a")
	b.At.Height = 2
	p.apply(b)
	skipped := pt('s', 1)
	must(t, p.RollbackTo(skipped))
	if p.Tip() != skipped {
		t.Fatal(p.Tip())
	}
	ps := p.sub(q("a"), Options{})
	must(t, p.RollbackTo(skipped))
	p.want(ps)
	p.wantErr(p.RollbackTo(pt('x', 1)), ErrUnknownPoint)
}

func TestContract_3_9_DepthIsCountedFromTheHighestEver(t *testing.T) {
	f := newFx(t) // horizon 3
	f.blocks(8)   // highest 7
	must(t, f.rollback(5))
	f.block()
	s := f.sub(q("a"), Options{})
	must(t, f.rollback(4)) // 3 below the highest ever
	f.want(s, "rolledback @4")
	if err := f.rollback(3); !errors.Is(err, ErrResync) { // 1 below the tip, 4 below the highest ever
		t.Fatal(err)
	}
	f.want(s, "end: resync")
	_, err := f.SubscribeUTxO(q("a"), Options{})
	f.wantErr(err, ErrFailed)
}

func TestContract_3_9_BelowTheOldestBlockHeldIsResync(t *testing.T) {
	f := newFx(t)
	f.Skip(pt('s', 20))
	f.at = pt('s', 20)
	f.block()
	s := f.sub(q("a"), Options{})
	f.wantErr(f.RollbackTo(pt('?', 19)), ErrResync)
	f.want(s, "end: resync")
}

func TestContract_3_9_TheHighestIsStored(t *testing.T) {
	f := newFx(t)
	must(t, f.Restore(State{Tip: pt('b', 4), Highest: 6, Floor: pt('b', 2), Blocks: []*chain.AppliedBlock{
		{At: pt('b', 3), Coverage: chain.Complete}, {At: pt('b', 4), Coverage: chain.Complete},
	}}))
	must(t, f.RollbackTo(pt('b', 3)))                       // 3 below the highest
	f.wantErr(f.RollbackTo(pt('b', 2)), ErrResync)          // 4 below it
	f.wantErr(f.Restore(State{Tip: pt('b', 4)}), ErrFailed) // a failed hub stays failed
}

func TestContract_3_9_OnlyThoseWhoWereGivenTheBlocksHear(t *testing.T) {
	f := newFx(t)
	f.blocks(3)
	quiet, gated := f.sub(q("nobody"), Options{}), f.sub(q("a"), Options{Confirmations: 2})
	waits := f.sub(q("a"), Options{Seed: SeedLater})
	f.block("t1: g.0 > a") // 3
	must(t, f.rollback(2))
	f.want(quiet, "rolledback @2") // it was given the block, if only as silence
	f.want(gated)                  // it stands at 1
	f.want(waits)
	if w := waits.watermark(); w != 2 {
		t.Fatalf("the watermark of one that waits for its seed is %d", w)
	}
	must(t, f.rollback(1))
	if w := waits.watermark(); w != 1 {
		t.Fatalf("the watermark of one that waits for its seed is %d", w)
	}
	f.blocks(4)
	f.want(quiet, "rolledback @1")
	f.want(gated)
}

func TestContract_3_9_NoRollbackNeverSeesOne(t *testing.T) {
	f := newFx(t)
	f.blocks(4)
	s := f.sub(q("a"), Options{NoRollback: true, Idle: true})
	deep := f.sub(q("a"), Options{NoRollback: true, Confirmations: 4})
	if s.depth != 3 || deep.depth != 4 {
		t.Fatalf("depths %d and %d", s.depth, deep.depth)
	}
	f.block("t1: g.0 > a") // 4
	must(t, f.rollback(1))
	f.block()              // 2
	f.block("t2: g.0 > a") // 3
	f.blocks(4)
	f.want(s, "idle @1", "idle @2", "spent g.0 by t2 @3", "created t2.0 by t2 @3", "idle @4")
}
