package rollback

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

func hash(n uint64) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[:], n+1)
	return h
}

// child makes a block behind head, distinguished by salt.
func child(head chain.Link, empty bool, salt uint64, boundary bool) chain.Link {
	l := chain.Link{Parent: head.Point.Hash, Height: head.Height + 1, Boundary: boundary}
	l.Point = chain.Point{Slot: head.Point.Slot + 1, Hash: hash(salt)}
	if boundary {
		l.Height = max(head.Height, 0)
	} else if head.Boundary {
		l.Point.Slot = head.Point.Slot // a main block may share the slot of the boundary block
	}
	if empty {
		l.Height, l.Point.Slot = 0, 0
	}
	return l
}

// TestPointsModel compares Points with a plain list after every step.
func TestPointsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(1, 8).Draw(t, "keep")
		p := New(keep)
		var all []chain.Link // the whole chain
		floor := 0           // how many of them may have been dropped
		salt := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"extend": func(t *rapid.T) {
				salt++
				var head chain.Link
				if len(all) > 0 {
					head = all[len(all)-1]
				}
				boundary := !head.Boundary && rapid.IntRange(0, 5).Draw(t, "boundary") == 0
				l := child(head, len(all) == 0, salt, boundary)
				if err := p.Extend(l); err != nil {
					t.Fatal(err)
				}
				all = append(all, l)
			},
			"cut": func(t *rapid.T) {
				n := rapid.IntRange(0, p.Len()).Draw(t, "n")
				if n == p.Len() && !p.Whole() {
					return
				}
				to := chain.Point{}
				if len(all)-n > 0 {
					to = all[len(all)-n-1].Point
				}
				gone, err := p.CutTo(to)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Clone(all[len(all)-n:])
				slices.Reverse(want)
				if !slices.Equal(gone, want) {
					t.Fatalf("cut %v, want %v", gone, want)
				}
				all = all[:len(all)-n]
			},
			"": func(t *rapid.T) {
				head, ok := p.Head()
				if ok != (p.Len() > 0) || ok && head != all[len(all)-1] {
					t.Fatalf("head %v %v", head, ok)
				}
				if p.Whole() != (p.Len() == len(all)) {
					t.Fatalf("whole %v with %d of %d", p.Whole(), p.Len(), len(all))
				}
				floor = max(floor, len(all)-p.Len())
				for i, l := range all {
					if got, ok := p.Find(l.Point); ok != (i >= len(all)-p.Len()) || ok && got != l {
						t.Fatalf("find %d: %v %v", i, got, ok)
					}
				}
				if ok && !p.Whole() && head.Height-all[len(all)-p.Len()].Height < chain.Height(keep)-1 && p.Len() < keep && floor == 0 {
					t.Fatalf("only %d held, want %d", p.Len(), keep)
				}
				for i, l := range all {
					got, ok := p.At(l.Height)
					if want := i >= len(all)-p.Len(); !l.Boundary && (ok != want || ok && got != l) {
						t.Fatalf("at height %d: %v %v", l.Height, got, ok)
					}
				}
				ladder := p.Ladder()
				if p.Whole() != (len(ladder) > 0 && ladder[len(ladder)-1].IsOrigin()) {
					t.Fatalf("ladder %v, whole %v", ladder, p.Whole())
				}
				if p.Len() > 0 {
					oldest, _ := p.Oldest()
					if ladder[0] != head.Point || !slices.Contains(ladder, oldest.Point) {
						t.Fatalf("ladder %v misses head or oldest", ladder)
					}
				}
			},
		})
	})
}

