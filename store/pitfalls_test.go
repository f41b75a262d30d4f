package store

import (
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// pays is a block of one transaction.
func (w *world) pays(spent []chain.Output, makes int) *chain.Effects {
	e := w.plain()
	id := w.hash()
	e.Spent = spent
	for i := range makes {
		e.Created = append(e.Created, w.output(chain.TxIn{ID: id, Index: uint32(i)}, e.Link, 0, uint64(i)))
	}
	e.Txs = []chain.TxEffects{{ID: id, Valid: true, Spent: len(spent), Created: makes}}
	return e
}

func mustRollback(t *testing.T, s *Store, to chain.Point) {
	t.Helper()
	if err := s.Rollback(t.Context(), to); err != nil {
		t.Fatal(err)
	}
}

// TestUndoOfAnOutputMadeAndSpentInOneBlock: undoing the block does not bring it
// back, not even for a moment that a reader could see, and the block can come
// again.
func TestUndoOfAnOutputMadeAndSpentInOneBlock(t *testing.T) {
	s := mustOpen(t, testOptions(t))
	defer s.Close()
	w := newWorld(10, false, 0)
	below := w.plain()
	commitBoth(t, s, w, below)
	e := w.pays(nil, 2)
	first := e.Created[0]
	next := w.output(chain.TxIn{ID: w.hash()}, e.Link, 1, 7)
	e.Spent = []chain.Output{first}
	e.Spent[0].InBatch, e.Created[0].InBatch = true, true
	e.Created = append(e.Created, next)
	e.Txs = []chain.TxEffects{{ID: first.Ref.ID, Valid: true, Created: 2}, {ID: next.Ref.ID, Valid: true, Spent: 1, Created: 3}}
	for range 3 {
		commitBoth(t, s, w, e)
		if live, err := s.Live([]chain.TxIn{first.Ref, e.Created[1].Ref, next.Ref}); err != nil || len(live) != 2 {
			t.Fatalf("%v, %v", live, err)
		}
		mustRollback(t, s, below.Point)
		w.undo()
		if live, err := s.Live([]chain.TxIn{first.Ref, e.Created[1].Ref, next.Ref}); err != nil || len(live) != 0 {
			t.Fatalf("after the undo %v, %v", live, err)
		}
		verifyCounts(t, s, w)
		if err := w.verify(s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUndoRestoresWhatWasSpentForTheNextBlock: what the block that left spent can
// be spent by the one that takes its place.
func TestUndoRestoresWhatWasSpentForTheNextBlock(t *testing.T) {
	s := mustOpen(t, testOptions(t))
	defer s.Close()
	w := newWorld(10, false, 0)
	commitBoth(t, s, w, w.pays(nil, 3))
	below := w.head()
	coins := w.blocks[0].Created
	commitBoth(t, s, w, w.pays([]chain.Output{coins[0], coins[1]}, 1))
	o := chain.Output{Ref: coins[0].Ref}
	if missing, err := s.Outputs([]*chain.Output{&o}); err != nil || missing != 0 {
		t.Fatalf("a spent output is found: %d, %v", missing, err)
	}
	mustRollback(t, s, below.Point)
	w.undo()
	verifyCounts(t, s, w)
	again := []*chain.Output{{Ref: coins[0].Ref}, {Ref: coins[1].Ref}, {Ref: coins[2].Ref}}
	if missing, err := s.Outputs(again); err != nil || missing >= 0 {
		t.Fatalf("output %d is missing, %v", missing, err)
	}
	for i, o := range again {
		if !sameOutput(*o, coins[i]) {
			t.Errorf("%+v, want %+v", *o, coins[i])
		}
	}
	commitBoth(t, s, w, w.pays([]chain.Output{coins[0], coins[2]}, 2))
	if err := w.verify(s); err != nil {
		t.Error(err)
	}
}

// TestRollbackNeedsSlotAndHash: blocks of two forks share a slot, a boundary block
// shares it with the main block behind it; a point is both, or it is unknown and
// nothing is touched.
func TestRollbackNeedsSlotAndHash(t *testing.T) {
	s := mustOpen(t, testOptions(t))
	defer s.Close()
	w := newWorld(10, false, 0)
	commitBoth(t, s, w, w.plain())
	below := w.head()
	left := w.plain()
	commitBoth(t, s, w, left)
	mustRollback(t, s, below.Point)
	w.undo()
	stays := w.plain()
	stays.Point.Slot = left.Point.Slot // a fork in the very slot
	commitBoth(t, s, w, stays)
	boundary := w.plain()
	boundary.Boundary, boundary.Height, boundary.Era = true, stays.Height, chain.Byron
	commitBoth(t, s, w, boundary)
	main := w.plain()
	main.Point.Slot = boundary.Point.Slot
	commitBoth(t, s, w, main)
	for name, p := range map[string]chain.Point{
		"the fork's block that left": left.Point,
		"right hash, other slot":     {Slot: stays.Point.Slot + 1, Hash: stays.Point.Hash},
		"right slot, other hash":     {Slot: stays.Point.Slot, Hash: chain.Hash{1, 2, 3}},
	} {
		if err := s.Rollback(t.Context(), p); !errors.Is(err, ErrUnknownPoint) {
			t.Errorf("%s: %v", name, err)
		}
		verifyCounts(t, s, w)
	}
	for _, to := range []chain.Link{boundary.Link, stays.Link} {
		mustRollback(t, s, to.Point)
		w.undo()
		if s.Head() != to {
			t.Fatalf("the head is %v, want %v", s.Head().At(), to.At())
		}
	}
	if err := w.verify(s); err != nil {
		t.Error(err)
	}
}

// TestBoundaryBlockSharesItsHeight: both blocks of one height are kept, found and
// left apart, before and after a restart and when they are swept.
func TestBoundaryBlockSharesItsHeight(t *testing.T) {
	opts := testOptions(t)
	opts.K = 3
	s := mustOpen(t, opts)
	w := newWorld(3, false, 0)
	var pairs []chain.Link
	for range 6 {
		main := w.pays(nil, 1)
		commitBoth(t, s, w, main)
		boundary := w.plain()
		boundary.Boundary, boundary.Height, boundary.Era = true, main.Height, chain.Byron
		commitBoth(t, s, w, boundary)
		pairs = append(pairs, main.Link, boundary.Link)
	}
	for range 2 {
		for _, l := range pairs {
			got, ok, err := s.LinkAt(l.Position())
			if err != nil || !ok || got != l {
				t.Errorf("at %+v: %v, %v, %v", l.Position(), got.At(), ok, err)
			}
			if found, ok, err := s.Find(l.Point); err != nil || !ok || found != l {
				t.Errorf("%v is found as %v, %v, %v", l.At(), found.At(), ok, err)
			}
		}
		if err := w.verify(s); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, opts)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRollbackCostsWhatItsBlocksCost: the writes of an undo depend on the blocks it
// undoes, not on how much the store holds.
func TestRollbackCostsWhatItsBlocksCost(t *testing.T) {
	cost := func(before, depth int) (writes int) {
		opts := testOptions(t)
		opts.memTable, opts.K = 1<<20, 200
		s := mustOpen(t, opts)
		defer s.Close()
		w := newWorld(200, false, 0)
		for range before {
			commitBoth(t, s, w, w.pays(nil, 40))
		}
		below := w.head()
		for range depth {
			commitBoth(t, s, w, w.pays([]chain.Output{w.blocks[len(w.blocks)-1].Created[0]}, 3))
		}
		if err := s.Rollback(t.Context(), below.Point); err != nil {
			t.Fatal(err)
		}
		return len(s.ops.ops)
	}
	one := cost(5, 1)
	for _, depth := range []int{1, 10, 100} {
		small, large := cost(5, depth), cost(60, depth)
		if small != large || large != depth*one {
			t.Errorf("%d blocks cost %d writes in a small store, %d in a larger one; one costs %d", depth, small, large, one)
		}
	}
}
