package store

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given { // each check of the model is hundreds of commits and reads of every key
		checks := "20"
		if testing.Short() {
			checks = "10"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/golang/glog.(*fileSink).flushDaemon"),
		// Badger's allocator pool and cache clean up in goroutines that end by
		// themselves, within a second.
		goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"))
}

func testOptions(t testing.TB) Options {
	return Options{Dir: t.TempDir(), Magic: 2, K: 10, Terms: testTerms, memTable: 1 << 16, noSync: true}
}

// oneBlock is a first block that makes one output.
func oneBlock() *chain.Effects {
	id := chain.TxID{9}
	return &chain.Effects{
		Link:    chain.Link{Point: chain.Point{Slot: 5, Hash: chain.Hash{1}}, Era: chain.Byron},
		Journal: true, Raw: []byte("raw"),
		Txs:     []chain.TxEffects{{ID: id, Valid: true, Created: 1}},
		Created: []chain.Output{{Ref: chain.TxIn{ID: id}, Era: chain.Byron, Slot: 5, Lovelace: 77, Raw: []byte("out")}},
	}
}

func TestOpenRefuses(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	if err := s.Genesis(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   error
		says   []string
	}{
		"another network":      {func(o *Options) { o.Magic = 764824073 }, ErrNetwork, []string{"2", "764824073"}},
		"another k":            {func(o *Options) { o.K = 2160 }, ErrSettings, []string{"10", "2160"}},
		"no k":                 {func(o *Options) { o.K = 0 }, ErrSettings, nil},
		"an archive":           {func(o *Options) { o.Archive = true }, ErrSettings, []string{"archive"}},
		"none there":           {func(o *Options) { o.Dir, o.Existing = filepath.Join(o.Dir, "other"), true }, ErrNoStore, []string{"other"}},
		"a file for directory": {func(o *Options) { o.Dir = os.Args[0] }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := opts
			c.change(&o)
			s, err := Open(o)
			if err == nil {
				_ = s.Close()
				t.Fatal("it opened")
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
	t.Run("as it is", func(t *testing.T) {
		s := mustOpen(t, Options{Dir: opts.Dir, Existing: true, memTable: opts.memTable})
		defer s.Close()
		if st := s.State(); st.Magic != 2 || st.K != 10 || st.Archive || !st.Seeded || st.Made == 0 {
			t.Fatalf("%+v", st)
		}
	})
}

// put writes a key behind the store's back.
func (s *Store) putKey(t *testing.T, key, value []byte) {
	t.Helper()
	if err := s.db.Update(func(txn *badger.Txn) error { return txn.Set(key, value) }); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesNewerFormat(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	m := appendMeta(nil, meta{version: formatVersion + 1})
	s.putKey(t, metaKey, append(m[:1], "whatever a later version may say"...))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(opts); !errors.Is(err, ErrFormat) {
		t.Fatalf("%v, want %v", err, ErrFormat)
	}
}

// TestOpenChecksHeadAgainstJournal damages a store of three blocks in the ways
// that a head and a journal can contradict each other.
func TestOpenChecksHeadAgainstJournal(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, s *Store){
		"record gone": func(t *testing.T, s *Store) {
			s.dropKey(t, appendPositionKey(nil, keyRecord, chain.Position{Height: 1}))
		},
		"newest record gone": func(t *testing.T, s *Store) {
			s.dropKey(t, appendPositionKey(nil, keyRecord, chain.Position{Height: 2}))
		},
		"record above the head": func(t *testing.T, s *Store) {
			l := s.Head()
			l.Parent, l.Point.Hash, l.Height = l.Point.Hash, chain.Hash{77}, 3
			s.putKey(t, appendPositionKey(nil, keyRecord, l.Position()), appendRecord(nil, &chain.Effects{Link: l}, segment.Place{}, 0, 0))
		},
		"record of another chain": func(t *testing.T, s *Store) {
			l := s.Head()
			l.Parent = chain.Hash{55}
			s.putKey(t, appendPositionKey(nil, keyRecord, l.Position()), appendRecord(nil, &chain.Effects{Link: l}, segment.Place{}, 0, 0))
		},
		"head is rubbish":   func(t *testing.T, s *Store) { s.putKey(t, headKey, []byte("rubbish")) },
		"no head":           func(t *testing.T, s *Store) { s.dropKey(t, headKey) },
		"orphan is rubbish": func(t *testing.T, s *Store) { s.putKey(t, appendOrphanKey(nil, chain.Hash{3}), []byte{1}) },
		"seal without parts": func(t *testing.T, s *Store) {
			s.putKey(t, appendRedoKey(nil, redoSeal), appendSeal(nil, 3, &s.head))
		},
		"description is rubbish": func(t *testing.T, s *Store) { s.putKey(t, metaKey, []byte{formatVersion, 0xff}) },
	} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions(t)
			s := mustOpen(t, opts)
			first := oneBlock()
			second := &chain.Effects{Link: chain.Link{Point: chain.Point{Slot: 9, Hash: chain.Hash{2}}, Parent: chain.Hash{1}, Height: 1}, Journal: true}
			third := &chain.Effects{Link: chain.Link{Point: chain.Point{Slot: 11, Hash: chain.Hash{3}}, Parent: chain.Hash{2}, Height: 2}, Journal: true}
			if err := s.Commit([]*chain.Effects{first, second, third}); err != nil {
				t.Fatal(err)
			}
			damage(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(opts); !errors.Is(err, ErrDamaged) {
				if err == nil {
					_ = s.Close()
				}
				t.Fatalf("%v, want %v", err, ErrDamaged)
			}
		})
	}
}

func (s *Store) dropKey(t *testing.T, key []byte) {
	t.Helper()
	if err := s.db.Update(func(txn *badger.Txn) error { return txn.Delete(key) }); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefusesDamagedFiles: what Badger finds wrong, also by panicking, is an
// error that names the repair.
func TestOpenRefusesDamagedFiles(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	w := newWorld(10, false, 0)
	rnd := &script{w: w, rnd: newScript(1).rnd}
	for range 20 {
		blocks := w.batch(3, func(int) bool { return true }, rnd.draw)
		if err := s.Commit(blocks); err != nil {
			t.Fatal(err)
		}
		w.commit(blocks)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.sst", "MANIFEST"} {
		t.Run(pattern, func(t *testing.T) {
			o := opts
			o.Dir = t.TempDir()
			copyDir(t, opts.Dir, o.Dir)
			files, err := filepath.Glob(filepath.Join(o.Dir, "db", pattern))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for i := range b {
					b[i] ^= 0x55
				}
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(o)
			if err == nil {
				_ = s.Close()
				t.Fatal("it opened")
			}
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("%v, want %v", err, ErrDamaged)
			}
		})
	}
}

func TestHeldDirectory(t *testing.T) {
	if dir := os.Getenv("OUROTAIL_STORE_HOLD"); dir != "" {
		s := mustOpen(t, Options{Dir: dir, Magic: 2, K: 10, memTable: 1 << 16})
		defer s.Close()
		os.Stdout.WriteString("held\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent closes it
		return
	}
	opts := testOptions(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHeldDirectory$")
	cmd.Env = append(os.Environ(), "OUROTAIL_STORE_HOLD="+opts.Dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(opts)
	var held *HeldError
	if !errors.As(err, &held) || !errors.Is(err, ErrHeld) {
		t.Fatalf("%v, want a HeldError", err)
	}
	if held.PID != cmd.Process.Pid || !strings.Contains(held.Command, "TestHeldDirectory") || held.Dir != opts.Dir {
		t.Fatalf("%+v, want process %d", held, cmd.Process.Pid)
	}
	// A kill leaves the lock's file behind; it holds nobody up.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = cmd.Wait()
	if err := mustOpen(t, opts).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestClosed(t *testing.T) {
	s := mustOpen(t, testOptions(t))
	if err := s.Commit([]*chain.Effects{oneBlock()}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	v := s.Snapshot()
	defer v.Close()
	o := chain.Output{Ref: oneBlock().Created[0].Ref}
	for name, call := range map[string]func() error{
		"commit":   func() error { return s.Commit(nil) },
		"genesis":  func() error { return s.Genesis(nil) },
		"rollback": func() error { return s.Rollback(context.Background(), chain.Point{}) },
		"build":    func() error { return s.BuildIndexes(context.Background(), nil) },
		"outputs":  func() error { _, err := s.Outputs([]*chain.Output{&o}); return err },
		"live":     func() error { _, err := s.Live([]chain.TxIn{o.Ref}); return err },
		"links":    func() error { _, _, err := s.Links(1); return err },
		"link":     func() error { _, _, err := s.LinkAt(chain.Position{}); return err },
		"find":     func() error { _, _, err := s.Find(oneBlock().Point); return err },
		"effects":  func() error { return s.Effects(chain.Position{}, new(chain.Effects)) },
		"txs":      func() error { _, err := v.Txs(chain.Position{}); return err },
		"get":      func() error { _, _, err := v.Get(o.Ref); return err },
		"spent":    func() error { _, _, _, err := v.Spent(o.Ref); return err },
		"utxos":    func() error { return v.UTxOs(context.Background(), chain.Source{}, nil) },
	} {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, ErrClosed)
		}
	}
	if s.Head().Point != oneBlock().Point {
		t.Errorf("the head is %v", s.Head())
	}
}

// TestOpenAfterKillBetweenMakingAFileAndSizingIt: Badger refuses to open log
// files without a byte; nothing can be in them.
func TestOpenAfterKillBetweenMakingAFileAndSizingIt(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	if err := s.Genesis(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit([]*chain.Effects{oneBlock()}); err != nil {
		t.Fatal(err)
	}
	want := s.State()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000077.vlog", "00077.mem"} {
		if err := os.WriteFile(filepath.Join(opts.Dir, "db", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = mustOpen(t, opts)
	if got := s.State(); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
