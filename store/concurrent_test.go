package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// TestSnapshotsAreWhole opens views all the time while blocks are written, most
// of them through the redo log, while rollbacks run and while the indexes are
// built. Every view must hold exactly what its head counts, and find by index
// what a scan finds.
func TestSnapshotsAreWhole(t *testing.T) {
	sc := newScript(8)
	opts := sc.options(t.TempDir())
	s := mustOpen(t, opts)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for views := 0; ; views++ {
				select {
				case <-stop:
					if views == 0 {
						t.Error("no view was opened")
					}
					return
				default:
				}
				if err := wholeView(s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	ops := 150
	if testing.Short() {
		ops = 40
	}
	for n := range ops {
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			t.Fatal(err)
		}
		sc.apply(op, op.steps())
		if n == ops/4 {
			wg.Go(func() {
				last := -1.0
				if err := s.BuildIndexes(context.Background(), func(done float64) {
					if done < last {
						t.Errorf("the progress goes from %f to %f", last, done)
					}
					last = done
				}); err != nil {
					t.Error(err)
				}
				if last != 1 {
					t.Errorf("the progress ends at %f", last)
				}
			})
		}
	}
	close(stop)
	wg.Wait()
	if st := s.State(); !st.Index.Built {
		t.Errorf("%+v", st.Index)
	}
	if err := sc.w.verify(s); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func wholeView(s *Store) error {
	v := s.Snapshot()
	defer v.Close()
	outputs, lovelace := v.UTxOCount()
	var n int64
	var sum uint64
	bySource := map[chain.Source]int{}
	if err := v.UTxOs(context.Background(), chain.Source{Kind: chain.SourceAll}, func(o *chain.Output) error {
		n++
		sum += o.Lovelace
		once := map[chain.Source]bool{} // it holds several assets of a policy
		for _, src := range testSources(o.Raw[0], o.Raw[1]) {
			if !once[src] {
				once[src] = true
				bySource[src]++
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if n != outputs || sum != lovelace {
		return fmt.Errorf("at %s %d outputs with %d, the head says %d with %d", v.Head().At(), n, sum, outputs, lovelace)
	}
	if !v.Indexed() {
		return nil
	}
	for src, want := range bySource {
		got := 0
		if err := v.UTxOs(context.Background(), src, func(*chain.Output) error { got++; return nil }); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("at %s source %v has %d outputs by index, %d by scan", v.Head().At(), src, got, want)
		}
	}
	return nil
}

// TestRollbackEndsWithContext: an undo of many transactions stops between two
// and leaves a shorter chain, from which it can go on.
func TestRollbackEndsWithContext(t *testing.T) {
	opts := testOptions(t)
	opts.memTable, opts.K = 1<<14, 100
	s := mustOpen(t, opts)
	defer s.Close()
	w := newWorld(100, false, 0)
	sc := &script{w: w, rnd: newScript(3).rnd}
	for len(w.blocks) < 60 {
		blocks := w.batch(5, func(int) bool { return true }, sc.draw)
		if err := s.Commit(blocks); err != nil {
			t.Fatal(err)
		}
		w.commit(blocks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	s.hook = func(step string) error {
		if step == "undo" {
			if calls++; calls == 3 {
				cancel()
			}
		}
		return nil
	}
	if err := s.Rollback(ctx, chain.Point{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want %v", err, context.Canceled)
	}
	gone := 0
	for w.head() != s.Head() && len(w.blocks) > 0 {
		w.undo()
		gone++
	}
	if gone == 0 || len(w.blocks) == 0 {
		t.Fatalf("%d blocks gone, %d left", gone, len(w.blocks))
	}
	if err := w.verify(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback(t.Context(), chain.Point{}); err != nil {
		t.Fatal(err)
	}
	if s.Head() != originLink() || s.State().UTxOs != 0 {
		t.Fatalf("%+v", s.State())
	}
}

// TestRollbackToHeadIsNoWork: not one transaction, a thousand times.
func TestRollbackToHeadIsNoWork(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	defer s.Close()
	if err := s.Commit([]*chain.Effects{oneBlock()}); err != nil {
		t.Fatal(err)
	}
	s.hook = func(step string) error { return fmt.Errorf("step %s", step) }
	for range 1000 {
		if err := s.Rollback(t.Context(), oneBlock().Point); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBuiltIndexesNeedTerms: without them they would fall behind.
func TestBuiltIndexesNeedTerms(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	if err := s.BuildIndexes(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opts.Terms = nil
	s = mustOpen(t, opts)
	defer s.Close()
	if err := s.Commit([]*chain.Effects{oneBlock()}); !errors.Is(err, ErrNoTerms) {
		t.Errorf("commit: %v, want %v", err, ErrNoTerms)
	}
	if err := s.BuildIndexes(t.Context(), nil); !errors.Is(err, ErrNoTerms) {
		t.Errorf("build: %v, want %v", err, ErrNoTerms)
	}
}

// TestSpent: who spent an output, near the tip in any store, for ever in an
// archive.
func TestSpent(t *testing.T) {
	for _, archive := range []bool{false, true} {
		t.Run(fmt.Sprintf("archive %v", archive), func(t *testing.T) {
			opts := testOptions(t)
			opts.K, opts.Archive = 2, archive
			s := mustOpen(t, opts)
			defer s.Close()
			w := newWorld(2, archive, 3)
			if err := s.Genesis(w.genesis); err != nil {
				t.Fatal(err)
			}
			e := w.plain()
			tx := w.hash()
			e.Spent = append([]chain.Output(nil), w.genesis...)
			e.Txs = []chain.TxEffects{{Spent: 1}, {ID: w.hash(), Valid: true, Spent: 1}, {ID: tx, Valid: true, Spent: 3}}
			commitBoth(t, s, w, e)
			check := func(kept bool) {
				t.Helper()
				v := s.Snapshot()
				defer v.Close()
				for i, want := range []Spender{{}, {TxIndex: 1, Tx: tx}, {TxIndex: 1, Input: 1, Tx: tx}} {
					o, by, ok, err := v.Spent(w.genesis[i].Ref)
					if err != nil || ok != kept {
						t.Fatalf("output %d: kept %v, want %v, %v", i, ok, kept, err)
					}
					if ok && (by != want || !sameOutput(o, w.genesis[i])) {
						t.Fatalf("output %d: %+v by %+v, want %+v", i, o, by, want)
					}
					made := 0
					if err := v.Made(t.Context(), w.genesis[i].Ref.ID, func(o *chain.Output) error {
						if o.Ref == w.genesis[i].Ref && sameOutput(*o, w.genesis[i]) {
							made++
						}
						return nil
					}); err != nil || (made == 1) != kept || made > 1 {
						t.Fatalf("output %d is told of %d times by its transaction, %v", i, made, err)
					}
				}
			}
			check(true)
			for range 4 {
				commitBoth(t, s, w, w.plain())
			}
			check(archive)
		})
	}
}

// TestCloseUnderReaders closes a store that many goroutines read: each is answered,
// in the end by ErrClosed, and nobody reads what is no longer mapped.
func TestCloseUnderReaders(t *testing.T) {
	for range 5 {
		opts := testOptions(t)
		s := mustOpen(t, opts)
		w := newWorld(opts.K, false, 0)
		rnd := rand.New(rand.NewPCG(3, 4))
		draw := func(_ string, low, high int) int { return low + rnd.IntN(high-low+1) }
		for range 10 {
			blocks := w.batch(5, func(int) bool { return true }, draw)
			if err := s.Commit(blocks); err != nil {
				t.Fatal(err)
			}
			w.commit(blocks)
		}
		ref := w.blocks[0].Created
		v := s.Snapshot()
		read := []func() error{
			func() error {
				return v.UTxOs(t.Context(), chain.Source{Kind: chain.SourceAll}, func(*chain.Output) error { return nil })
			},
			func() error { _, _, err := v.Links(100); return err },
			func() error { return v.Effects(w.head().Position(), new(chain.Effects)) },
			func() error { return s.Verify(t.Context()) },
			func() error {
				s.DiskUse()
				if len(ref) == 0 {
					return ErrClosed
				}
				_, _, err := v.Get(ref[0].Ref)
				return err
			},
			func() error {
				n := s.Snapshot()
				defer n.Close()
				_, _, err := n.LinkAt(w.head().Position())
				return err
			},
		}
		var group sync.WaitGroup
		for _, f := range read {
			group.Go(func() {
				for {
					if err := f(); errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		v.Close()
	}
}
