package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dgraph-io/badger/v4/table"

	"github.com/ourotail/ourotail/chain"
)

// busy is an open store of many small tables.
func busy(t *testing.T) (*Store, *script, Options) {
	t.Helper()
	sc := newScript(4)
	opts := childOptions(sc, filepath.Join(t.TempDir(), "live"))
	opts.memTable = 1 << 14
	s := mustOpen(t, opts)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			t.Fatal(err)
		}
		sc.apply(op, op.steps())
	}
	return s, sc, opts
}

// spoilTables flips a bit in a block of every table of an open store.
func spoilTables(t *testing.T, s *Store, sc *script) {
	t.Helper()
	if sc.spoilt == nil {
		sc.spoilt = map[uint64]bool{}
	}
	for _, info := range s.db.Tables() {
		if sc.spoilt[info.ID] {
			continue
		}
		f, err := os.OpenFile(table.NewFilename(info.ID, filepath.Join(s.opts.Dir, "db")), os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue // compacted away
		}
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := f.ReadAt(b[:], 7); err == nil {
			b[0] ^= 1
			_, err = f.WriteAt(b[:], 7)
			sc.spoilt[info.ID] = true
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(sc.spoilt) == 0 {
		t.Fatal("there are no tables")
	}
}

// until runs the script until something fails.
func until(t *testing.T, s *Store, sc *script) error {
	t.Helper()
	for i := range 3000 {
		if i%50 == 49 && len(sc.spoilt) > 0 {
			spoilTables(t, s, sc) // a compaction under way may have read the others before
		}
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			return err
		}
		sc.apply(op, op.steps())
	}
	t.Fatal("nothing failed")
	return nil
}

// TestDamageWhileOpenEndsWriting: tables that are damaged under a store's feet
// are met by a compaction, a read or Verify: writing ends with ErrDamaged, and the
// store does not open again although the damaged table may be gone by then.
func TestDamageWhileOpenEndsWriting(t *testing.T) {
	for name, meet := range map[string]func(t *testing.T, s *Store, sc *script) error{
		"compaction": until,
		"verify": func(t *testing.T, s *Store, sc *script) error {
			verr := s.Verify(t.Context())
			if !errors.Is(verr, ErrDamaged) {
				t.Errorf("verify: %v", verr)
			}
			return until(t, s, sc)
		},
		"a look-up that finds nothing": func(t *testing.T, s *Store, sc *script) error {
			if _, err := s.Outputs([]*chain.Output{{Ref: chain.TxIn{ID: chain.TxID{1}}}}); !errors.Is(err, ErrDamaged) {
				t.Errorf("outputs: %v", err)
			}
			return until(t, s, sc)
		},
		"a scan that comes out short": func(t *testing.T, s *Store, sc *script) error {
			v := s.Snapshot()
			err := v.UTxOs(t.Context(), chain.Source{}, func(*chain.Output) error { return nil })
			v.Close()
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("scan: %v", err)
			}
			return until(t, s, sc)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, sc, opts := busy(t)
			spoilTables(t, s, sc)
			err := meet(t, s, sc)
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%v, want %v", err, ErrDamaged)
			}
			_ = s.Close() // it says again what happened
			if s, err := Open(opts); !errors.Is(err, ErrDamaged) {
				t.Errorf("opened again: %v, want %v", err, ErrDamaged)
				if err == nil {
					_ = s.Close()
				}
			}
			if c := checkDir(t, opts.Dir); len(c.Findings) == 0 {
				t.Error("check finds nothing")
			}
		})
	}
}

