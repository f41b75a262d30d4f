package immutable_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/immutabledb"
)

// shared returns the path of a file of the folder of shared test data beside
// the repository, and skips the test where it is absent.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("OUROTAIL_SHARED")
	for dir, _ := os.Getwd(); root == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = filepath.Join(filepath.Dir(dir), "shared")
		}
	}
	p := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("shared test data is not here (OUROTAIL_SHARED names it): %v", err)
	}
	return p
}

// A folder written anew from its blocks is the folder a node wrote.
func TestRewritesPreview(t *testing.T) {
	dir := shared(t, "preview", "immutable")
	db, err := immutable.Open(dir, immutable.Options{CheckCRC: true})
	if err != nil {
		t.Fatal(err)
	}
	if w := db.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
	if db.Len() != 40357 || db.Height(db.Len()-1) != 40356 || db.ByronEpochSlots() != 4320 {
		t.Fatalf("%d blocks up to height %d, epochs of %d slots", db.Len(), db.Height(db.Len()-1), db.ByronEpochSlots())
	}
	out := t.TempDir()
	w, err := immutable.Create(out, db.ByronEpochSlots())
	if err != nil {
		t.Fatal(err)
	}
	cur := db.Cursor()
	defer cur.Close()
	cur.Check = true
	for i := range db.Len() {
		b, err := cur.Block(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.Name(), "00199.primary") {
			// The last chunk was finished when it was copied; ours is not.
			if !bytes.HasPrefix(want, got) {
				t.Errorf("%s is not a beginning of the node's", f.Name())
			}
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs", f.Name())
		}
	}
}

// write makes a folder of n generated blocks and returns their points.
func write(t testing.TB, dir string, opts forge.Options, n int) (links []chain.Link, slots uint64) {
	t.Helper()
	f, err := forge.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	w, err := immutable.Create(dir, f.ByronEpochSlots())
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(b.Raw); err != nil {
			t.Fatal(err)
		}
		links = append(links, b.Link)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return links, f.ByronEpochSlots()
}

// check compares the folder with the first of links.
func check(t testing.TB, db *immutable.DB, links []chain.Link, n int) {
	t.Helper()
	if db.Len() != n {
		t.Fatalf("%d blocks, want %d; warnings %v", db.Len(), n, db.Warnings())
	}
	for i := range n {
		e := db.Entry(i)
		if e.Point != links[i].Point || e.Boundary != links[i].Boundary || db.Height(i) != links[i].Height {
			t.Fatalf("block %d is %v %v at %d, want %+v", i, e.Point, e.Boundary, db.Height(i), links[i])
		}
		if j, ok := db.Find(e.Point); !ok || j != i {
			t.Fatalf("block %d is found as %d, %v", i, j, ok)
		}
	}
	cur := db.Cursor()
	cur.Check = true
	defer cur.Close()
	for i := range n {
		b, err := cur.Block(i)
		if err != nil {
			t.Fatal(err)
		}
		h, err := immutable.ReadHeader(b, db.ByronEpochSlots())
		if err != nil || h.Point != links[i].Point {
			t.Fatalf("block %d reads as %v, %v", i, h.Point, err)
		}
	}
}

var byronToConway = forge.Options{Seed: 5, K: 6, EpochBlocks: 25}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	links, _ := write(t, dir, byronToConway, 300)
	db, err := immutable.Open(dir, immutable.Options{CheckCRC: true})
	if err != nil {
		t.Fatal(err)
	}
	if w := db.Warnings(); len(w) > 0 {
		t.Error(w)
	}
	check(t, db, links, 300)
}

