package ourotail_test

import (
	"errors"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// TestAncestor: where a reader goes on that stood on a branch since undone, by
// this process or an earlier one; in Byron, so that boundary blocks stand in
// between.
func TestAncestor(t *testing.T) {
	s := serve(t, forge.Options{Seed: 9, K: 30, EpochBlocks: 4, Eras: []forge.EraSpan{{Era: chain.Byron}}}, 60)
	c, cfg := s.chain, s.cfg
	cfg.ExitAtTip = true
	// atTip follows to the tip in a process of its own, so to speak, and asks.
	atTip := func(ask func(f *ourotail.Follower)) {
		t.Helper()
		f, err := ourotail.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ask != nil {
			ask(f)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	path := func() []chain.Link {
		p, err := c.Oracle().Path(c.Tip().Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	atTip(nil)
	old := path()
	for _, depth := range []int{9, 5} { // the second leaves blocks undone under blocks undone
		if err := c.Fork(depth, depth+2); err != nil {
			t.Fatal(err)
		}
		atTip(nil)
		old = append(old, path()...)
	}
	atTip(func(f *ourotail.Follower) {
		ours := map[chain.Hash]bool{}
		for _, l := range path() {
			ours[l.Point.Hash] = true
		}
		links := map[chain.Hash]chain.Link{}
		for _, l := range old {
			links[l.Point.Hash] = l
		}
		undone := 0
		for _, l := range links {
			want := l
			for !ours[want.Point.Hash] || want.Boundary { // as subscriptions know it
				below, ok := links[want.Parent]
				if !ok {
					below = chain.Link{Height: chain.OriginHeight}
				}
				if want = below; want.Point.IsOrigin() {
					break
				}
			}
			if !ours[l.Point.Hash] {
				undone++
			}
			if at, err := f.Ancestor(l.Point); err != nil || at != want.At() {
				t.Errorf("of %v: %v, %v, want %v", l.At(), at, err, want.At())
			}
		}
		if undone < 14 {
			t.Errorf("only %d blocks were undone", undone)
		}
		if at, err := f.Ancestor(chain.Point{}); err != nil || !at.IsOrigin() {
			t.Errorf("of origin: %v, %v", at, err)
		}
		if at, err := f.Ancestor(chain.Point{Slot: 1, Hash: chain.Hash{1}}); !errors.Is(err, ourotail.ErrForgotten) {
			t.Errorf("of a block that never was ours: %v, %v", at, err)
		}
	})
}
