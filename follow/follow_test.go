package follow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/resolve"
)

// world is a follower between a fake node and a fake store.
type world struct {
	forge *forge.Forge
	node  *fakeNode
	store *fakeStore
	hub   *fakeHub
	k     chain.Height
	avvm  []chain.TxIn
	cfg   func(*Config)
}

// tester is what a *testing.T and a *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newWorld(t tester, k int, opts forge.Options) *world {
	t.Helper()
	opts.K = k
	f, err := forge.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "follow")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := f.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	g, err := ledger.LoadGenesis(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{forge: f, node: &fakeNode{}, store: newFakeStore(chain.Height(k), g.Outputs), hub: &fakeHub{subs: 1}, k: chain.Height(k)}
	for _, o := range g.Outputs[:g.AVVM] {
		w.avvm = append(w.avvm, o.Ref)
	}
	return w
}

func (w *world) extend(t tester, n int) {
	t.Helper()
	for range n {
		b, err := w.forge.Next()
		if err != nil {
			t.Fatal(err)
		}
		w.node.blocks = append(w.node.blocks, b)
	}
}

// fork replaces the newest n blocks, boundary blocks counted, by m others.
func (w *world) fork(t tester, n, m int) {
	t.Helper()
	if err := w.forge.Rewind(n); err != nil {
		t.Fatal(err)
	}
	w.node.blocks = slices.Clone(w.node.blocks[:len(w.node.blocks)-n])
	w.extend(t, m)
}

func (w *world) follower() *Follower {
	cfg := Config{Dial: w.node.dial, Store: w.store, Hub: w.hub, K: w.k, ByronEpochSlots: w.forge.ByronEpochSlots(), AVVM: w.avvm,
		Retry: func(err error, _ int) (time.Duration, bool) { return 0, errors.Is(err, errCut) }}
	if w.cfg != nil {
		w.cfg(&cfg)
	}
	return New(cfg)
}

var atTip = Stop{Until: chain.OriginHeight, AtTip: true}

// catchUp runs a new follower to the node's tip and checks what it left.
func (w *world) catchUp(t tester) {
	t.Helper()
	if err := w.follower().Run(context.Background(), atTip); err != nil {
		t.Fatal(err)
	}
	w.check(t)
	if w.store.Head().At() != w.node.Tip() {
		t.Fatalf("at %v, the node's tip is %v", w.store.Head().At(), w.node.Tip())
	}
}

func (w *world) check(t tester) {
	t.Helper()
	if err := w.store.agrees(w.forge.Oracle()); err != nil {
		t.Fatal(err)
	}
	var mains []chain.At
	for _, b := range w.store.blocks {
		if !b.Boundary {
			mains = append(mains, b.At())
		}
	}
	if !slices.Equal(w.hub.shown, mains) {
		t.Fatalf("the hub was shown %v, the store holds %v", w.hub.shown, mains)
	}
}

// TestFollowModel: chains that grow and fork, connections that break anywhere,
// new followers at any time: the store is always the oracle's, the hub always the
// store's.
func TestFollowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 12, forge.Options{Seed: rapid.Uint64Range(0, 50).Draw(t, "seed"), EpochBlocks: 4})
		w.cfg = func(c *Config) { c.MaxBlocks = rapid.IntRange(1, 9).Draw(t, "batch") }
		w.extend(t, rapid.IntRange(1, 60).Draw(t, "first"))
		t.Repeat(map[string]func(*rapid.T){
			"extend": func(t *rapid.T) { w.extend(t, rapid.IntRange(1, 12).Draw(t, "n")) },
			"fork": func(t *rapid.T) {
				// No deeper than k below the highest block the follower had.
				least := max(w.store.highest, w.node.Tip().Height) - w.k
				n := 0
				for n < len(w.node.blocks) && w.node.blocks[len(w.node.blocks)-1-n].Height > max(least, w.store.floor.Height) {
					n++
				}
				n = rapid.IntRange(0, n).Draw(t, "depth")
				tip := w.node.Tip().Height
				for w.fork(t, n, 1); w.node.Tip().Height <= tip; {
					w.extend(t, 1)
				}
			},
			"follow": func(t *rapid.T) {
				w.node.run, w.node.cut = rapid.IntRange(1, 20).Draw(t, "run"), rapid.IntRange(0, 1).Draw(t, "cuts")*rapid.IntRange(3, 30).Draw(t, "cut")
				if err := w.follower().Run(context.Background(), atTip); err != nil {
					t.Fatal(err)
				}
				if w.store.Head().At() != w.node.Tip() {
					t.Fatalf("at %v, the node's tip is %v", w.store.Head().At(), w.node.Tip())
				}
			},
			"": func(t *rapid.T) { w.check(t) },
		})
	})
}

