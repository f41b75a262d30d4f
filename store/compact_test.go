package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// TestCompact makes of an archive a pruned store, killed before every transaction
// on the way.
func TestCompact(t *testing.T) {
	w := newWorld(3, true, 0)
	opts := Options{Dir: filepath.Join(t.TempDir(), "0"), Magic: 1, K: 3, Archive: true, Terms: testTerms, memTable: 1 << 14, noSync: true}
	s := mustOpen(t, opts)
	sc := newScript(4)
	for range 30 {
		blocks := w.batch(4, func(int) bool { return true }, sc.draw)
		if err := s.Commit(blocks); err != nil {
			t.Fatal(err)
		}
		w.commit(blocks)
	}
	kept := func(s *Store) (n int) {
		if err := s.db.View(func(txn *badger.Txn) error {
			return each(txn, []byte{keyGone}, func(_, _ []byte) error { n++; return nil })
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	many := kept(s)
	if many < 20 {
		t.Fatalf("%d spent outputs: the test tells nothing", many)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opts.Archive = false // it stays one all the same
	s = mustOpen(t, opts)
	if !s.State().Archive || kept(s) != many {
		t.Fatal("it was an archive")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.archive = false
	opts.Compact = true
	for kills := 0; ; kills++ {
		steps := 0
		opts.hook = func(step string) error {
			if !strings.Contains(step, "compact") && !strings.Contains(step, "archive") {
				return nil
			}
			if steps++; steps > 1 || kills == 0 {
				return errKilled
			}
			return nil
		}
		s, err := Open(opts)
		if errors.Is(err, errKilled) {
			if c := checkDir(t, opts.Dir); len(c.Findings) > 0 {
				t.Fatalf("%+v", c.Findings)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.verify(s); err != nil {
			t.Fatal(err)
		}
		if s.State().Archive || kept(s) != 0 {
			t.Fatalf("it is an archive, %d spent outputs are left", kept(s))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if kills == 0 {
			t.Error("never killed")
		}
		break
	}
	opts.hook, opts.Compact, opts.Archive = nil, false, true
	if _, err := Open(opts); !errors.Is(err, ErrSettings) {
		t.Fatalf("an archive out of nothing: %v", err)
	}
}
