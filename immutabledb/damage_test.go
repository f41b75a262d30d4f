package immutabledb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/immutabledb"
)

// flip changes one bit of a file.
func flip(t testing.TB, path string, at int64) {
	change(t, path, func(b []byte) []byte { b[at] ^= 1; return b })
}

func cut(t testing.TB, path string, by int) {
	change(t, path, func(b []byte) []byte { return b[:len(b)-by] })
}

// entries reads the secondary index of a chunk.
func (m *made) entries(t testing.TB, chunk int) []immutabledb.SecondaryEntry {
	t.Helper()
	b, err := os.ReadFile(m.file(chunk, "secondary"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := immutabledb.ParseSecondary(b)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rewrite changes one entry of a secondary index.
func (m *made) rewrite(t testing.TB, chunk, i int, how func(e *immutabledb.SecondaryEntry)) {
	entries := m.entries(t, chunk)
	how(&entries[i])
	var b []byte
	for _, e := range entries {
		b = e.Append(b)
	}
	change(t, m.file(chunk, "secondary"), func([]byte) []byte { return b })
}

// Damage in a chunk that the node has completed is an error that names the
// place. The blocks below it come first.
func TestDamage(t *testing.T) {
	const chunk = 1 // of Byron, like the first
	type spot struct {
		file string
		at   int64 // -2: any
		says string
		good int // blocks that come before, counted from the chunk's first; -1 for none at all
	}
	for name, c := range map[string]func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot{
		"a flipped bit in a block": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			flip(t, m.file(chunk, "chunk"), int64(e[2].Offset)-3)
			return spot{"00001.chunk", int64(e[1].Offset), "checksum", 1}
		},
		"another checksum": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 3, func(e *immutabledb.SecondaryEntry) { e.CRC++ })
			return spot{"00001.chunk", int64(e[3].Offset), "checksum", 3}
		},
		"another hash": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 3, func(e *immutabledb.SecondaryEntry) { e.Hash[0]++ })
			return spot{"00001.chunk", int64(e[3].Offset), "header hash", 3}
		},
		"a header elsewhere": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 3, func(e *immutabledb.SecondaryEntry) { e.HeaderSize = 65535 })
			return spot{"00001.chunk", int64(e[3].Offset), "", 3}
		},
		"an offset that falls": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 3, func(x *immutabledb.SecondaryEntry) { x.Offset = e[1].Offset })
			return spot{"00001.secondary", 2 * immutabledb.SecondarySize, "a block from", 0}
		},
		"an offset beyond all files": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 3, func(x *immutabledb.SecondaryEntry) { x.Offset = 1<<63 + 7 })
			return spot{"00001.secondary", -2, "a block from", 0}
		},
		"a slot of another chunk": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 3, func(x *immutabledb.SecondaryEntry) { x.SlotOrEpoch += 1000 })
			return spot{"00001.secondary", 3 * immutabledb.SecondarySize, "primary index", 0}
		},
		"a slot below the chunk": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			m.rewrite(t, chunk, 0, func(x *immutabledb.SecondaryEntry) { x.SlotOrEpoch = 0 })
			return spot{"00001.secondary", 0, "", 0}
		},
		"a secondary index cut in an entry": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			cut(t, m.file(chunk, "secondary"), 5)
			return spot{"00001.secondary", -2, "last whole secondary entry", 0}
		},
		"a secondary index without its last entry": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			cut(t, m.file(chunk, "secondary"), immutabledb.SecondarySize)
			return spot{"00001.secondary", -1, "the primary index", 0}
		},
		"a primary index cut": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			cut(t, m.file(chunk, "primary"), 8)
			return spot{"00001.primary", -1, "slots", 0}
		},
		"a primary index of rubbish": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			flip(t, m.file(chunk, "primary"), 30)
			return spot{"00001.primary", -1, "primary offset", 0}
		},
		"no primary index": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			os.Remove(m.file(chunk, "primary"))
			return spot{"00001.primary", -1, "not there", 0}
		},
		"no secondary index": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			os.Remove(m.file(chunk, "secondary"))
			return spot{"00001.secondary", -1, "not there", 0}
		},
		"a chunk cut": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			cut(t, m.file(chunk, "chunk"), 1)
			return spot{"00001.chunk", -2, "checksum", len(e) - 1}
		},
		"a chunk cut by blocks": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			change(t, m.file(chunk, "chunk"), func(b []byte) []byte { return b[:e[2].Offset+1] })
			return spot{"00001.secondary", 2 * immutabledb.SecondarySize, "a block from", 0}
		},
		"bytes behind a chunk": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			change(t, m.file(chunk, "chunk"), func(b []byte) []byte { return append(b, 0) })
			return spot{"00001.chunk", int64(e[len(e)-1].Offset), "checksum", len(e) - 1}
		},
		"a chunk of another chain": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			// Two blocks of the chunk are gone, from all three files and in step.
			entries := slices.Clone(e[2:])
			var second []byte
			for i := range entries {
				entries[i].Offset -= e[2].Offset
				second = entries[i].Append(second)
			}
			change(t, m.file(chunk, "secondary"), func([]byte) []byte { return second })
			change(t, m.file(chunk, "chunk"), func(b []byte) []byte { return b[e[2].Offset:] })
			change(t, m.file(chunk, "primary"), func(b []byte) []byte {
				for i := 1; i < len(b); i += 4 {
					n := binary.BigEndian.Uint32(b[i:])
					binary.BigEndian.PutUint32(b[i:], max(n, 2*immutabledb.SecondarySize)-2*immutabledb.SecondarySize)
				}
				return b
			})
			return spot{"00001.chunk", 0, "does not follow", 0}
		},
		"a chunk missing": func(t *testing.T, m *made, e []immutabledb.SecondaryEntry) spot {
			os.Remove(m.file(chunk, "chunk"))
			return spot{"00001.chunk", -1, "not there", -1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := create(t, 50)
			first := m.firstOf(t, chunk)
			if m.chunk(49) == chunk {
				t.Fatal("the chunk is not complete")
			}
			f := m.open(t)
			want := c(t, m, m.entries(t, chunk))
			g := read(t, f, chain.Origin, chain.Point{})
			var e *immutabledb.Error
			if !errors.As(g.err, &e) || e.Kind != immutabledb.ErrDamaged || e.Hint == "" {
				t.Fatalf("error %v", g.err)
			}
			if e.File != want.file || want.at != -2 && e.Offset != want.at || !strings.Contains(e.Error(), want.says) {
				t.Errorf("got %v, want %+v", e, want)
			}
			if want.good < 0 {
				first, want.good = 0, 0
			}
			m.same(t, g.raw, 0, first+want.good)
		})
	}
}

