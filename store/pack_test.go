package store

import (
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// TestLinksOfThePast: whatever order the blocks of the past are asked for in, forth,
// back and at random, each position answers with its block, and those that no block
// has with none; out of packs that were just read and out of others.
func TestLinksOfThePast(t *testing.T) {
	sc := newScript(4)
	s := mustOpen(t, sc.options(t.TempDir()))
	defer s.Close()
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	for len(sc.w.blocks) < 12*packMax {
		b := sc.w.batch(100, func(int) bool { return false }, sc.draw)
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		sc.w.commit(b)
	}
	at := map[chain.Position]chain.Link{}
	for _, e := range sc.w.blocks {
		at[e.Position()] = e.Link
	}
	v := s.Snapshot()
	defer v.Close()
	top := sc.w.head().Height
	ask := func(h chain.Height, boundary bool) {
		t.Helper()
		p := chain.Position{Height: h, Boundary: boundary}
		want, there := at[p]
		if l, ok, err := v.LinkAt(p); err != nil || ok != there || ok && l != want {
			t.Fatalf("at %+v there is %v %v, want %v %v (%v)", p, l.At(), ok, want.At(), there, err)
		}
	}
	for h := chain.OriginHeight; h <= top+2; h++ {
		ask(h, false)
		ask(h, true)
		ask(chain.Height(sc.rnd.Int64N(int64(top))), sc.rnd.IntN(4) == 0)
	}
	for h := top; h >= 0; h-- {
		ask(h, false)
	}
}
