package store

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/disk"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// TestForthAndBackLeavesNoGarbage: a chain that forks over and over, at every
// depth, takes no more of the disk after a close than one and a half times what
// the same chain takes that was followed once. OUROTAIL_LONG is how many times
// longer it goes on.
func TestForthAndBackLeavesNoGarbage(t *testing.T) {
	rounds := 25
	if long, err := strconv.Atoi(os.Getenv("OUROTAIL_LONG")); err == nil {
		rounds *= long
	} else if testing.Short() {
		rounds = 8
	}
	for name, indexed := range map[string]bool{"plain": false, "indexed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forthAndBack(t, rounds, indexed)
		})
	}
}

func forthAndBack(t *testing.T, rounds int, indexed bool) {
	const k, length, step = 100, 3000, 50
	rnd := rand.New(rand.NewPCG(8, 8))
	draw := func(what string, low, high int) int {
		if what == "raw" {
			return 1000
		}
		return low + rnd.IntN(high-low+1)
	}
	opts := Options{Magic: 1, K: k, Terms: testTerms, memTable: 1 << 18, noSync: true}
	w := newWorld(k, false, 0)
	fill := func(s *Store, blocks []*chain.Effects) {
		for len(blocks) > 0 {
			n := min(step, len(blocks))
			if err := s.Commit(blocks[:n]); err != nil {
				t.Fatal(err)
			}
			blocks = blocks[n:]
		}
	}
	opts.Dir = filepath.Join(t.TempDir(), "often")
	s := mustOpen(t, opts)
	for len(w.blocks) < length {
		journal := len(w.blocks) >= length-2*k
		blocks := w.batch(step, func(int) bool { return journal }, draw)
		fill(s, blocks)
		w.commit(blocks)
	}
	if indexed {
		if err := s.BuildIndexes(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	undone := 0
	for range rounds {
		depth := 1 + rnd.IntN(len(w.blocks)-1-w.floor())
		if err := s.Rollback(t.Context(), w.at(len(w.blocks)-1-depth).Point); err != nil {
			t.Fatal(err)
		}
		for range depth {
			w.undo()
		}
		undone += depth
		blocks := w.batch(depth, func(int) bool { return true }, draw)
		fill(s, blocks)
		w.commit(blocks)
	}
	before := s.DiskUse()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	often := disk.Allocated(filepath.Join(opts.Dir, "db"))

	opts.Dir = filepath.Join(t.TempDir(), "once")
	s = mustOpen(t, opts)
	for i, e := range w.blocks {
		e.Journal = i >= len(w.blocks)-k
	}
	fill(s, w.blocks)
	if indexed {
		if err := s.BuildIndexes(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	once := disk.Allocated(filepath.Join(opts.Dir, "db"))
	fixed := once - disk.Allocated(filepath.Join(opts.Dir, "db"), ".sst", segment.Ext)
	t.Logf("%d blocks undone: %d bytes, %d of a fresh sync, of which %d are Badger's fixed files; while open %+v", undone, often, once, fixed, before)
	if fixed*10 > once {
		t.Errorf("the fixed files are %d of %d bytes: the chain is too small to tell", fixed, once)
	}
	if often*2 > once*3 {
		t.Errorf("%d bytes after %d undone blocks, a fresh sync takes %d", often, undone, once)
	}
}
