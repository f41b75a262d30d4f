package immutabledb_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/ledger"
)

// From origin and from every point of a chain of every era, boundary blocks and
// the genesis boundary block among them, come the blocks that follow.
func TestFromEveryPoint(t *testing.T) {
	m := create(t, 90)
	f := m.open(t)
	if last := m.chunk(len(m.blocks) - 1); last < 3 || !m.blocks[0].Boundary {
		t.Fatalf("%d chunks, first block %+v: the test does not test what it says", last, m.blocks[0].Link)
	}
	end, ok, err := f.End()
	if err != nil || !ok || end != m.blocks[len(m.blocks)-1].Link {
		t.Fatalf("end %+v %v %v", end, ok, err)
	}
	m.same(t, read(t, f, chain.Origin, chain.Point{}).raw, 0, len(m.blocks))
	unknown := chain.Point{Slot: 3, Hash: chain.Hash{1}}
	far := chain.Point{Slot: 1 << 62, Hash: chain.Hash{1}}
	for i, b := range m.blocks {
		g := read(t, f, chain.Origin, far, unknown, b.Point, chain.Point{})
		if g.err != nil {
			t.Fatal(b.At(), g.err)
		}
		m.same(t, g.raw, i+1, len(m.blocks))
	}
	if g := read(t, f, chain.Origin, far, unknown); !errors.Is(g.err, errNothing) {
		t.Errorf("points of another chain: %v", g.err)
	}
}

// The narrowing of an intersection asks several times; the last answer counts.
func TestIntersectAgain(t *testing.T) {
	m := create(t, 40)
	f := m.open(t)
	end, _, err := f.End()
	if err != nil {
		t.Fatal(err)
	}
	c := f.Conn(end, chain.Origin)
	defer c.Close()
	if _, err := c.Next(t.Context()); !errors.Is(err, immutabledb.ErrUsage) {
		t.Errorf("Next before an intersection: %v", err)
	}
	for _, i := range []int{30, 3, 20} {
		if found, ok, _, err := c.Intersect(t.Context(), []chain.Point{m.blocks[i].Point}); err != nil || !ok || found != m.blocks[i].Point {
			t.Fatal(found, ok, err)
		}
	}
	if _, ok, _, err := c.Intersect(t.Context(), []chain.Point{{Slot: 1, Hash: chain.Hash{1}}}); ok || err != nil {
		t.Fatal(ok, err)
	}
	msgs, err := c.Next(t.Context())
	if err != nil || msgs.List[0].Point != m.blocks[20].Point || string(msgs.List[1].Raw) != string(m.blocks[21].Raw) {
		t.Fatal(err)
	}
	msgs.Release()
	if _, _, _, err := c.Intersect(t.Context(), []chain.Point{{}}); !errors.Is(err, immutabledb.ErrUsage) {
		t.Errorf("Intersect behind Next: %v", err)
	}
}

// The first block's height is 0 or 1, and it is a boundary block or not.
func TestFirstBlock(t *testing.T) {
	for _, era := range []chain.Era{chain.Byron, chain.Shelley, chain.Conway} {
		m := create(t, 12, forge.EraSpan{Era: era})
		g := read(t, m.open(t), chain.Origin, chain.Point{})
		if g.err != nil {
			t.Fatal(era, g.err)
		}
		m.same(t, g.raw, 0, 12)
		if g.back[0] != (chain.Point{}) {
			t.Errorf("%v: rolled back to %v", era, g.back)
		}
	}
}

