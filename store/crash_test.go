package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// script makes the same operations from the same seed, so that a model can be
// brought to any moment of what a killed process did.
type script struct {
	w      *world
	rnd    *rand.Rand
	spoilt map[uint64]bool // tables damaged by spoilTables
}

func newScript(seed uint64) *script {
	rnd := rand.New(rand.NewPCG(seed, 0))
	return &script{w: newWorld(chain.Height(2+seed%4), seed%3 == 0, 4), rnd: rnd}
}

func (sc *script) options(dir string) Options {
	return Options{Dir: dir, Magic: 7, K: sc.w.k, Archive: sc.w.archive, Terms: testTerms, memTable: 1 << 14, noSync: true}
}

func (sc *script) draw(_ string, low, high int) int { return low + sc.rnd.IntN(high-low+1) }

// operation is a commit of blocks, or a rollback of some.
type operation struct {
	blocks []*chain.Effects
	undo   int
}

func (sc *script) next() operation {
	depth := len(sc.w.blocks) - 1 - sc.w.floor()
	if depth > 0 && sc.rnd.IntN(3) == 0 {
		return operation{undo: 1 + sc.rnd.IntN(depth)}
	}
	n := 1 + sc.rnd.IntN(5)
	far := 0
	if sc.rnd.IntN(3) == 0 {
		far = sc.rnd.IntN(n + 1)
	}
	return operation{blocks: sc.w.batch(n, func(i int) bool { return i >= far }, sc.draw)}
}

func (op operation) steps() int { return len(op.blocks) + op.undo }

// apply does the first n blocks' worth of an operation to the model.
func (sc *script) apply(op operation, n int) {
	if op.undo > 0 {
		for range n {
			sc.w.undo()
		}
		return
	}
	// Blocks reach the disk in runs; what a run's last block without a record
	// makes of the earlier ones does not depend on where it is cut.
	sc.w.commit(op.blocks[:n])
}

// skip does n operations to the model.
func (sc *script) skip(n int) *script {
	for range n {
		op := sc.next()
		sc.apply(op, op.steps())
	}
	return sc
}

// run does an operation to a store.
func (op operation) run(s *Store, w *world) error {
	if op.undo > 0 {
		return s.Rollback(context.Background(), w.at(len(w.blocks)-1-op.undo).Point)
	}
	if len(op.blocks) == 1 {
		if err := s.Append(op.blocks[0]); err != nil {
			return err
		}
		return s.Tidy()
	}
	return s.Commit(op.blocks)
}

// moment is a script's model after n operations and part of the next.
func moment(seed uint64, n, part int) *world {
	sc := newScript(seed).skip(n)
	if part > 0 {
		op := sc.next()
		sc.apply(op, min(part, op.steps()))
	}
	return sc.w
}

// moments looks for the moment, from the end of operation n to the end of the
// next, that the store stands at: how many blocks of the next are done.
func moments(s *Store, seed uint64, n int) (part int, err error) {
	if err := s.Commit(nil); err != nil { // sweep what the kill left
		return 0, err
	}
	parts := newScript(seed).skip(n).next().steps()
	err = fmt.Errorf("head %s is none of the chain", s.Head().At())
	for part := 0; part <= parts; part++ {
		w := moment(seed, n, part)
		if w.head() != s.Head() {
			continue
		}
		w.commit(nil) // as the sweep above
		if verr := w.verify(s); verr != nil {
			err = verr
			continue
		}
		return part, nil
	}
	return 0, err
}

var errKilled = errors.New("killed here")

// TestKillBetweenTransactions ends the process before every single transaction
// of commits, oversized blocks, sweeps, rollbacks and index builds, on memtables
// so small that nearly every block is oversized. Opened again, the store must
// stand behind a whole block.
func TestKillBetweenTransactions(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			killEverywhere(t, seed, map[string]int{})
		})
	}
}

