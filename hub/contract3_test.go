package hub

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

func TestContract_3_1_NoGoroutineAndProgramOrder(t *testing.T) {
	before := runtime.NumGoroutine()
	f := newFx(t)
	for range 50 {
		s := f.sub(q("a"), Options{})
		f.block("t1: > a")
		if got := f.got(s); len(got) != 1 {
			t.Fatalf("subscribed, then applied, got %v", got)
		}
	}
	if n := runtime.NumGoroutine(); n != before {
		t.Fatalf("%d goroutines more", n-before)
	}
}

func TestContract_3_2_RegistrationAndSeedAreOneStep(t *testing.T) {
	// Another goroutine applies, moving one output on from block to block; whoever
	// registers gets each Created before the Spent that belongs after it.
	f := newFx(t)
	delete(f.set, "g.1")
	var publish sync.Mutex
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			publish.Lock()
			b := f.next(fmt.Sprintf("t%d: %s > a", i, slices.Collect(maps.Keys(f.set))[0]))
			f.keep(b)
			flush, err := f.BufferBlock(b)
			publish.Unlock()
			if flush(); err != nil {
				panic(err)
			}
		}
	}()
	for registered := 0; ; registered++ {
		publish.Lock()
		at, rows := f.at, rowsIn(f.set, q("a"))
		o := Options{Seed: []SeedMode{SeedNow, SeedLater}[registered%2], Rows: rows}
		s, err := f.SubscribeUTxO(q("a"), o)
		publish.Unlock()
		must(t, err)
		if o.Seed == SeedLater {
			if r := s.Seed(at, rows); r != SeedTaken {
				t.Fatal(r)
			}
		}
		have := 0
		for _, e := range all(t, s) {
			switch e.Kind {
			case chain.Created:
				have++
			case chain.Spent:
				if have--; have < 0 {
					t.Fatalf("%v spent before it was created", e.UTxO.Ref)
				}
			}
		}
		s.Cancel()
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestContract_3_2_NothingIsCalledUnderTheLock(t *testing.T) {
	var f *fx
	inside := 0
	f = newFx(t, func(c *Config) {
		c.Changed = func() { inside++; f.Tip() }
		genesis := c.Genesis
		c.Genesis = func(q query.UTxO) ([]*chain.UTxO, error) {
			inside++
			f.Tip() // deadlocks if the hub's mutex is held
			return genesis(q)
		}
		c.History = func(chain.TxID) (chain.At, bool, bool, chain.At) {
			inside++
			f.Tip()
			return chain.At{}, false, false, chain.Origin
		}
		c.Contents = contents(func(chain.At) (*chain.AppliedBlock, error) {
			inside++
			f.Tip()
			return nil, errModel
		})
	})
	f.blocks(12)
	s := f.sub(q("a"), Options{})
	s.Wake(func() { inside++; f.Tip() })
	_, err := f.SubscribeUTxO(q("a"), Options{Confirmations: 2})
	f.wantErr(err, ErrReach)
	_, err = f.SubscribeStatus(chain.TxID{1})
	must(t, err)
	f.block("t1: > a")
	s.Cancel()
	if inside < 6 {
		t.Fatalf("only %d of the callbacks ran", inside)
	}
}

type contents func(chain.At) (*chain.AppliedBlock, error)

func (c contents) Block(at chain.At) (*chain.AppliedBlock, error) { return c(at) }

func TestContract_3_3_SeedsCarryTheirCreationWithinTheHorizon(t *testing.T) {
	f := newFx(t)
	f.block("t0: > a")
	f.block("t1: > a")
	f.block("t2: > a")
	f.block("t3: > a")
	s := f.sub(q("a"), Options{Seed: SeedNow}) // horizon 3 below 3
	f.want(s, "seed g.0 @origin", "seed t0.0 @origin", "seed t1.0 @1", "seed t2.0 @2", "seed t3.0 @3")
}

func TestContract_3_3_ARollbackBelowTheBaseCorrects(t *testing.T) {
	f := newFx(t)
	f.block("t0: > a a")
	f.block("t1: t0.0 > a")
	f.block("t2: t0.1 t1.0 g.0")
	s := f.sub(q("a"), Options{Seed: SeedNow})
	f.want(s)
	must(t, f.rollback(0))
	// t1.0 did not exist at 0; t0.0 was spent at 1, t0.1 and g.0 at 2.
	got := all(t, s)
	var text []string
	for i := range got {
		text = append(text, f.text(&got[i]))
	}
	want := map[string]bool{"rolledback @0": true, "correction t0.0 @0": true, "correction t0.1 @0": true, "correction g.0 @origin": true}
	if len(text) != 4 || text[0] != "rolledback @0" {
		t.Fatal(text)
	}
	for _, e := range text {
		if !want[e] {
			t.Errorf("unexpected %s", e)
		}
	}
	// The base has come down: the same again below it.
	f.block("t3: t0.0")
	must(t, f.rollback(0))
	f.want(s, "spent t0.0 by t3 @1", "rolledback @0")
}

func TestContract_3_3_CorrectionsOfAGatedViewStartAtItsOwnBase(t *testing.T) {
	f := newFx(t)
	f.block("t0: > a")
	f.block("t1: t0.0")
	f.block("t2: g.0")
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedNow, Confirmations: 2}) // stands at 1
	f.want(s, "seed g.0 @origin")
	must(t, f.rollback(0))
	f.want(s, "rolledback @0", "correction t0.0 @origin")
}