// A connection sees blocks that are appended while it reads, in the chunk it is in
// and in those behind.
func TestGrowsWhileRead(t *testing.T) {
	m := create(t, 3)
	f := m.open(t)
	end, _, err := f.End()
	if err != nil {
		t.Fatal(err)
	}
	c := f.Conn(end, chain.Origin)
	defer c.Close()
	if _, ok, _, err := c.Intersect(t.Context(), []chain.Point{{}}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	read, tip := 0, chain.Height(0)
	for _, more := range []int{0, 1, 1, 40, 1, 3, 100, 2} {
		m.grow(t, more)
		for {
			list, err := c.Fill()
			for _, x := range list {
				if x.Kind != chain.RollForward {
					continue
				}
				if string(x.Raw) != string(m.blocks[read].Raw) {
					t.Fatalf("block %d", read)
				}
				if h := m.blocks[read].Height; x.Tip.Height < h+k {
					t.Fatalf("block %d of height %d under a tip of height %d", read, h, x.Tip.Height)
				}
				read, tip = read+1, x.Tip.Height
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if read != len(m.blocks) {
			t.Fatalf("%d blocks read of %d", read, len(m.blocks))
		}
	}
	if want := m.blocks[read-1].Height + k; tip != want {
		t.Errorf("the last tip has height %d, want %d", tip, want)
	}
}

// What the node says is the tip, unless the files prove a higher one; its point is
// never one in the files.
func TestTip(t *testing.T) {
	m := create(t, 30)
	f := m.open(t)
	end := m.blocks[29].Link
	other := chain.Point{Slot: end.Point.Slot + 9, Hash: chain.Hash{9}}
	for name, c := range map[string]struct{ node, want chain.Tip }{
		"unknown":                {chain.Origin, chain.Tip{Height: end.Height + k}},
		"on its way to the end":  {m.blocks[10].At(), chain.Tip{Height: end.Height + k}},
		"at the end":             {end.At(), chain.Tip{Height: end.Height}},
		"less than k above":      {chain.Tip{Point: other, Height: end.Height + 2}, chain.Tip{Point: other, Height: end.Height + 2}},
		"as in an ordinary node": {chain.Tip{Point: other, Height: end.Height + k}, chain.Tip{Point: other, Height: end.Height + k}},
		"far above":              {chain.Tip{Point: other, Height: 999}, chain.Tip{Point: other, Height: 999}},
	} {
		g := read(t, f, c.node, chain.Point{})
		for _, tip := range g.tips {
			if tip != c.want {
				t.Fatalf("%s: tip %+v, want %+v", name, tip, c.want)
			}
		}
		if len(g.tips) != 31 {
			t.Errorf("%s: %d messages", name, len(g.tips))
		}
	}
}

// Runs longer than a slab, and a block larger than one: the memory of what was
// released is used again, and what was not is left alone.
func TestSlabs(t *testing.T) {
	m := create(t, 0, forge.EraSpan{Era: chain.Conway})
	for _, padding := range []int{immutabledb.SlabSize / 3, immutabledb.SlabSize, immutabledb.SlabSize / 2, 0, 2 * immutabledb.SlabSize, 10, immutabledb.SlabSize / 5} {
		m.growPadded(t, 3, padding)
	}
	m.grow(t, 1)
	f := m.open(t)
	end, _, err := f.End()
	if err != nil {
		t.Fatal(err)
	}
	c := f.Conn(end, chain.Origin)
	defer c.Close()
	if _, _, _, err := c.Intersect(t.Context(), []chain.Point{{}}); err != nil {
		t.Fatal(err)
	}
	var held []chain.Messages
	read := 0
	for batch := 0; ; batch++ {
		msgs, err := c.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if held = append(held, msgs); len(held) < 3 {
			continue
		}
		for _, x := range held[0].List {
			if x.Kind == chain.RollForward {
				if string(x.Raw) != string(m.blocks[read].Raw) {
					t.Fatalf("block %d was overwritten", read)
				}
				read++
			}
		}
		held[0].Release()
		held = held[1:]
	}
	if read == 0 {
		t.Error("everything came in two batches: the test does not test what it says")
	}
}

// Closing ends a reader in the middle, and a context that ends loses nothing.
func TestEndsEarly(t *testing.T) {
	m := create(t, 60)
	f := m.open(t)
	end, _, err := f.End()
	if err != nil {
		t.Fatal(err)
	}
	c := f.Conn(end, chain.Origin)
	if _, _, _, err := c.Intersect(t.Context(), []chain.Point{{}}); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := c.Intersect(over, []chain.Point{{}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := c.Next(over); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	for range 10 { // what was read before may still come
		if _, err := c.Next(t.Context()); err != nil {
			if !errors.Is(err, immutabledb.ErrUsage) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("a closed connection goes on")
}

// A real node's folder, to the last block.
func TestPreview(t *testing.T) {
	dir := devtest.Shared(t, "preview", "immutable")
	block := ledger.Block{Trusted: true}
	f, err := immutabledb.Open(dir, immutabledb.Options{ChunkSlots: 4320, K: 432, Link: func(raw []byte) (chain.Link, error) {
		err := block.Walk(raw)
		return block.Link, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	end, ok, err := f.End()
	if err != nil || !ok || end.Height != 40356 {
		t.Fatal(end, ok, err)
	}
	g := read(t, f, chain.Origin, chain.Point{})
	if g.err != nil || len(g.raw) != 40357 {
		t.Fatalf("%d blocks, %v", len(g.raw), g.err)
	}
	points, err := f.Points(end)
	if err != nil || len(points) != 10 || points[0] != end.Point {
		t.Errorf("points %v %v", points, err)
	}
}
