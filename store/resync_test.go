package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// filled is a closed store of one block at height 0.
func filled(t *testing.T) Options {
	t.Helper()
	opts := testOptions(t)
	s := mustOpen(t, opts)
	if err := s.Genesis(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit([]*chain.Effects{oneBlock()}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return opts
}

// TestResync: starting over leaves an empty store, with the highest height where
// it starts, in another retention if one is wanted; a damaged store is no
// obstacle, nor is a directory without one.
func TestResync(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, o *Options){
		"as it is":   func(*testing.T, *Options) {},
		"an archive": func(_ *testing.T, o *Options) { o.Archive, o.K = true, 20 },
		"no record": func(t *testing.T, o *Options) {
			if err := os.Remove(filepath.Join(o.Dir, "db", recordFile)); err != nil {
				t.Fatal(err)
			}
		},
		"all rubbish": func(t *testing.T, o *Options) {
			files, err := filepath.Glob(filepath.Join(o.Dir, "db", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if err := os.WriteFile(file, []byte("rubbish"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		"nothing": func(t *testing.T, o *Options) { o.Dir = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			opts := filled(t)
			change(t, &opts)
			opts.Resync = true
			s := mustOpen(t, opts)
			if st := s.State(); st.Highest != chain.OriginHeight || !st.Head.Point.IsOrigin() || st.UTxOs != 0 || st.Seeded || st.Archive != opts.Archive {
				t.Errorf("%+v", st)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(opts.Dir, discardedDir)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the old store is still there: %v", err)
			}
		})
	}
}

// TestResyncRefuses: nothing is touched of what may not be ours, of another
// network's store, or of one that is in use.
func TestResyncRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, o *Options)
		want   error
	}{
		"another network": {func(_ *testing.T, o *Options) { o.Magic = 1 }, ErrNetwork},
		"a foreign file": {func(t *testing.T, o *Options) {
			if err := os.WriteFile(filepath.Join(o.Dir, "db", "thesis.txt"), []byte("words"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ErrNotOurs},
		"no store": {func(t *testing.T, o *Options) {
			o.Dir = t.TempDir()
			if err := os.Mkdir(filepath.Join(o.Dir, "db"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(o.Dir, "db", "LOCK"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ErrNotOurs},
		"in use": {func(t *testing.T, o *Options) {
			s := mustOpen(t, *o)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}, ErrHeld},
	} {
		t.Run(name, func(t *testing.T) {
			opts := filled(t)
			c.change(t, &opts)
			before := listing(t, opts.Dir)
			opts.Resync = true
			s, err := Open(opts)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if after := listing(t, opts.Dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// TestResyncKilled: at whatever step starting over is killed, the directory then
// opens with all that was in it or empty.
func TestResyncKilled(t *testing.T) {
	seen := map[string]int{}
	for fail := 1; ; fail++ {
		opts := filled(t)
		opts.Resync = true
		count := 0
		opts.hook = func(string) error {
			if count++; count == fail {
				return errKilled
			}
			return nil
		}
		s, err := Open(opts)
		whole := err == nil
		if !whole && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if whole {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		opts.hook, opts.Resync = nil, false
		s = mustOpen(t, opts)
		switch st := s.State(); {
		case st.Head == oneBlock().Link && st.UTxOs == 1 && st.Seeded:
			seen["old"]++
		case st.Head.Point.IsOrigin() && st.UTxOs == 0:
			seen["empty"]++
		default:
			t.Errorf("kill %d: %+v", fail, st)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(opts.Dir, discardedDir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("kill %d: the old store is still there: %v", fail, err)
		}
		if whole {
			break
		}
	}
	if seen["old"] == 0 || seen["empty"] < 3 {
		t.Errorf("%v", seen)
	}
}

// TestResyncDoesNotFollowALink: the database of a directory was put on another
// volume; starting over would leave it there and go on here.
func TestResyncDoesNotFollowALink(t *testing.T) {
	opts := testOptions(t)
	if err := mustOpen(t, opts).Close(); err != nil {
		t.Fatal(err)
	}
	db, elsewhere := filepath.Join(opts.Dir, "db"), filepath.Join(t.TempDir(), "volume")
	if err := errors.Join(os.Rename(db, elsewhere), os.Symlink(elsewhere, db)); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, opts).Close(); err != nil { // it works as it is
		t.Fatal(err)
	}
	opts.Resync = true
	if _, err := Open(opts); !errors.Is(err, ErrNotOurs) {
		t.Fatalf("%v, want %v", err, ErrNotOurs)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "MANIFEST")); err != nil {
		t.Fatal(err)
	}
}