func TestContract_3_3_UnseededAndSpentOnlyAreNotCorrected(t *testing.T) {
	f := newFx(t)
	f.block()
	f.block("t1: g.0")
	unseeded, spent, created := f.sub(q("a"), Options{}), f.sub(q("a"), Options{Events: SpentOnly, Seed: SeedNow}), f.sub(q("a"), Options{Events: CreatedOnly, Seed: SeedNow})
	must(t, f.rollback(0))
	f.want(unseeded, "rolledback @0")
	f.want(spent, "rolledback @0")
	f.want(created, "rolledback @0", "correction g.0 @origin")
}

func TestContract_3_3_ResyncWhereTheBlocksWereNotCovered(t *testing.T) {
	f := newFx(t, partial)
	f.covering("a,b")
	f.covering("b", "t1: g.0")
	s := f.sub(q("a"), Options{Seed: SeedNow})
	f.want(s)
	must(t, f.rollback(0))
	f.want(s, "end: resync")
}

func TestContract_3_4_AGatedSeedIsWoundBack(t *testing.T) {
	f := newFx(t)
	f.block("t0: > a a")
	f.block("t1: t0.0 > a")
	f.block("t2: t1.0 > a")
	s := f.sub(q("a"), Options{Seed: SeedNow, Confirmations: 2})
	if s.watermark() != 0 {
		t.Fatal(s.watermark())
	}
	// As at 0: t0.0 restored, t1.0 made and spent inside left out, t2.0 not there yet.
	f.want(s, "seed g.0 @origin", "seed t0.1 @0", "seed t0.0 @0")
	f.block()
	f.want(s, "spent t0.0 by t1 @1", "created t1.0 by t1 @1")
}

func TestContract_3_4_BelowTheFirstHeightIsOrigin(t *testing.T) {
	for first := range chain.Height(2) {
		f := newFx(t, func(c *Config) { c.FirstHeight = first })
		f.block("t0: > a")
		s := f.sub(q("a"), Options{Seed: SeedNow, Confirmations: 1})
		if s.watermark() != chain.OriginHeight {
			t.Fatal(s.watermark())
		}
		f.want(s, "seed g.0 @origin")
		f.block() // the first real block is delivered like any other
		got := all(t, s)
		if len(got) != 1 || got[0].At.Height != first {
			t.Fatalf("first height %d: %+v", first, got)
		}
	}
}

func TestContract_3_5_NothingBeforeTheSeed(t *testing.T) {
	f := newFx(t)
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedLater, Idle: true})
	f.block("t1: g.0 > a")
	f.block()
	f.want(s)
	if s.watermark() != 0 {
		t.Fatal("the watermark moved")
	}
	if r := s.Seed(f.back(0), f.rows(q("a"), 0)); r != SeedTaken {
		t.Fatal(r)
	}
	f.want(s, "seed g.0 @origin", "spent g.0 by t1 @1", "created t1.0 by t1 @1", "idle @2")
}

func TestContract_3_5_ASeedBelowTheRegistration(t *testing.T) {
	f := newFx(t)
	f.block()
	f.block("t1: g.0 > a")
	f.block("t2: t1.0 > a")
	s := f.sub(q("a"), Options{Seed: SeedLater})
	// Blocks at or below the registration watermark, 2, are due behind it.
	if r := s.Seed(f.back(0), f.rows(q("a"), 0)); r != SeedTaken {
		t.Fatal(r)
	}
	f.want(s, "seed g.0 @origin", "spent g.0 by t1 @1", "created t1.0 by t1 @1", "spent t1.0 by t2 @2", "created t2.0 by t2 @2")
}

func TestContract_3_5_ASeedAheadWaits(t *testing.T) {
	f := newFx(t)
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedLater})
	ahead := f.next("t1: g.0 > a")
	if r := s.Seed(ahead.At, rowsIn(f.set, q("a"))); r != SeedHeld {
		t.Fatal(r)
	}
	f.want(s)
	f.apply(ahead)
	f.want(s, "seed t1.0 @1") // its block belongs to the seed
	f.block("t2: t1.0")
	f.want(s, "spent t1.0 by t2 @2")
}