// Whatever is missing or wrong in the indexes, the blocks are found.
func TestDamage(t *testing.T) {
	const n = 300
	last := func(dir, kind string) string {
		m, _ := filepath.Glob(filepath.Join(dir, "*."+kind))
		return m[len(m)-1]
	}
	cut := func(path string, by int64) {
		st, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, st.Size()-by)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		damage func(dir string)
		lost   int // blocks lost at the end; -1 if it depends
		warn   string
		opts   immutable.Options
	}{
		"no indexes": {func(dir string) {
			for _, k := range []string{"primary", "secondary"} {
				m, _ := filepath.Glob(filepath.Join(dir, "*."+k))
				for _, f := range m {
					os.Remove(f)
				}
			}
		}, 0, "no secondary index", immutable.Options{ByronEpochSlots: 60}},
		"no primary":          {func(dir string) { os.Remove(last(dir, "primary")) }, 0, "no primary index", immutable.Options{}},
		"chunk cut by a byte": {func(dir string) { cut(last(dir, "chunk"), 1) }, 1, "ends inside a block", immutable.Options{}},
		"secondary cut":       {func(dir string) { cut(last(dir, "secondary"), 20) }, 0, "", immutable.Options{}},
		"secondary one short": {func(dir string) { cut(last(dir, "secondary"), 56) }, 0, "", immutable.Options{}},
		"secondary empty":     {func(dir string) { os.Truncate(filepath.Join(dir, "00001.secondary"), 0) }, 0, "", immutable.Options{}},
		"secondary of another": {func(dir string) {
			b, _ := os.ReadFile(filepath.Join(dir, "00000.secondary"))
			os.WriteFile(filepath.Join(dir, "00001.secondary"), b, 0o644)
		}, 0, "walking the chunk instead", immutable.Options{}},
		"chunk missing":           {func(dir string) { os.Remove(filepath.Join(dir, "00001.chunk")) }, -1, "a chunk is missing", immutable.Options{}},
		"chunk cut in the middle": {func(dir string) { cut(filepath.Join(dir, "00001.chunk"), 10) }, -1, "ends before it", immutable.Options{}},
		"a byte flipped": {func(dir string) {
			// In the last hash of the body of a boundary block: only the
			// checksum can tell.
			p := filepath.Join(dir, "00001.chunk")
			b, _ := os.ReadFile(p)
			x, _ := os.ReadFile(filepath.Join(dir, "00001.secondary"))
			entries, _ := immutabledb.ParseSecondary(x)
			b[entries[1].Offset-4] ^= 1
			os.WriteFile(p, b, 0o644)
		}, -1, "checksum", immutable.Options{CheckCRC: true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			links, slots := write(t, dir, byronToConway, n)
			if slots != 60 {
				t.Fatal(slots)
			}
			c.damage(dir)
			db, err := immutable.Open(dir, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if c.warn != "" && !strings.Contains(strings.Join(db.Warnings(), "\n"), c.warn) {
				t.Errorf("warnings %q, want one with %q", db.Warnings(), c.warn)
			}
			if c.lost >= 0 {
				check(t, db, links, n-c.lost)
				return
			}
			if db.Len() == 0 || db.Len() >= n {
				t.Errorf("%d of %d blocks", db.Len(), n)
			}
			check(t, db, links, db.Len())
		})
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	links, _ := write(t, dir, byronToConway, 100)
	for _, h := range []chain.Height{0, 1, 24, 25, 26, 60} {
		db, err := immutable.Open(dir, immutable.Options{UntilHeight: &h})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for n < len(links) && links[n].Height <= h {
			n++
		}
		check(t, db, links, n)
	}
	one := 1
	db, err := immutable.Open(dir, immutable.Options{UntilChunk: &one})
	if err != nil {
		t.Fatal(err)
	}
	if e := db.Entry(db.Len() - 1); e.Chunk != 1 {
		t.Errorf("ends in chunk %d", e.Chunk)
	}
}

// A node appends while we look on, and is caught inside a write.
func TestRefresh(t *testing.T) {
	full, dir := t.TempDir(), t.TempDir()
	links, _ := write(t, full, byronToConway, 60)
	db := (*immutable.DB)(nil)
	seen := 0
	for chunk := 0; ; chunk++ {
		b, err := os.ReadFile(filepath.Join(full, fmt.Sprintf("%05d.chunk", chunk)))
		if err != nil {
			break
		}
		for _, part := range []int{len(b) / 3, len(b) / 2, len(b)} {
			for _, f := range []struct {
				kind string
				n    int
			}{{"chunk", part}, {"secondary", 1 << 30}, {"primary", 1 << 30}} {
				data, err := os.ReadFile(filepath.Join(full, fmt.Sprintf("%05d.%s", chunk, f.kind)))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.%s", chunk, f.kind)), data[:min(f.n, len(data))], 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if db == nil {
				if db, err = immutable.Open(dir, immutable.Options{ByronEpochSlots: 60}); err != nil {
					t.Fatal(err)
				}
			} else if _, err := db.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if db.Len() < seen {
				t.Fatalf("%d blocks, %d before", db.Len(), seen)
			}
			seen = db.Len()
			check(t, db, links, seen)
		}
	}
	if seen != 60 {
		t.Fatalf("%d of 60 blocks; %v", seen, db.Warnings())
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := immutable.Open(filepath.Join(t.TempDir(), "no"), immutable.Options{}); !immutable.IsNotExist(err) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := immutable.Open(t.TempDir(), immutable.Options{}); !errors.Is(err, immutable.ErrEmpty) {
		t.Errorf("empty folder: %v", err)
	}
}
