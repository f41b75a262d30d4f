package ordeal

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
)

// Steps before which a follower can be killed, by where they are taken.
var (
	commitSteps   = []string{"commit", "write", "committed", "buffered", "published"}
	redoSteps     = []string{"part", "seal", "apply", "head", "drop"}
	rollbackSteps = []string{"rollback", "rollback buffered", "undo", "rolled back", "rollback published"}
)

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// TestCrash kills a follower hundreds of times, far from the tip, near it, and
// inside rollbacks of 2,160 blocks; half of the kills come at random instants, half
// before a named step. After each the data directory is opened again: the set is
// the oracle's at the head, the journal has every block from the floor to it, the
// indexes agree, and what a reader was told is there.
func TestCrash(t *testing.T) {
	kills := map[string]int{"far": 10, "near": 14, "deep": 8}
	switch {
	case *long:
		kills = map[string]int{"far": 150, "near": 250, "deep": 100}
	case testing.Short():
		kills = map[string]int{"far": 6, "near": 6, "deep": 4}
	}
	t.Run("far from the tip", func(t *testing.T) {
		t.Parallel()
		crashFar(t, kills["far"])
	})
	t.Run("near the tip", func(t *testing.T) {
		t.Parallel()
		crashNear(t, kills["near"])
	})
	t.Run("inside a rollback of k blocks", func(t *testing.T) {
		t.Parallel()
		crashDeep(t, kills["deep"])
	})
}

// crashFar kills first syncs, each a little further than the one before, until
// they come to the tip; then another begins, with other settings.
func crashFar(t *testing.T, kills int) {
	r, seed := random(t, 1)
	blocks := 500
	if *long {
		blocks = 3000
	}
	n := generated(t, devnode.Config{}, forge.Options{Seed: seed, K: 60, EpochBlocks: 50}, blocks)
	busy := generated(t, devnode.Config{}, forge.Options{Seed: seed, K: 60, Shape: forge.MainnetLike}, blocks/4)
	steps := join(commitSteps, redoSteps, []string{"index"})
	total := newTally()
	for round := 0; total.kills < kills; round++ {
		at, memTable := n, []int64{0, 1 << 16, 1 << 18}[round%3]
		if round%2 == 1 {
			at = busy // blocks of 32 kB: larger than what a small memtable's transaction holds
		}
		c := newCrasher(t, at, r, steps, total)
		c.life.MemTable, c.life.Archive, c.life.AtTip = memTable, r.IntN(3) == 0, true
		for !c.settled && total.kills < kills {
			c.life.Watch = r.IntN(3) > 0
			c.live(nil)
		}
	}
	total.report(t, steps)
}

// crashNear kills a follower at the tip of a chain that grows and forks.
func crashNear(t *testing.T, kills int) {
	r, seed := random(t, 2)
	const k = 60
	n := generated(t, devnode.Config{}, forge.Options{Seed: seed, K: k, EpochBlocks: 50}, k+20)
	steps := join(commitSteps, redoSteps, rollbackSteps, []string{"sweep"})
	total := newTally()
	c := newCrasher(t, n, r, steps, total)
	c.life.Watch, c.life.MemTable = true, 1<<16
	for total.kills < kills {
		happens := func() error { // a chain's life
			if r.IntN(3) == 0 {
				return n.chain.Extend(1 + r.IntN(5))
			}
			depth := 1 + r.IntN(6)
			if r.IntN(4) == 0 {
				depth = 1 + r.IntN(k)
			}
			return n.chain.Fork(depth, depth+1)
		}
		// Some while nobody follows, some while the child does.
		for range r.IntN(3) {
			c.must(happens())
		}
		c.live(happens)
	}
	total.report(t, steps)
}

// crashDeep kills a follower while it undoes k blocks and applies as many others; k
// is mainnet's 2160 in the long form.
func crashDeep(t *testing.T, kills int) {
	r, seed := random(t, 3)
	k, memTable := 432, int64(1<<18) // what a transaction holds is a part of it
	if *long {
		k, memTable = 2160, 1<<20
	}
	n := generated(t, devnode.Config{}, forge.Options{Seed: seed, K: k, EpochBlocks: 1000}, k+30)
	steps := join([]string{"undo", "undo"}, rollbackSteps, []string{"undo", "undo"}, commitSteps)
	total := newTally()
	c := newCrasher(t, n, r, steps, total)
	c.life.Watch, c.life.MemTable = true, memTable
	c.live(nil) // whole: the first sync is not what this is about
	// Some steps come once in a fork: it goes on until each has had its turn.
	more := func() bool {
		return total.kills < kills || *long && total.kills < 2*kills && len(total.lacks(steps)) > 0
	}
	for fork := 0; more(); fork++ {
		c.must(n.chain.Fork(k, k+1))
		for life := 0; ; life++ {
			c.live(nil)
			if c.head == n.chain.Tip().Point || !more() {
				break
			}
		}
	}
	total.report(t, steps)
	if total.inside == 0 && *long {
		t.Error("no kill left a rollback half done")
	}
}

// tally is what was done to the followers of one regime.
type tally struct {
	kills, whole, inside int
	random               int
	turn                 int            // whose step it is
	hit                  map[string]int // kills before a step
	began                time.Time
}

func newTally() *tally { return &tally{hit: map[string]int{}, began: time.Now()} }

func (a *tally) report(t *testing.T, steps []string) {
	var parts []string
	for _, name := range sortedNames(a.hit) {
		parts = append(parts, fmt.Sprintf("%s %d", name, a.hit[name]))
	}
	t.Logf("%d kills in %v: %d at random instants, %d inside a rollback, before steps: %s; %d lives came to their end",
		a.kills, time.Since(a.began).Round(100*time.Millisecond), a.random, a.inside, strings.Join(parts, ", "), a.whole)
	if !*long {
		return
	}
	for _, name := range a.lacks(steps) {
		t.Errorf("no kill came before step %q", name)
	}
}

// lacks returns the steps before which no kill came.
func (a *tally) lacks(steps []string) (names []string) {
	for _, name := range steps {
		if a.hit[name] == 0 && name != "sweep" { // what a commit has no room for: seldom
			names = append(names, name)
		}
	}
	return names
}

func newCrasher(t *testing.T, n *node, r *rand.Rand, steps []string, total *tally) *crasher {
	return &crasher{t: t, n: n, r: r, steps: steps, total: total, seen: map[string]int{}, longest: 100 * time.Millisecond,
		life:  life{Socket: n.Socket(), Config: n.config, Dir: filepath.Join(dataDir(t, false), "data")},
		floor: chain.Origin, head: chain.Point{}}
}