// script is a connection that says what it is told to, each inner list in one
// run, and then waits.
func (w *world) script(runs ...[]chain.Message) {
	w.cfg = func(c *Config) {
		used := false
		dial := c.Dial
		c.Dial = func(ctx context.Context) (Conn, error) {
			conn, err := dial(ctx)
			if !used {
				used = true
				conn.(*fakeConn).script = runs
			}
			return conn, err
		}
	}
}

func (w *world) fwd(b forge.Block) chain.Message { return chain.Message{Raw: b.Raw, Tip: w.node.Tip()} }
func (w *world) back(p chain.Point) chain.Message {
	return chain.Message{Kind: chain.RollBackward, Point: p, Tip: w.node.Tip()}
}

var await = chain.Message{Kind: chain.AwaitReply}

// TestRollBackwardWhereverItLands: at the head, in the open batch, in the middle
// of a committed batch, below all of these.
func TestRollBackwardWhereverItLands(t *testing.T) {
	t.Run("at the head, a thousand times: no event, no work", func(t *testing.T) {
		w := newWorld(t, 20, forge.Options{EpochBlocks: 5})
		w.extend(t, 30)
		w.catchUp(t)
		events, commits := len(w.hub.events), len(w.store.commits)
		head := w.store.Head().Point
		for range 1000 {
			w.script([]chain.Message{w.back(head), w.back(head), await})
			w.catchUp(t)
		}
		if len(w.hub.events) != events || len(w.store.commits) != commits {
			t.Errorf("%d events, %d commits", len(w.hub.events)-events, len(w.store.commits)-commits)
		}
	})
	t.Run("in the open batch: it is cut, nothing is published", func(t *testing.T) {
		w := newWorld(t, 20, forge.Options{EpochBlocks: 5})
		w.extend(t, 40)
		old := slices.Clone(w.node.blocks)
		w.fork(t, 4, 6)
		b := w.node.blocks
		run := []chain.Message{w.back(chain.Point{})}
		for _, x := range old {
			run = append(run, w.fwd(x))
		}
		run = append(run, w.back(b[len(b)-7].Point))
		for _, x := range b[len(b)-6:] {
			run = append(run, w.fwd(x))
		}
		w.script(append(run, await))
		w.catchUp(t)
		for _, e := range w.hub.events {
			if strings.HasPrefix(e, "!") {
				t.Errorf("a rollback was published: %v", w.hub.events)
			}
		}
	})
	t.Run("in the middle of a committed batch", func(t *testing.T) {
		w := newWorld(t, 20, forge.Options{EpochBlocks: 5})
		w.node.run = 100
		w.extend(t, 30)
		w.catchUp(t)
		if !slices.ContainsFunc(w.store.commits, func(n int) bool { return n > 10 }) {
			t.Fatalf("commits of %v blocks: the test does not test what it says", w.store.commits)
		}
		w.fork(t, 7, 9)
		w.catchUp(t)
		if !slices.ContainsFunc(w.hub.events, func(e string) bool { return strings.HasPrefix(e, "!") }) {
			t.Error("no rollback was published")
		}
	})
	t.Run("below the floor: fatal, named, nothing touched", func(t *testing.T) {
		w := newWorld(t, 10, forge.Options{EpochBlocks: 50})
		w.extend(t, 40)
		w.catchUp(t)
		before := w.store.Head()
		w.fork(t, 25, 30)
		err := w.follower().Run(t.Context(), atTip)
		var fatal *FatalError
		if !errors.Is(err, ErrDiverged) || !errors.As(err, &fatal) || fatal.Hint == "" {
			t.Fatalf("got %v", err)
		}
		if w.store.Head() != before {
			t.Errorf("the store moved from %v to %v", before.At(), w.store.Head().At())
		}
		if !errors.Is(w.hub.failed, ErrDiverged) {
			t.Errorf("subscriptions were not failed: %v", w.hub.failed)
		}
	})
	t.Run("two in a row, deeper each time", func(t *testing.T) {
		w := newWorld(t, 30, forge.Options{EpochBlocks: 6})
		w.extend(t, 40)
		w.catchUp(t)
		w.fork(t, 5, 6)
		w.catchUp(t)
		w.fork(t, 12, 14)
		w.catchUp(t)
	})
	t.Run("to origin, while that is within k", func(t *testing.T) {
		w := newWorld(t, 30, forge.Options{EpochBlocks: 8})
		w.extend(t, 12)
		w.catchUp(t)
		w.fork(t, 12, 15)
		w.catchUp(t)
	})
}

