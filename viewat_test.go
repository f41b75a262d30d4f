package ourotail_test

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// varied follows a generated chain of every era up to its tip.
func varied(t *testing.T, opts forge.Options, blocks int) (*devnode.Chain, *ourotail.Follower) {
	t.Helper()
	s := serve(t, opts, blocks)
	f, err := ourotail.Open(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	follows(t, f, s.chain)
	return s.chain, f
}

// follows waits until the follower is where the chain is.
func follows(t *testing.T, f *ourotail.Follower, c *devnode.Chain) {
	t.Helper()
	for tip, err := range f.Tips(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tip.Point == c.Tip().Point {
			return
		}
	}
}

// Within k the set at every point is what the generator's own ledger holds there,
// forks or not; below it is refused with the oldest point there is.
func TestTheSetAtEveryPointOfTheLastKBlocks(t *testing.T) {
	const k = 40
	c, f := varied(t, forge.Options{Seed: 3, K: k, EpochBlocks: 8}, 110)
	undone := c.Tip()
	if err := c.Fork(5, 7); err != nil {
		t.Fatal(err)
	}
	follows(t, f, c)
	path, err := c.Oracle().Path(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, l := range path {
		v, err := f.ViewAt(t.Context(), l.Point)
		if old := (*hub.OlderError)(nil); errors.As(err, &old) {
			if l.Height >= c.Tip().Height-k || old.Oldest.Height > c.Tip().Height-k {
				t.Fatalf("%v: %v", l.Point, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		compareView(t, c, v, l.Point)
		checked++
		v.Close()
	}
	if checked < k {
		t.Errorf("only %d points were answered", checked)
	}
	var orphaned *hub.OrphanedError
	if _, err := f.ViewAt(t.Context(), undone.Point); !errors.As(err, &orphaned) || orphaned.Ancestor.Height != undone.Height-5 {
		t.Errorf("at an undone point: %v", err)
	}
	if _, err := f.ViewAt(t.Context(), chain.Point{Slot: 5, Hash: chain.Hash{5}}); !errors.Is(err, ourotail.ErrForgotten) {
		t.Errorf("at a point that never was: %v", err)
	}
}

func compareView(t *testing.T, c *devnode.Chain, v *ourotail.View, p chain.Point) {
	t.Helper()
	want, err := c.Oracle().Summary(p.Hash)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Accumulator != hex.EncodeToString(want.Accumulator[:]) {
		t.Errorf("at %v: %+v, the ledger has %x", p, got, want.Accumulator)
	}
	// Found by reference, by address and by looking at everything, they are the same.
	byAddress := map[string]int{}
	var last chain.TxIn
	if err := v.UTxOs(t.Context(), query.Everything(), func(u *chain.UTxO) error {
		byAddress[string(u.Out.Address)]++
		if u.Ref.Compare(last) < 0 {
			t.Errorf("at %v: %v comes behind %v", p, u.Ref, last)
		}
		last = u.Ref
		if same, ok, err := v.Get(u.Ref); err != nil || !ok || same.At != u.At {
			t.Errorf("at %v: %v is got as %v, %v, %v", p, u.Ref, same, ok, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, addr := range c.Wallet() {
		n := 0
		if err := v.UTxOs(t.Context(), query.Address(addr), func(*chain.UTxO) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		if n != byAddress[string(addr)] {
			t.Errorf("at %v: %d outputs by address, want %d", p, n, byAddress[string(addr)])
		}
	}
}

// A view stays what it is while blocks come and forks undo its point.
func TestAViewOfAPointDoesNotChange(t *testing.T) {
	c, f := varied(t, forge.Options{Seed: 4, K: 40, EpochBlocks: 8}, 60)
	p := c.At(c.Len() - 4).Point
	v, err := f.ViewAt(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := c.Fork(9, 12); err != nil {
		t.Fatal(err)
	}
	follows(t, f, c)
	compareView(t, c, v, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.ViewAt(ctx, c.At(c.Len()-3).Point); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
