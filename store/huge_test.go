package store

import (
	"context"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// TestHugeBlock: one block of 2,300 inputs whose outputs have 16 kB each, on the
// smallest memory, is committed, undone, committed again, swept, and stays in an
// archive; a kill in the middle of the sweep loses nothing.
func TestHugeBlock(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 200 MB")
	}
	const inputs, size, k = 2300, 16 << 10, 2
	for name, archive := range map[string]bool{"pruned": false, "archive": true} {
		t.Run(name, func(t *testing.T) {
			opts := Options{Dir: t.TempDir(), Magic: 1, K: k, Archive: archive, Memory: MinMemory, Terms: testTerms, noSync: true}
			s := mustOpen(t, opts)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			w := newWorld(k, archive, 0)
			for len(w.live) < inputs {
				e := w.plain()
				id := w.hash()
				for i := range 100 {
					o := w.output(chain.TxIn{ID: id, Index: uint32(i)}, e.Link, 0, uint64(i)*7919)
					o.Raw = append(o.Raw, make([]byte, size-len(o.Raw))...)
					e.Created = append(e.Created, o)
				}
				e.Txs = []chain.TxEffects{{ID: id, Valid: true, Created: len(e.Created)}}
				commitBoth(t, s, w, e)
			}
			if err := s.BuildIndexes(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			huge := w.plain()
			for _, o := range w.live {
				huge.Spent = append(huge.Spent, o)
			}
			huge.Txs = []chain.TxEffects{{ID: w.hash(), Valid: true, Spent: len(huge.Spent)}}
			huge.Raw = make([]byte, 90_000)
			commitBoth(t, s, w, huge)
			if err := s.Rollback(context.Background(), w.at(len(w.blocks)-2).Point); err != nil {
				t.Fatal(err)
			}
			w.undo()
			verifyCounts(t, s, w)
			commitBoth(t, s, w, huge)
			steps := 0
			s.hook = func(string) error {
				if steps++; steps == 40 {
					return errKilled
				}
				return nil
			}
			for range k + 1 {
				e := w.plain()
				if err := s.Commit([]*chain.Effects{e}); err != nil {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = mustOpen(t, opts)
				}
				if s.Head() == e.Link {
					w.commit([]*chain.Effects{e})
				} else {
					commitBoth(t, s, w, e)
				}
			}
			if err := s.Commit(nil); err != nil {
				t.Fatal(err)
			}
			if archive && steps < 40 {
				t.Errorf("%d transactions: the sweep of 37 MB was not cut", steps)
			}
			got, err := dump(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := differ(got, w.expected(s)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// plain is an empty main block on top of the head, with a record.
func (w *world) plain() *chain.Effects {
	h := w.head()
	return &chain.Effects{Journal: true, Link: chain.Link{Point: chain.Point{Slot: h.Point.Slot + 1, Hash: w.hash()}, Parent: h.Point.Hash, Height: h.Height + 1, Era: chain.Conway}}
}

func commitBoth(t *testing.T, s *Store, w *world, blocks ...*chain.Effects) {
	t.Helper()
	if err := s.Commit(blocks); err != nil {
		t.Fatal(err)
	}
	w.commit(blocks)
	verifyCounts(t, s, w)
}

func verifyCounts(t *testing.T, s *Store, w *world) {
	t.Helper()
	if st := s.State(); st.Head != w.head() || st.UTxOs != int64(len(w.live)) {
		t.Fatalf("head %s with %d outputs, want %s with %d", st.Head.At(), st.UTxOs, w.head().At(), len(w.live))
	}
}
