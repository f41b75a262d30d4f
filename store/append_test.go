package store

import (
	"context"
	"errors"
	"testing"
)

// TestAppendPutsTheSweepOff: blocks appended one by one, with rollbacks among them
// and no sweep for long, come to the same set at every moment; what no rollback
// reaches goes with the next Tidy or Commit, and a store that was closed in between
// does it too.
func TestAppendPutsTheSweepOff(t *testing.T) {
	for seed := range uint64(6) {
		sc := newScript(seed)
		opts := sc.options(t.TempDir())
		s := mustOpen(t, opts)
		if err := s.Genesis(sc.w.genesis); err != nil {
			t.Fatal(err)
		}
		put := 0
		for n := range 120 {
			all := func(int) bool { return true }
			if depth := len(sc.w.blocks) - 1 - sc.w.floor(); n%7 == 6 && depth > 0 {
				to := sc.w.at(len(sc.w.blocks) - 2)
				if err := s.Rollback(context.Background(), to.Point); err != nil {
					t.Fatal(err)
				}
				sc.w.undo()
			} else {
				b := sc.w.batch(1, all, sc.draw)
				if err := s.Append(b[0]); err != nil {
					t.Fatal(err)
				}
				sc.w.commit(b)
			}
			marks := 0
			for i, e := range sc.w.blocks {
				if i > sc.w.base {
					marks += len(e.Spent)
				}
			}
			if st := s.State(); st.Head != sc.w.head() || st.UTxOs != int64(len(sc.w.live)) {
				t.Fatalf("seed %d: head %s with %d outputs", seed, st.Head.At(), st.UTxOs)
			} else if st.Marks > int64(marks) {
				put++
			}
			if err := sc.w.verifyLookups(s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if n%20 != 19 {
				continue
			}
			if n%40 == 39 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, opts)
			}
			if err := s.Tidy(); err != nil {
				t.Fatal(err)
			}
			if err := sc.w.verify(s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if put == 0 {
			t.Error("nothing was put off")
		}
		if err := errors.Join(s.Close(), s.Tidy()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}