// TestTablesThatCannotBeMade: where no table can be written, writing ends with an
// error, closing does too, and opening finds all that was committed or says that
// it does not.
func TestTablesThatCannotBeMade(t *testing.T) {
	s, sc, opts := busy(t)
	dir := filepath.Join(opts.Dir, "db")
	newest := uint64(0)
	for _, info := range s.db.Tables() {
		newest = max(newest, info.ID)
	}
	var blockers []string
	for id := newest + 20; id < newest+400; id++ { // files that are in the way
		blockers = append(blockers, table.NewFilename(id, dir))
		if err := os.WriteFile(blockers[len(blockers)-1], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := until(t, s, sc)
	t.Logf("it ended with %v", err)
	for _, b := range blockers {
		if err := os.Remove(b); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	_ = s.Close() // it says again what happened
	s, err = Open(opts)
	if errors.Is(err, ErrDamaged) {
		t.Log(err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	got, err := dump(s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Head() == sc.w.head() {
		if err := differ(got, sc.w.expected(s)); err != nil {
			t.Error(err)
		}
	}
}

// TestAccountsBalance: hundreds of compactions, of tables with many versions of
// the same keys, with files left over by kills in between, and the numbers agree.
func TestAccountsBalance(t *testing.T) {
	s, sc, opts := busy(t)
	for round := range 4 {
		for range 40 {
			op := sc.next()
			if err := op.run(s, sc.w); err != nil {
				t.Fatal(err)
			}
			sc.apply(op, op.steps())
		}
		v := s.Snapshot() // keeps write-ahead files whose tables are made
		if round == 1 {
			if err := s.BuildIndexes(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
		killed := filepath.Join(t.TempDir(), "killed")
		copyLive(t, opts.Dir, killed)
		v.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		opts.Dir = killed
		s = mustOpen(t, opts)
		if got, err := dump(s); err != nil {
			t.Fatal(err)
		} else if err := differ(got, sc.w.expected(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.accounts.off && s.failure.Load() != nil {
		t.Error(*s.failure.Load())
	}
}

// TestManifestChanges: what the accountant reads of a manifest is what Badger
// wrote, also after Badger wrote it anew.
func TestManifestChanges(t *testing.T) {
	set, err := decodeChanges([]byte{0x0a, 8, 8, 5, 16, 0, 24, 6, 40, 0, 0x0a, 4, 8, 0x85, 2, 16, 0x0a, 2, 8, 1})
	if err == nil {
		t.Errorf("a change that ends early decodes to %v", set)
	}
	set, err = decodeChanges([]byte{0x0a, 6, 8, 5, 24, 6, 40, 0, 0x0a, 5, 8, 0x85, 2, 16, 1})
	if want := (manifestChanges{{5, false}, {261, true}}); err != nil || !slices.Equal(set, want) {
		t.Errorf("%v, %v, want %v", set, err, want)
	}
}

func FuzzManifestChanges(f *testing.F) {
	f.Add([]byte{0x0a, 6, 8, 5, 24, 6, 40, 0, 0x0a, 5, 8, 0x85, 2, 16, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if set, err := decodeChanges(b); err == nil && len(set) > len(b) {
			t.Fatalf("%d changes of %d bytes", len(set), len(b))
		}
	})
}

// TestCompactionThatLosesATable: Badger removes what a compaction read also where
// it could not write what came of it, and says nothing. It is noticed, or nothing
// is lost.
func TestCompactionThatLosesATable(t *testing.T) {
	for range 20 {
		s, sc, opts := busy(t)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		opts.noCompact = true
		s = mustOpen(t, opts)
		for s.DiskUse().UnmergedL0 == 0 {
			op := sc.next()
			if err := op.run(s, sc.w); err != nil {
				t.Fatal(err)
			}
			sc.apply(op, op.steps())
		}
		dir := filepath.Join(opts.Dir, "db")
		newest := uint64(0)
		for _, info := range s.db.Tables() {
			newest = max(newest, info.ID)
		}
		var blockers []string
		for id := newest + 1; id < newest+50; id++ {
			name := table.NewFilename(id, dir)
			if f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600); err == nil { // it may just have been made
				blockers = append(blockers, name)
				_ = f.Close()
			}
		}
		_ = s.db.Flatten(1) // it knows of no error
		for _, b := range blockers {
			if err := os.Remove(b); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		lost := errors.Is(s.Commit(nil), ErrDamaged)
		_ = s.Close() // it says again what happened
		s, err := Open(opts)
		if err == nil {
			if got, err := dump(s); err != nil {
				t.Error(err)
			} else if err := differ(got, sc.w.expected(s)); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("opened again: %v", err)
		}
		if lost {
			if err == nil {
				t.Error("damage that was noticed is forgotten")
			}
			if c := checkDir(t, opts.Dir); len(c.Findings) == 0 || c.Findings[0].Kind != "compaction" {
				t.Errorf("check finds %+v", c.Findings)
			}
			return
		}
	}
	t.Skip("other compactions were there first each time")
}