// TestOriginNobodyAskedFor: a malformed point reads as origin in some libraries;
// it must not roll anything back.
func TestOriginNobodyAskedFor(t *testing.T) {
	w := newWorld(t, 10, forge.Options{EpochBlocks: 50})
	w.extend(t, 40)
	w.catchUp(t)
	before := w.store.Head()
	w.extend(t, 1)
	w.script([]chain.Message{w.back(before.Point), w.back(chain.Point{})})
	err := w.follower().Run(t.Context(), atTip)
	if !errors.Is(err, ErrNonsense) || w.store.Head() != before {
		t.Errorf("got %v at %v", err, w.store.Head().At())
	}
}

// TestNodeBehindUsIsWaitedFor: a node that is still synchronising is a part of
// our chain; nothing is rolled back, however far behind it is.
func TestNodeBehindUsIsWaitedFor(t *testing.T) {
	for name, left := range map[string]int{"within our points": 35, "below all points": 3, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10, forge.Options{EpochBlocks: 7})
			w.extend(t, 120)
			w.catchUp(t)
			before := w.store.Head()
			whole := w.node.blocks // of which the last 100 heights or so are among our points
			w.node.blocks = whole[:left]
			waits := 0
			w.cfg = func(c *Config) {
				c.MaxBlocks = 20
				c.Retry = func(err error, _ int) (time.Duration, bool) {
					if !errors.Is(err, ErrBehind) {
						t.Errorf("got %v", err)
					}
					waits++
					w.node.blocks = whole[:min(len(whole), len(w.node.blocks)+40)]
					return 0, true
				}
			}
			w.catchUp(t)
			if waits == 0 || w.store.Head() != before {
				t.Errorf("%d waits, at %v", waits, w.store.Head().At())
			}
		})
	}
}

// TestChainThatDoesNotLink: skipped, repeated and reordered blocks, and a parent
// that is not our head, end the session; the next one gets the right chain.
func TestChainThatDoesNotLink(t *testing.T) {
	for name, order := range map[string][]int{
		"skipped":   {0, 1, 3},
		"repeated":  {0, 1, 1},
		"reordered": {0, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
			w.extend(t, 10)
			run := []chain.Message{w.back(chain.Point{})}
			for _, i := range order {
				run = append(run, w.fwd(w.node.blocks[i]))
			}
			w.script(run)
			script := w.cfg
			nonsense := 0
			w.cfg = func(c *Config) {
				script(c)
				c.Retry = func(err error, _ int) (time.Duration, bool) {
					if errors.Is(err, ErrNonsense) {
						nonsense++
					}
					return 0, nonsense == 1
				}
			}
			w.catchUp(t)
			if nonsense != 1 {
				t.Errorf("%d sessions ended for nonsense", nonsense)
			}
		})
	}
}