// What a node is writing, or was writing when it was killed, or what a power cut
// left of it, is not there yet: no error, and every block before it.
func TestTornTail(t *testing.T) {
	for name, c := range map[string]struct {
		tear func(t *testing.T, m *made, chunk int)
		lost int // blocks, with those whose end is not known; -1 for all of the last chunk
	}{
		"nothing":                   {func(*testing.T, *made, int) {}, 0},
		"the block cut":             {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "chunk"), 1) }, 1},
		"the block begun":           {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "chunk"), len(m.blocks[len(m.blocks)-1].Raw)-1) }, 1},
		"the block missing":         {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "chunk"), len(m.blocks[len(m.blocks)-1].Raw)) }, 1},
		"the block damaged":         {func(t *testing.T, m *made, n int) { flip(t, m.file(n, "chunk"), m.size(t, n, "chunk")-2) }, 1},
		"its entry cut":             {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "secondary"), 1) }, 2},
		"its entry missing":         {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "secondary"), 56) }, 2},
		"its offset cut":            {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "primary"), 3) }, 1},
		"its offset missing":        {func(t *testing.T, m *made, n int) { cut(t, m.file(n, "primary"), 4) }, 1},
		"no primary index yet":      {func(t *testing.T, m *made, n int) { os.Remove(m.file(n, "primary")) }, -1},
		"no secondary index yet":    {func(t *testing.T, m *made, n int) { os.Remove(m.file(n, "secondary")) }, -1},
		"an empty primary index":    {func(t *testing.T, m *made, n int) { os.Truncate(m.file(n, "primary"), 0) }, -1},
		"a version byte":            {func(t *testing.T, m *made, n int) { os.Truncate(m.file(n, "primary"), 1) }, -1},
		"an empty chunk":            {func(t *testing.T, m *made, n int) { os.Truncate(m.file(n, "chunk"), 0) }, -1},
		"an entry without offset":   {func(t *testing.T, m *made, n int) { m.append(t, n, "secondary", make([]byte, 20)) }, 0},
		"a block without its entry": {func(t *testing.T, m *made, n int) { m.append(t, n, "chunk", []byte{0x82, 6, 0x85}) }, 1},
		"a whole new chunk without indexes": {func(t *testing.T, m *made, n int) {
			if err := os.WriteFile(m.file(n+1, "chunk"), []byte{0x82}, 0o600); err != nil {
				t.Fatal(err)
			}
			m.seal(t, n)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := create(t, 0, forge.EraSpan{Era: chain.Byron}) // dense enough for three blocks in a chunk
			for len(m.blocks) < 3 || m.chunk(len(m.blocks)-3) < 2 {
				m.grow(t, 1)
			}
			if m.chunk(len(m.blocks)-1) > 2 {
				t.Fatal("too sparse")
			}
			n := len(m.blocks)
			c.tear(t, m, 2)
			keep := n - c.lost
			if c.lost < 0 {
				keep = m.firstOf(t, 2)
			}
			f := m.open(t)
			g := read(t, f, chain.Origin, chain.Point{})
			if g.err != nil {
				t.Fatal(g.err)
			}
			m.same(t, g.raw, 0, keep)
			end, ok, err := f.End()
			if err != nil || !ok || end != m.blocks[keep-1].Link {
				t.Errorf("end %v %v %v, want %v", end, ok, err, m.blocks[keep-1].At())
			}
		})
	}
}