func killEverywhere(t *testing.T, seed uint64, hit map[string]int) {
	sc := newScript(seed)
	dir := t.TempDir()
	opts := sc.options(filepath.Join(dir, "0"))
	s := mustOpen(t, opts)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		op := sc.next()
		build := n%4 == 3 // slices of the indexes, too, and at last all
		for fail := 1; ; fail++ {
			at := opts
			at.Dir = filepath.Join(dir, fmt.Sprintf("%d-%d", n, fail))
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
			err := op.run(s, sc.w)
			if err == nil && build {
				err = buildSome(s, n)
			}
			if err == nil {
				opts.Dir = at.Dir
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatalf("operation %d, kill %d: %v", n, fail, err)
			}
			if err := s.Commit(nil); !errors.Is(err, ErrBroken) {
				t.Fatalf("a commit after a failed one: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if fail%5 == n%5 {
				if c := checkDir(t, at.Dir); len(c.Findings) > 0 {
					t.Errorf("operation %d, kill %d: check finds %+v", n, fail, c.Findings)
				}
			}
			at.hook = nil
			s = mustOpen(t, at)
			if _, err := moments(s, seed, n); err != nil {
				t.Fatalf("operation %d (%d blocks, %d undone), kill %d: %v", n, len(op.blocks), op.undo, fail, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(at.Dir); err != nil {
				t.Fatal(err)
			}
		}
		sc.apply(op, op.steps())
		if err := sc.w.verify(s); err != nil {
			t.Fatalf("operation %d: %v", n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"blocks", "write", "part", "seal", "apply", "head", "drop", "undo", "sweep", "index"} {
		if hit[step] == 0 {
			t.Errorf("no kill before step %q; the kills were %v", step, hit)
		}
	}
}

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestKillProcess kills a child process that commits and rolls back as fast as
// it can. What it was told is committed must be there, and the store must stand
// behind a whole block.
func TestKillProcess(t *testing.T) {
	if dir := os.Getenv("OUROTAIL_STORE_CHILD"); dir != "" {
		crashChild(t, dir)
		return
	}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	rnd := rand.New(rand.NewPCG(99, 0))
	dir := t.TempDir()
	done := 0
	for round := range rounds {
		acked := killChild(t, dir, done, time.Duration(5+rnd.IntN(150))*time.Millisecond)
		sc := newScript(childSeed)
		s := mustOpen(t, childOptions(sc, dir))
		// The last word may have been on its way: it is at the acknowledged
		// operation's end, in the one behind it, or at its end.
		err := error(nil)
		for _, n := range []int{acked, acked + 1} {
			var part int
			if part, err = moments(s, childSeed, n); err == nil {
				if part > 0 { // finish what it was doing
					op := newScript(childSeed).skip(n).next()
					if err = op.rest(part).run(s, moment(childSeed, n, part)); err != nil {
						t.Fatal(err)
					}
					n++
				}
				done = n
				break
			}
		}
		if err != nil {
			t.Fatalf("round %d, %d operations acknowledged: %v", round, acked, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if done < rounds {
		t.Fatalf("%d operations in %d rounds: the child hardly ran", done, rounds)
	}
	t.Logf("%d operations in %d lives", done, rounds)
}

// rest is what is left of an operation after its first part.
func (op operation) rest(part int) operation {
	if op.undo > 0 {
		return operation{undo: op.undo - part}
	}
	return operation{blocks: op.blocks[part:]}
}

const childSeed = 5

func childOptions(sc *script, dir string) Options {
	o := sc.options(dir)
	o.memTable = 1 << 16
	return o
}

// killChild runs the script from operation done on and returns how many
// operations the child said it had done when it was killed.
func killChild(t *testing.T, dir string, done int, life time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKillProcess$")
	cmd.Env = append(os.Environ(), "OUROTAIL_STORE_CHILD="+dir, "OUROTAIL_STORE_DONE="+strconv.Itoa(done))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		t.Log(lines.Text())
	}
	timer := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "done "))
		if err != nil {
			rest, _ := io.ReadAll(out)
			t.Fatalf("the child says %q %s", lines.Text(), rest)
		}
		done = n
	}
	_ = cmd.Wait() // it was killed
	return done
}

func crashChild(t *testing.T, dir string) {
	done, err := strconv.Atoi(os.Getenv("OUROTAIL_STORE_DONE"))
	if err != nil {
		t.Fatal(err)
	}
	sc := newScript(childSeed)
	s := mustOpen(t, childOptions(sc, dir))
	if !s.State().Seeded {
		if err := s.Genesis(sc.w.genesis); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; ; n++ {
		if n == done {
			fmt.Println("ready")
		}
		op := sc.next()
		if n >= done {
			if err := op.run(s, sc.w); err != nil {
				t.Fatal(err)
			}
			fmt.Println("done", n+1)
		}
		sc.apply(op, op.steps())
	}
}