func TestContract_3_5_ASeedOfAGatedSubscriptionIsWoundBackToTheGate(t *testing.T) {
	f := newFx(t)
	f.blocks(2)
	s := f.sub(q("a"), Options{Seed: SeedLater, Confirmations: 1}) // watermark 0
	f.block("t1: g.0 > a")                                         // at 2
	f.block("t2: t1.0 > a")                                        // at 3
	if r := s.Seed(f.at, rowsIn(f.set, q("a"))); r != SeedTaken {  // the gate is 2
		t.Fatal(r)
	}
	f.want(s, "seed t1.0 @2")
	f.block()
	f.want(s, "spent t1.0 by t2 @3", "created t2.0 by t2 @3")
}

func TestContract_3_5_AnOrphanedSeedIsStale(t *testing.T) {
	f := newFx(t)
	f.blocks(2)
	stale := 0
	s := f.sub(q("a"), Options{Seed: SeedLater, Stale: func() { stale++; f.Tip() }})
	gone := f.at
	must(t, f.rollback(0))
	f.block()
	if r := s.Seed(gone, nil); r != SeedStale {
		t.Fatal(r)
	}
	// One that was held is told when it turns out to be orphaned.
	ahead := f.next()
	if r := s.Seed(ahead.At, nil); r != SeedHeld {
		t.Fatal(r)
	}
	f.block()
	if stale != 1 {
		t.Fatalf("told %d times", stale)
	}
	if r := s.Seed(f.at, rowsIn(f.set, q("a"))); r != SeedTaken {
		t.Fatal(r)
	}
	f.want(s, "seed g.0 @origin")
}

func TestContract_3_5_AnUncoveredHeightAboveMakesItStale(t *testing.T) {
	f := newFx(t, partial)
	f.covering("a")
	s := f.sub(q("a"), Options{Seed: SeedLater})
	f.covering("b")
	if r := s.Seed(f.back(0), nil); r != SeedStale {
		t.Fatal(r)
	}
	if r := s.Seed(f.at, nil); r != SeedTaken {
		t.Fatal(r)
	}
}

func TestContract_3_5_HeldUntilDeepWhereWindingBackIsNotCovered(t *testing.T) {
	f := newFx(t, partial)
	f.covering("a")
	f.covering("b", "t1: g.0 > a")
	s := f.sub(q("a"), Options{Seed: SeedLater, Confirmations: 2})
	if r := s.Seed(f.at, rowsIn(f.set, q("a"))); r != SeedHeld {
		t.Fatal(r)
	}
	f.covering("a")
	f.want(s)
	f.covering("a") // the seed's point is 2 deep
	f.want(s, "seed t1.0 @1")
}

func TestContract_3_5_ADroppedBlockIsResync(t *testing.T) {
	f := newFx(t, func(c *Config) { c.SeedWindow = 1 })
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedLater})
	at := f.at
	f.blocks(12)
	if r := s.Seed(at, nil); r != SeedFatal {
		t.Fatal(r)
	}
	f.want(s, "end: resync")
}

func TestContract_3_5_TheWindowWaitsWithinTheBound(t *testing.T) {
	f := newFx(t, func(c *Config) { c.SeedWindow = 11 })
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedLater})
	at, rows := f.at, rowsIn(f.set, q("a"))
	f.blocks(11) // horizon 3 and depth 5 alone would have dropped it
	if r := s.Seed(at, rows); r != SeedTaken {
		t.Fatal(r)
	}
	f.want(s, "seed g.0 @origin")
	f.block()
	if f.Floor().Height != 12-3-5 {
		t.Fatalf("the window reaches down to %v though nobody waits", f.Floor())
	}
}

func TestContract_3_5_UnreadableTwiceAndAfterCancel(t *testing.T) {
	f := newFx(t)
	f.block()
	s := f.sub(q("a"), Options{Seed: SeedLater})
	s.SeedFailed(errModel)
	_, _, err := s.Poll()
	f.wantErr(err, ErrSeed)
	f.wantErr(err, errModel)
	s = f.sub(q("a"), Options{Seed: SeedLater})
	if r := s.Seed(f.at, nil); r != SeedTaken {
		t.Fatal(r)
	}
	if r := s.Seed(f.at, f.rows(q("a"), 0)); r != SeedIgnored {
		t.Fatal(r)
	}
	s.SeedFailed(errModel) // too late
	f.want(s)
	s = f.sub(q("a"), Options{Seed: SeedLater})
	s.Cancel()
	if r := s.Seed(f.at, nil); r != SeedIgnored {
		t.Fatal(r)
	}
	if f.awaiting.lowest(99) != 99 || f.await.n != 0 {
		t.Fatal("something still waits")
	}
}

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