func TestExtendRefuses(t *testing.T) {
	p := New(10)
	if err := p.Extend(chain.Link{Point: chain.Point{Hash: hash(1)}, Height: 7}); !errors.Is(err, ErrHeight) {
		t.Errorf("first block at height 7: %v", err)
	}
	first := child(chain.Link{}, true, 1, false)
	if err := p.Extend(first); err != nil {
		t.Fatal(err)
	}
	good := child(first, false, 2, false)
	for name, c := range map[string]struct {
		change func(*chain.Link)
		want   error
	}{
		"another parent":     {func(l *chain.Link) { l.Parent = hash(99) }, ErrParent},
		"a skipped height":   {func(l *chain.Link) { l.Height++ }, ErrHeight},
		"a repeated height":  {func(l *chain.Link) { l.Height-- }, ErrHeight},
		"a slot not after":   {func(l *chain.Link) { l.Point.Slot = first.Point.Slot }, ErrSlot},
		"a boundary, raised": {func(l *chain.Link) { l.Boundary = true }, ErrHeight},
	} {
		l := good
		c.change(&l)
		if err := p.Extend(l); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := p.Extend(good); err != nil {
		t.Error(err)
	}
}

// TestBoundarySharesHeightAndSlot: a boundary block repeats its predecessor's
// height and may share its slot with the block behind it; points stay apart.
func TestBoundarySharesHeightAndSlot(t *testing.T) {
	p := New(10)
	main0 := child(chain.Link{}, true, 1, false)
	ebb := child(main0, false, 2, true)
	main1 := child(ebb, false, 3, false)
	for _, l := range []chain.Link{main0, ebb, main1} {
		if err := p.Extend(l); err != nil {
			t.Fatal(err)
		}
	}
	if ebb.Height != main0.Height || main1.Point.Slot != ebb.Point.Slot {
		t.Fatal("the test does not test what it says")
	}
	if _, ok := p.Find(chain.Point{Slot: main1.Point.Slot, Hash: ebb.Point.Hash}); !ok {
		t.Error("the boundary block is not found by its point")
	}
	if gone, err := p.CutTo(ebb.Point); err != nil || len(gone) != 1 || gone[0] != main1 {
		t.Errorf("cut to the boundary block: %v %v", gone, err)
	}
	if _, err := p.CutTo(chain.Point{Slot: 77, Hash: ebb.Point.Hash}); !errors.Is(err, ErrUnknown) {
		t.Errorf("right hash, wrong slot: %v", err)
	}
}

func TestLadderDoubles(t *testing.T) {
	p := New(2160)
	l := child(chain.Link{}, true, 0, false)
	for i := range uint64(5000) {
		if err := p.Extend(l); err != nil {
			t.Fatal(err)
		}
		l = child(l, false, i+1, false)
	}
	ladder := p.Ladder()
	if len(ladder) > 16 {
		t.Errorf("%d points in the ladder", len(ladder))
	}
	head, _ := p.Head()
	for i, want := range []chain.Height{0, 1, 3, 7, 15, 31} {
		if got, _ := p.Find(ladder[i]); head.Height-got.Height != want {
			t.Errorf("step %d lies %d below the head, want %d", i, head.Height-got.Height, want)
		}
	}
	if p.Len() != 2160 {
		t.Errorf("%d points held", p.Len())
	}
}

// TestRefiningFindsEveryFork: the ladder, then Between until nothing is left,
// finds the newest common point wherever it is.
func TestRefiningFindsEveryFork(t *testing.T) {
	const n = 700
	p := New(2160)
	var all []chain.Point
	l := child(chain.Link{}, true, 0, false)
	for i := range uint64(n) {
		if err := p.Extend(l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l.Point)
		l = child(l, false, i+1, false)
	}
	for fork := -1; fork < n; fork++ { // the newest block in common; -1 for origin
		ask := func(points []chain.Point) (int, bool) {
			for i, q := range points {
				if q.IsOrigin() || slices.Index(all, q) <= fork {
					return i, true
				}
			}
			return 0, false
		}
		points, high, rounds := p.Ladder(), chain.Point{}, 0
		var found chain.Point
		for len(points) > 0 {
			rounds++
			i, ok := ask(points)
			if ok {
				found = points[i]
				if i > 0 {
					high = points[i-1]
				}
			} else {
				high = points[len(points)-1]
			}
			if rounds == 1 && i == 0 {
				break // the head itself
			}
			points = p.Between(found, high, 16)
		}
		want := chain.Point{}
		if fork >= 0 {
			want = all[fork]
		}
		if found != want || rounds > 6 {
			t.Fatalf("fork above %d: found %v in %d rounds, want %v", fork, found, rounds, want)
		}
	}
}