// TestUndecodableBlockIsNamedAndKept: what came before it is committed, its bytes
// are kept, and we do not go on.
func TestUndecodableBlockIsNamedAndKept(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 10)
	var saved []byte
	w.node.run = 4
	seen := 0
	w.node.change = func(m *chain.Message) {
		if m.Kind == chain.RollForward {
			if seen++; seen == 7 {
				m.Raw = m.Raw[:len(m.Raw)-3]
			}
		}
	}
	w.cfg = func(c *Config) {
		c.Quarantine = func(raw []byte) (string, error) {
			saved = slices.Clone(raw)
			return "somewhere", nil
		}
		c.Retry = func(error, int) (time.Duration, bool) { return 0, false }
	}
	err := w.follower().Run(t.Context(), atTip)
	var bad *UndecodableError
	if !errors.As(err, &bad) || bad.Parent != w.node.blocks[5].At() || bad.Saved != "somewhere" {
		t.Fatalf("got %v", err)
	}
	if len(saved) != len(w.node.blocks[6].Raw)-3 || w.store.Head().At() != w.node.blocks[5].At() {
		t.Errorf("%d bytes kept, head %v", len(saved), w.store.Head().At())
	}
	w.check(t)
}

// TestUnresolvedInputStops names the block, the transaction and the input.
func TestUnresolvedInputStops(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 30)
	for _, ref := range keysOf(w.store.set) {
		delete(w.store.set, ref) // the genesis outputs are gone
	}
	err := w.follower().Run(t.Context(), atTip)
	var in *resolve.InputError
	var fatal *FatalError
	if !errors.As(err, &in) || !errors.As(err, &fatal) || fatal.Hint == "" || in.Tx == (chain.TxID{}) {
		t.Fatalf("got %v", err)
	}
}

// TestUntilStopsExactly commits the block at the height and none above.
func TestUntilStopsExactly(t *testing.T) {
	for _, until := range []chain.Height{0, 1, 5, 17} {
		w := newWorld(t, 8, forge.Options{EpochBlocks: 6})
		w.extend(t, 40)
		if err := w.follower().Run(t.Context(), Stop{Until: until}); err != nil {
			t.Fatal(err)
		}
		// At height 0 stands a boundary block, and nothing else.
		if got := w.store.Head().Height; got != until {
			t.Errorf("until %d: stopped at %d", until, got)
		}
		w.check(t)
	}
}

// TestFailedRollbackFlushesNothing: readers are failed, not told of a rollback
// that is not on disk.
func TestFailedRollbackFlushesNothing(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 30)
	w.catchUp(t)
	w.fork(t, 8, 9)
	shown := slices.Clone(w.hub.shown)
	w.store.fail, w.store.halfway = errors.New("disk gone"), 3
	err := w.follower().Run(t.Context(), atTip)
	var fatal *FatalError
	if !errors.As(err, &fatal) || !errors.Is(err, w.store.fail) {
		t.Fatalf("got %v", err)
	}
	if !slices.Equal(w.hub.shown, shown) || w.hub.failed == nil {
		t.Error("something was flushed, or nobody was failed")
	}
	if err := w.store.agrees(w.forge.Oracle()); err != nil {
		t.Errorf("what is left is no prefix of a chain: %v", err)
	}
}