func (m *made) size(t testing.TB, chunk int, kind string) int64 {
	st, err := os.Stat(m.file(chunk, kind))
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

func (m *made) append(t testing.TB, chunk int, kind string, b []byte) {
	change(t, m.file(chunk, kind), func(old []byte) []byte { return append(old, b...) })
}

// seal fills a primary index up, as a node does before it begins the next chunk.
func (m *made) seal(t testing.TB, chunk int) {
	change(t, m.file(chunk, "primary"), func(b []byte) []byte {
		last := b[len(b)-4:]
		for uint64(len(b)) < 1+4*(m.forge.ByronEpochSlots()+2) {
			b = append(b, last...)
		}
		return b
	})
}

// A folder that cannot be used says so, and what to do.
func TestOpen(t *testing.T) {
	m := create(t, 50)
	opts := m.options()
	db := filepath.Dir(m.dir)
	nothing := t.TempDir()
	file := filepath.Join(nothing, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := opts
	other.ChunkSlots = 21600
	for name, c := range map[string]struct {
		dir  string
		opts immutabledb.Options
		kind error
		says string
	}{
		"not there":           {filepath.Join(nothing, "x"), opts, immutabledb.ErrMissing, "hint: the folder is called immutable"},
		"empty":               {nothing, opts, immutabledb.ErrEmpty, "hint: the folder is called immutable"},
		"the folder above":    {db, opts, immutabledb.ErrEmpty, "hint: it is in " + m.dir},
		"a file":              {file, opts, immutabledb.ErrRead, "not a directory"},
		"of another network":  {m.dir, other, immutabledb.ErrNotOurs, "21600"},
		"not even its parent": {filepath.Join(nothing, "x", "y"), opts, immutabledb.ErrMissing, "hint"},
	} {
		_, err := immutabledb.Open(c.dir, c.opts)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(nothing, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := immutabledb.Open(nothing, opts); !errors.Is(err, immutabledb.ErrRead) || !strings.Contains(err.Error(), "user id") {
			t.Error(err)
		}
		if err := os.Chmod(nothing, 0o700); err != nil { //nolint:gosec // so that it can be removed
			t.Fatal(err)
		}
	}
}

// A first chunk whose primary index has another length than this network's is
// damaged, unless all are like it: then the folder is another network's.
func TestOpenWithASpoiltFirstChunk(t *testing.T) {
	for name, how := range map[string]func(b []byte) []byte{
		"grown":       func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0xa5, 1, 2, 3}, 20)...) },
		"grown alike": func(b []byte) []byte { return append(b, b[len(b)-4:]...) },
		"cut":         func(b []byte) []byte { return b[:len(b)-8] },
	} {
		m := create(t, 50)
		change(t, m.file(0, "primary"), how)
		_, err := immutabledb.Open(m.dir, m.options())
		if !errors.Is(err, immutabledb.ErrDamaged) || errors.Is(err, immutabledb.ErrNotOurs) || !strings.Contains(err.Error(), "00000.primary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A node that has just been started has a chunk without blocks; one whose first
// chunks are gone has no beginning.
func TestNoBeginning(t *testing.T) {
	m := create(t, 0)
	if err := os.WriteFile(m.file(0, "chunk"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := m.open(t).End(); ok || err != nil {
		t.Error(ok, err)
	}
	m = create(t, 50)
	for _, kind := range []string{"chunk", "primary", "secondary"} {
		os.Remove(m.file(0, kind))
	}
	f := m.open(t)
	if g := read(t, f, chain.Origin, chain.Point{}); !errors.Is(g.err, immutabledb.ErrDamaged) || !strings.Contains(g.err.Error(), "00001.chunk") {
		t.Error(g.err)
	}
	i := m.firstOf(t, 2)
	m.same(t, read(t, f, chain.Origin, m.blocks[i].Point, chain.Point{}).raw, i+1, 50)
}
