package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

// TestGatherModel gathers and flushes, commits, rolls back, indexes and reopens,
// and compares every key with the model. Between gathering and flushing nobody
// but the one who resolves sees anything.
func TestGatherModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// A flush in one transaction, or in many.
		onModel(t, rapid.SampledFrom([]int64{1 << 20, 1 << 14}).Draw(t, "memtable"), gatherModel)
	})
}

func gatherModel(m *machine) {
	var seen State
	settled := true
	gather := func(t *rapid.T) {
		blocks := m.w.batch(rapid.IntRange(1, 8).Draw(t, "blocks"), func(int) bool { return false }, m.draw(t))
		before := m.s.State()
		if err := m.s.Gather(blocks); err != nil {
			t.Fatal(err)
		}
		m.w.commit(blocks)
		if settled = m.s.Head() == m.w.head(); settled {
			return
		}
		if before.Head != m.s.Head() {
			t.Fatalf("head %v is neither the old nor the new one", m.s.Head())
		}
		seen = before
	}
	writes := func(f func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) { f(t); settled = true }
	}
	m.t.Repeat(map[string]func(*rapid.T){
		"": func(*rapid.T) {
			if n := m.s.Newest(); n != m.w.head() {
				m.t.Fatalf("newest %v, want %v", n, m.w.head())
			}
			if settled {
				m.check()
				return
			}
			if st := m.s.State(); st != seen {
				m.t.Fatalf("what is gathered shows: %+v, was %+v", st, seen)
			}
			if err := m.w.verifyLookups(m.s); err != nil {
				m.t.Fatal(err)
			}
		},
		"gather":       gather,
		"gather more":  gather,
		"gather again": gather,
		"flush": writes(func(t *rapid.T) {
			if err := m.s.Flush(); err != nil {
				t.Fatal(err)
			}
		}),
		"commit": writes(m.commit),
		"rollback": writes(func(t *rapid.T) {
			if err := m.s.Flush(); err != nil {
				t.Fatal(err)
			}
			m.rollback(t)
		}),
		"reopen": writes(func(*rapid.T) { m.close(); m.open() }),
		"index":  writes(m.index),
	})
}

// A journal's block is nothing to gather, nor one that does not follow.
func TestGatherRefuses(t *testing.T) {
	w := newWorld(3, false, 2)
	s := mustOpen(t, Options{Dir: t.TempDir(), Magic: 42, K: 3, Terms: testTerms, memTable: 1 << 20, noSync: true})
	defer s.Close()
	if err := s.Genesis(w.genesis); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	draw := func(_ string, low, high int) int { return low + rnd.IntN(high-low+1) }
	far := func(int) bool { return false }
	first := w.batch(2, far, draw)
	if err := s.Gather(first); err != nil {
		t.Fatal(err)
	}
	w.commit(first)
	if err := s.Gather(w.batch(1, func(int) bool { return true }, draw)); !errors.Is(err, errGatherJournal) {
		t.Errorf("%v", err)
	}
	if err := s.Gather(first); !errors.Is(err, ErrNotNext) {
		t.Errorf("%v", err)
	}
	if err := s.Rollback(context.Background(), first[0].Point); !errors.Is(err, ErrBelowFloor) {
		t.Errorf("rolled back what has no record: %v", err)
	}
	if err := w.verify(s); err != nil { // the refused rollback has written it
		t.Error(err)
	}
}

// TestKillWhileFlushing ends the process before every transaction of flushes.
// Opened again, the store stands where it stood before, to the last key, or
// behind all that was gathered.
func TestKillWhileFlushing(t *testing.T) {
	hit := map[string]int{}
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for _, archive := range []bool{false, true} {
		rnd := rand.New(rand.NewPCG(7, 7))
		draw := func(_ string, low, high int) int { return low + rnd.IntN(high-low+1) }
		w := newWorld(3, archive, 4)
		dir := t.TempDir()
		opts := Options{Dir: filepath.Join(dir, "0"), Magic: 42, K: 3, Archive: archive, Terms: testTerms, memTable: 1 << 14, noSync: true}
		s := mustOpen(t, opts)
		if err := s.Genesis(w.genesis); err != nil {
			t.Fatal(err)
		}
		for round := range rounds {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			blocks := w.batch(1+round*(4+rnd.IntN(12)), func(int) bool { return false }, draw)
			for fail := 1; ; fail++ {
				at := opts
				at.Dir = filepath.Join(dir, fmt.Sprintf("%v-%d-%d", archive, round, fail))
				copyDir(t, opts.Dir, at.Dir)
				count := 0
				at.hook = func(step string) error {
					if count++; count < fail {
						return nil
					}
					hit[step]++
					return errKilled
				}
				s = mustOpen(t, at)
				err := gatherAll(s, blocks)
				if err == nil {
					opts.Dir = at.Dir
					break
				}
				if !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				at.hook = nil
				s = mustOpen(t, at)
				if s.Head() != w.head() {
					err = afterwards(w, blocks).verify(s)
				} else {
					err = w.verify(s)
				}
				if err != nil {
					t.Fatalf("round %d, kill %d, head %v: %v", round, fail, s.Head().At(), err)
				}
				if err := errors.Join(s.Close(), os.RemoveAll(at.Dir)); err != nil {
					t.Fatal(err)
				}
			}
			w.commit(blocks)
			if err := w.verify(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"write", "part", "seal", "apply", "head", "drop"} {
		if hit[step] == 0 {
			t.Errorf("no kill before step %q; the kills were %v", step, hit)
		}
	}
}

// gatherAll gathers block by block, as long as the limit lets it, and flushes.
func gatherAll(s *Store, blocks []*chain.Effects) error {
	if err := s.Gather(blocks); err != nil {
		return err
	}
	return s.Flush()
}

// afterwards is the model after the blocks; the model itself stays as it is.
func afterwards(w *world, blocks []*chain.Effects) *world {
	c := *w
	c.blocks = slices.Clone(w.blocks)
	c.live = maps.Clone(w.live)
	c.orphans = maps.Clone(w.orphans)
	c.undone = slices.Clone(w.undone)
	c.commit(blocks)
	return &c
}
