package store

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestTornWriteAheadFile: a power cut can leave the newest write-ahead file
// short, or with zeros or rubbish where its end was. The store opens behind a
// whole block of the chain, and never claims one whose writes are not all there.
func TestTornWriteAheadFile(t *testing.T) {
	const seed = 9
	rounds := 12
	if testing.Short() {
		rounds = 8
	}
	sc := newScript(seed)
	opts := childOptions(sc, filepath.Join(t.TempDir(), "live"))
	s := mustOpen(t, opts)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	const ops = 30
	for range ops {
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			t.Fatal(err)
		}
		sc.apply(op, op.steps())
	}
	// What a kill leaves: the files as they are now.
	dead := filepath.Join(t.TempDir(), "dead")
	copyLive(t, opts.Dir, dead)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	whole := 0
	for round := range rounds {
		o := opts
		o.Dir = filepath.Join(t.TempDir(), strconv.Itoa(round))
		copyDir(t, dead, o.Dir)
		files, err := filepath.Glob(filepath.Join(o.Dir, "db", "*.mem"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		tear(t, files[len(files)-1], rnd, round%3)
		s, err := Open(o)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		n := ops
		for ; n >= 0; n-- {
			if _, err = moments(s, seed, n); err == nil {
				break
			}
		}
		if n < 0 {
			t.Fatalf("round %d: %v", round, err)
		}
		if n == ops {
			whole++
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if whole == rounds {
		t.Error("nothing was ever torn off")
	}
}

// tear damages the end of a file from a random place among its used bytes on.
func tear(t *testing.T, file string, rnd *rand.Rand, how int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := len(b)
	for used > 0 && b[used-1] == 0 {
		used--
	}
	const header = 20
	at := header + rnd.IntN(used-header)
	switch how {
	case 0:
		b = b[:at]
	case 1:
		clear(b[at:])
	case 2:
		for i := at; i < used; i++ {
			b[i] = byte(rnd.Uint32())
		}
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
