package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// damageable makes a store of some tables, and copies it as a kill leaves it, in
// the middle of its life and at the end of it, and as a clean end does.
func damageable(t *testing.T, seed uint64) (killed, closed string, sc *script, ops int) {
	t.Helper()
	sc = newScript(seed)
	opts := childOptions(sc, filepath.Join(t.TempDir(), "live"))
	opts.memTable = 1 << 14
	opts.noSync = false // its own record is kept at each write-ahead file
	s := mustOpen(t, opts)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	for ops = range 40 {
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			t.Fatal(err)
		}
		sc.apply(op, op.steps())
	}
	ops++
	killed = filepath.Join(t.TempDir(), "killed")
	copyLive(t, opts.Dir, killed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return killed, opts.Dir, sc, ops
}

// copyLive copies a store that is open and not written to, as a kill would leave
// it: Badger may still be moving files about, and then the copy is made again.
func copyLive(t *testing.T, from, to string) {
	t.Helper()
	state := func() string {
		b, err := os.ReadFile(filepath.Join(from, "db", "MANIFEST"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + listing(t, from)
	}
	for {
		before := state()
		err := os.CopyFS(to, os.DirFS(from))
		if err == nil && state() == before {
			return
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
}

func damageOptions(sc *script, dir string) Options {
	o := childOptions(sc, dir)
	o.memTable = 1 << 14
	return o
}

// openDamaged opens a store: ErrDamaged is well, and so is a store that holds
// what it must, at a moment of its life if it was killed.
func openDamaged(t *testing.T, what string, seed uint64, o Options, ops int, killed bool) (refused bool) {
	t.Helper()
	s, err := Open(o)
	if errors.Is(err, ErrDamaged) {
		return true
	}
	if err != nil {
		t.Errorf("%s: %v, want %v", what, err, ErrDamaged)
		return true
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", what, err)
		}
	}()
	for n := ops; n >= 0; n-- {
		if _, err = moments(s, seed, n); err == nil {
			return false
		}
		if !killed {
			break
		}
	}
	t.Errorf("%s: it opened at %s: %v", what, s.Head().At(), err)
	return false
}

// TestAnyDamage flips bits in, cuts and removes every kind of file of a store. It
// is refused, or opens with all that it held; after a kill a damaged write-ahead
// file may take the newest blocks with it.
func TestAnyDamage(t *testing.T) {
	const seed = 5
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	killed, closed, sc, ops := damageable(t, seed)
	rnd := rand.New(rand.NewPCG(seed, 77))
	refused, opened := map[string]int{}, map[string]int{}
	for from, dead := range map[string]bool{killed: true, closed: false} {
		files, err := filepath.Glob(filepath.Join(from, "db", "*"))
		if err != nil {
			t.Fatal(err)
		}
		tables := 0
		for _, file := range files {
			name := filepath.Base(file)
			if filepath.Ext(name) == ".sst" {
				if tables++; tables > 1+rounds {
					continue
				}
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() == 0 {
				continue
			}
			for how := range 3 * rounds {
				o := damageOptions(sc, filepath.Join(t.TempDir(), "damaged"))
				copyDir(t, from, o.Dir)
				path := filepath.Join(o.Dir, "db", name)
				what := spoil(t, path, rnd, how%3)
				if openDamaged(t, fmt.Sprintf("killed %v, %s: %s", dead, name, what), seed, o, ops, dead) {
					refused[filepath.Ext(name)+what[:4]]++
				} else {
					opened[filepath.Ext(name)+what[:4]]++
				}
				if err := os.RemoveAll(o.Dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("refused %v, opened %v", refused, opened)
	for _, kind := range []string{".sstflip", ".sstcut ", ".sstgone"} {
		if refused[kind] == 0 || opened[kind] != 0 {
			t.Errorf("%s: %d refused, %d opened", kind, refused[kind], opened[kind])
		}
	}
}

func spoil(t *testing.T, path string, rnd *rand.Rand, how int) string {
	t.Helper()
	if how == 2 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return "gone"
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(b)
	for used > 1 && b[used-1] == 0 {
		used--
	}
	at := rnd.IntN(used)
	what := fmt.Sprintf("flip in byte %d of %d", at, used)
	if how == 0 {
		b[at] ^= 1 << rnd.IntN(8)
	} else {
		b, what = b[:at], fmt.Sprintf("cut at %d of %d", at, used)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return what
}

// TestManifestCutAtAChange: a manifest that lost its last changes is a valid one
// of an older time, whose newer tables Badger would remove. It is refused unless
// nothing is lost by it.
func TestManifestCutAtAChange(t *testing.T) {
	const seed = 5
	killed, closed, sc, ops := damageable(t, seed)
	refused, cuts := 0, 0
	for from, dead := range map[string]bool{killed: true, closed: false} {
		b, err := os.ReadFile(filepath.Join(from, "db", "MANIFEST"))
		if err != nil {
			t.Fatal(err)
		}
		for at := 8; at < len(b); at += 8 + int(binary.BigEndian.Uint32(b[at:])) {
			o := damageOptions(sc, filepath.Join(t.TempDir(), "cut"))
			for _, record := range []bool{true, false} { // our own record must not be what it hangs on
				copyDir(t, from, o.Dir)
				if !record {
					if err := os.Remove(filepath.Join(o.Dir, "db", recordFile)); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(o.Dir, "db", "MANIFEST"), b[:at], 0o600); err != nil {
					t.Fatal(err)
				}
				cuts++
				// Not even a killed store may be older now: its write-ahead files are whole.
				if openDamaged(t, fmt.Sprintf("killed %v, record %v, cut at %d of %d", dead, record, at, len(b)), seed, o, ops, false) {
					refused++
				}
				if err := os.RemoveAll(o.Dir); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("%d of %d refused", refused, cuts)
	if refused < cuts/2 {
		t.Errorf("only %d of %d cuts were refused", refused, cuts)
	}
}

// TestNewestFilesGone: losing what was stored last, with all that names it, shows
// against the store's own record.
func TestNewestFilesGone(t *testing.T) {
	const seed = 5
	killed, closed, sc, _ := damageable(t, seed)
	remove := func(dir, pattern string, n int) {
		files, err := filepath.Glob(filepath.Join(dir, "db", pattern))
		if err != nil || len(files) < n {
			t.Fatal(files, err)
		}
		for _, file := range files[len(files)-n:] {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		from  string
		spoil func(dir string)
	}{
		"the newest write-ahead file": {killed, func(dir string) { remove(dir, "*.mem", 1) }},
		"all write-ahead files": {killed, func(dir string) {
			files, _ := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
			remove(dir, "*.mem", len(files))
		}},
		"manifest": {closed, func(dir string) { remove(dir, "MANIFEST", 1) }},
		"an older copy of the manifest, and the tables it does not name": {closed, func(dir string) {
			path := filepath.Join(dir, "db", "MANIFEST")
			if err := os.Truncate(path, 8); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
			remove(dir, "*.sst", len(files))
		}},
		"everything but the record": {closed, func(dir string) {
			for _, pattern := range []string{"MANIFEST", "*.sst", "*.mem", "*.vlog"} {
				files, _ := filepath.Glob(filepath.Join(dir, "db", pattern))
				remove(dir, pattern, len(files))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := damageOptions(sc, filepath.Join(t.TempDir(), "damaged"))
			copyDir(t, c.from, o.Dir)
			c.spoil(o.Dir)
			before := listing(t, o.Dir)
			for _, existing := range []bool{false, true} {
				o.Existing = existing
				if s, err := Open(o); !errors.Is(err, ErrDamaged) {
					if err == nil {
						_ = s.Close()
					}
					t.Fatalf("existing %v: %v, want %v", existing, err, ErrDamaged)
				}
			}
			if after := listing(t, o.Dir); after != before {
				t.Errorf("refusing it changed the files from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// listing is names and sizes of a store's files, the lock's apart.
func listing(t *testing.T, dir string) (out string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "db", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // Badger is at work
		}
		if err != nil {
			t.Fatal(err)
		}
		out += filepath.Base(file) + " " + strconv.FormatInt(info.Size(), 10) + "\n"
	}
	return out
}

// FuzzWAL: no bytes make the reader of write-ahead files panic, claim more than
// there is, or ask for memory that the file could not fill.
func FuzzWAL(f *testing.F) {
	entry := []byte{walTxn, 0, 9, 1, 0}
	entry = append(entry, 'H', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc, 'v')
	entry = binary.BigEndian.AppendUint32(entry, crc32.Checksum(entry, castagnoli))
	end := []byte{walEnd, 0, 9, 1, 0}
	end = append(end, 'E', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc, '3')
	end = binary.BigEndian.AppendUint32(end, crc32.Checksum(end, castagnoli))
	f.Add(slices.Concat(make([]byte, walHeader), entry, end, make([]byte, 30)))
	f.Add(slices.Concat(make([]byte, walHeader), entry))
	f.Add([]byte{0, 1})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "00001.mem")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		tail, err := readWAL(path)
		if err != nil {
			t.Fatal(err)
		}
		if tail.end > int64(len(b)) || tail.oldest > tail.newest {
			t.Fatalf("%+v of %d bytes", tail, len(b))
		}
		if bytes.HasPrefix(b, slices.Concat(make([]byte, walHeader), entry, end)) && tail.newest < 3 {
			t.Fatalf("%+v: a whole transaction was not read", tail)
		}
	})
}

// TestSmallerMemoryAfterAKill: what a process with large memtables left in its
// write-ahead files does not fit those of one with small ones, where Badger would
// end the process.
func TestSmallerMemoryAfterAKill(t *testing.T) {
	sc := newScript(4)
	opts := childOptions(sc, filepath.Join(t.TempDir(), "live"))
	opts.memTable = 1 << 20
	s := mustOpen(t, opts)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	if err := s.BuildIndexes(t.Context(), nil); err != nil { // many small entries
		t.Fatal(err)
	}
	const ops = 40
	for range ops {
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			t.Fatal(err)
		}
		sc.apply(op, op.steps())
	}
	killed := filepath.Join(t.TempDir(), "killed")
	copyLive(t, opts.Dir, killed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if c := checkDir(t, killed); len(c.Findings) > 0 || !c.Read {
		t.Errorf("check finds %+v", c.Findings)
	}
	opts.Dir, opts.memTable = killed, 1<<14
	s = mustOpen(t, opts)
	if _, err := moments(s, 4, ops); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
