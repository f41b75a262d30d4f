package hub

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

func TestContract_3_1_NoGoroutineAndProgramOrder(t *testing.T) {
	// The bubble fails a test that leaves a goroutine behind.
	synctest.Test(t, func(t *testing.T) {
		f := newFx(t)
		for range 50 {
			s := f.sub(q("a"), Options{})
			f.block("t1: > a")
			if got := f.got(s); len(got) != 1 {
				t.Fatalf("subscribed, then applied, got %v", got)
			}
		}
	})
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
	soon(t, func() {
		f.blocks(12)
		s := f.sub(q("a"), Options{})
		s.Wake(func() { inside++; f.Tip() })
		_, err := f.SubscribeUTxO(q("a"), Options{Confirmations: 2})
		f.wantErr(err, ErrReach)
		_, err = f.SubscribeStatus(chain.TxID{1})
		must(t, err)
		f.block("t1: > a")
		s.Cancel()
	})
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

// TestRollbackBehindTheFirstBlock: where origin stands for a boundary block at
// height 0, k blocks above it are within the horizon, and one more is not.
func TestRollbackBehindTheFirstBlock(t *testing.T) {
	for more := range 2 {
		f := newFx(t, func(c *Config) { c.FirstHeight, c.BehindFirst = 1, true })
		s := f.sub(q("a"), Options{Start: Origin})
		k := int(f.cfg.Capabilities.Horizon)
		f.block("t: g.0 > a")
		f.blocks(k - 1 + more)
		f.got(s)
		if err := f.RollbackTo(chain.Origin); errors.Is(err, ErrResync) != (more > 0) {
			t.Errorf("%d blocks, k = %d: %v", k+more, k, err)
		}
	}
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
