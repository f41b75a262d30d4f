package hub

import (
	"testing"
)

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
