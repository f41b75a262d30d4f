package immutabledb_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// k is the security parameter of the chains that are made here; an epoch of
// Byron, and so a chunk, has ten times as many slots.
const k = 5

// made is a folder that a node might have written, and what is in it.
type made struct {
	dir    string
	forge  *forge.Forge
	writer *immutable.Writer
	blocks []forge.Block
}

// create makes a folder of n blocks, of every era unless eras are given.
func create(t testing.TB, n int, eras ...forge.EraSpan) *made {
	t.Helper()
	f, err := forge.New(forge.Options{Seed: 7, K: k, EpochBlocks: 8, Eras: eras})
	if err != nil {
		t.Fatal(err)
	}
	m := &made{dir: filepath.Join(t.TempDir(), "immutable"), forge: f}
	if m.writer, err = immutable.Create(m.dir, f.ByronEpochSlots()); err != nil {
		t.Fatal(err)
	}
	m.grow(t, n)
	t.Cleanup(func() { _ = m.writer.Close() })
	return m
}

// grow appends n blocks.
func (m *made) grow(t testing.TB, n int) { m.growPadded(t, n, 0) }

// growPadded appends n blocks with so many bytes behind the block proper, which
// nobody who reads only headers minds.
func (m *made) growPadded(t testing.TB, n, padding int) {
	t.Helper()
	for range n {
		b, err := m.forge.Next()
		if err != nil {
			t.Fatal(err)
		}
		b.Raw = append(b.Raw, make([]byte, padding)...)
		if err := m.writer.Append(b.Raw); err != nil {
			t.Fatal(err)
		}
		m.blocks = append(m.blocks, b)
	}
	if err := m.writer.Flush(); err != nil {
		t.Fatal(err)
	}
}

func (m *made) options() immutabledb.Options {
	block := ledger.Block{ByronEpochSlots: m.forge.ByronEpochSlots()}
	return immutabledb.Options{ChunkSlots: m.forge.ByronEpochSlots(), K: k, Link: func(raw []byte) (chain.Link, error) {
		err := block.Walk(raw)
		return block.Link, err
	}}
}

func (m *made) open(t testing.TB) *immutabledb.Folder {
	t.Helper()
	f, err := immutabledb.Open(m.dir, m.options())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// chunk is the number of a block's chunk.
func (m *made) chunk(i int) int {
	return int(uint64(m.blocks[i].Point.Slot) / m.forge.ByronEpochSlots())
}

// firstOf is the number of the first block of a chunk.
func (m *made) firstOf(t testing.TB, chunk int) int {
	t.Helper()
	for i := range m.blocks {
		if m.chunk(i) == chunk {
			return i
		}
	}
	t.Fatalf("no block in chunk %d", chunk)
	return 0
}

// file returns the path of a file of a chunk.
func (m *made) file(chunk int, kind string) string {
	return filepath.Join(m.dir, fmt.Sprintf("%05d.%s", chunk, kind))
}

// change rewrites a file.
func change(t testing.TB, path string, how func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, how(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// got is what a connection brought.
type got struct {
	raw  [][]byte
	back []chain.Point
	tips []chain.Tip
	err  error // that ended it; nil for the end of the files
}

// read takes everything from a point to the end, or to an error.
func read(t testing.TB, f *immutabledb.Folder, node chain.Tip, points ...chain.Point) (g got) {
	t.Helper()
	end, _, err := f.End()
	if err != nil {
		g.err = err
		return g
	}
	c := f.Conn(end, node)
	defer c.Close()
	found, ok, _, err := c.Intersect(t.Context(), points)
	if err != nil || !ok {
		g.err = errors.Join(err, errNothing)
		return g
	}
	for {
		m, err := c.Next(t.Context())
		if errors.Is(err, io.EOF) {
			if _, again := c.Next(t.Context()); !errors.Is(again, io.EOF) {
				t.Errorf("after the end: %v", again)
			}
			break
		}
		if err != nil {
			g.err = err
			break
		}
		for _, x := range m.List {
			g.tips = append(g.tips, x.Tip)
			if x.Kind == chain.RollBackward {
				g.back = append(g.back, x.Point)
				continue
			}
			g.raw = append(g.raw, slices.Clone(x.Raw))
		}
		m.Release()
	}
	if len(g.raw) > 0 && !slices.Equal(g.back, []chain.Point{found}) {
		t.Errorf("rolled back to %v, want %v", g.back, found)
	}
	return g
}

var errNothing = errors.New("no intersection")

// same compares blocks with some of those that were made.
func (m *made) same(t testing.TB, raw [][]byte, from, to int) {
	t.Helper()
	if len(raw) != to-from {
		t.Fatalf("%d blocks, want %d", len(raw), to-from)
	}
	for i, b := range raw {
		if string(b) != string(m.blocks[from+i].Raw) {
			t.Fatalf("block %d is not %v", i, m.blocks[from+i].At())
		}
	}
}