// TestEndInsideARollback: a run that is ended while blocks are undone undoes them
// all, so that what readers are told as they end is what is on disk.
func TestEndInsideARollback(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 30)
	w.catchUp(t)
	w.fork(t, 8, 9)
	shown := len(w.hub.shown)
	ctx, stop := context.WithCancel(t.Context())
	w.store.undoing, w.store.halfway = stop, 3
	if err := w.follower().Run(ctx, atTip); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := w.store.agrees(w.forge.Oracle()); err != nil || w.hub.failed != nil {
		t.Errorf("%v, readers were failed: %v", err, w.hub.failed)
	}
	if len(w.hub.shown) == shown {
		t.Error("readers were told nothing of a rollback that is on disk")
	}
}

// TestAFailedCommitIsNoCleanEnd: what was gathered cannot be written in the moment in
// which the run is ended. It tells of the disk, and of nothing that looks like a clean
// end.
func TestAFailedCommitIsNoCleanEnd(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.hub.subs = 0 // so that blocks are gathered
	w.extend(t, 200)
	ctx, stop := context.WithCancel(t.Context())
	var f *Follower
	w.cfg = func(c *Config) {
		c.MaxBlocks = 5
		c.Brake = func(ctx context.Context) error {
			if f.gathered.Load() != nil {
				w.store.fail = errors.New("disk gone")
				stop()
			}
			return ctx.Err()
		}
	}
	f = w.follower()
	if err := f.Run(ctx, atTip); w.store.fail == nil || !errors.Is(err, w.store.fail) || errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if !errors.Is(w.hub.failed, w.store.fail) || errors.Is(w.hub.failed, context.Canceled) {
		t.Errorf("readers were told %v", w.hub.failed)
	}
}

// TestTheSweepComesBehindTheEvent: of a block at the tip subscribers hear before the
// store tidies, and it does; far from the tip both are one write. A store that cannot
// is a fatal error.
func TestTheSweepComesBehindTheEvent(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 30)
	w.catchUp(t)
	if w.store.appended > nearTip {
		t.Errorf("%d blocks were appended, most of them far from the tip", w.store.appended)
	}
	w.node.run = 1
	var order []string
	w.cfg = func(c *Config) {
		c.Step = func(step string) { order = append(order, step) }
	}
	w.store.onTidy = func() { order = append(order, "tidy") }
	w.extend(t, 3)
	f := w.follower()
	if err := f.Run(t.Context(), atTip); err != nil {
		t.Fatal(err)
	}
	if w.store.appended == 0 || w.store.untidy > 0 {
		t.Errorf("%d blocks were appended, %d wait for tidying", w.store.appended, w.store.untidy)
	}
	if i := slices.Index(order, "tidy"); i < 1 || order[i-1] != "published" {
		t.Errorf("the order is %v", order)
	}
	w.extend(t, 3)
	w.store.tidyFails = errors.New("disk full")
	if err := w.follower().Run(t.Context(), atTip); !errors.Is(err, w.store.tidyFails) || w.hub.failed == nil {
		t.Errorf("got %v, readers %v", err, w.hub.failed)
	}
}

// TestFailedCommitPublishesNothing.
func TestFailedCommitPublishesNothing(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 30)
	w.store.fail = errors.New("disk full")
	if err := w.follower().Run(t.Context(), atTip); !errors.Is(err, w.store.fail) {
		t.Fatalf("got %v", err)
	}
	if len(w.hub.shown) > 0 || w.hub.failed == nil {
		t.Error("something was flushed, or nobody was failed")
	}
}

// TestAStoreThatCannotBeAskedIsNotCalledDamaged: only an input that it does not have is
// a reason to speak of starting over.
func TestAStoreThatCannotBeAskedIsNotCalledDamaged(t *testing.T) {
	w := newWorld(t, 20, forge.Options{EpochBlocks: 50})
	w.extend(t, 30)
	w.store.unread = errors.New("the store is closed")
	err := w.follower().Run(t.Context(), atTip)
	var fatal *FatalError
	if !errors.Is(err, w.store.unread) || !errors.As(err, &fatal) || fatal.Hint != "" {
		t.Errorf("got %v", err)
	}
}
