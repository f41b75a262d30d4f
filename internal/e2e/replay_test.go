package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/query"
)

// TestReplayFromAnywhere follows a chain into an archive and reads its past from
// origin, and again behind every event's cursor: each time what was not read yet, in
// the same order, with the same ids.
func TestReplayFromAnywhere(t *testing.T) {
	const k = 30
	n := generated(t, forge.Options{Seed: 77, K: k, EpochBlocks: 40}, 200)
	cfg := n.config(t, t.TempDir())
	cfg.Archive, cfg.ExitAtTip = true, true
	sync, err := ourotail.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sync.Run(t.Context()), sync.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := ourotail.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	read := func(o hub.Options) ([]string, []chain.Cursor) {
		sub, err := f.SubscribeUTxOs(t.Context(), query.Everything(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Cancel()
		var out []string
		var cursors []chain.Cursor
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for {
			if c, ok := sub.Cursor(); ok && c.Place == chain.WholeBlock && c.At == f.State().Head.At() {
				return out, cursors
			}
			e, err := sub.Next(ctx)
			if err != nil {
				t.Fatalf("%v, after %d events", err, len(out))
			}
			c, _ := e.Cursor()
			out, cursors = append(out, e.ID()), append(cursors, c)
		}
	}
	whole, cursors := read(hub.Options{Start: hub.Origin})
	if len(whole) < 500 {
		t.Fatalf("only %d events: the test tells little", len(whole))
	}
	seen := map[string]bool{}
	for _, id := range whole {
		if seen[id] {
			t.Fatalf("%s twice", id)
		}
		seen[id] = true
	}
	step := 1 + len(whole)/40
	for i := 0; i < len(whole); i += step {
		if cursors[i] == (chain.Cursor{}) {
			continue // inside the seed of genesis outputs
		}
		rest, _ := read(hub.Options{Start: hub.Resume, After: cursors[i]})
		if len(rest) != len(whole)-i-1 {
			t.Fatalf("behind event %d of %d, %v: %d events", i, len(whole), cursors[i], len(rest))
		}
		for j, id := range rest {
			if id != whole[i+1+j] {
				t.Fatalf("behind event %d: event %d is %s, want %s", i, j, id, whole[i+1+j])
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReplayBesideTheFirstSync reads the past while it is being followed: a replay
// that is close behind the floor must not look for blocks in a view of the store that
// is older than they are. What it gives is what a replay of the finished archive
// gives, the vouchers that Allegra removes included.
func TestReplayBesideTheFirstSync(t *testing.T) {
	n := generated(t, forge.Options{Seed: 3090048066, K: 60, EpochBlocks: 50}, 900)
	for round := range 2 {
		cfg := n.config(t, t.TempDir())
		cfg.Archive, cfg.Memory = true, 64<<20
		f, err := ourotail.Open(trial.With(t.Context(), &trial.Trial{MemTable: 1 << 16}), cfg) // it is on disk every few blocks
		if err != nil {
			t.Fatal(err)
		}
		read := func(waits bool) (lines []string, removed int) {
			sub, err := f.SubscribeUTxOs(t.Context(), query.Everything(), hub.Options{Start: hub.Origin, Idle: true, Bound: hub.Unbounded})
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Cancel()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for e, err := range sub.All(ctx) {
				if err != nil {
					t.Fatalf("round %d: %v, after %d events", round, err, len(lines))
				}
				if waits && e.At.Height >= 10 { // the floor runs away
					waits = false
					devtest.Eventually(t, "it is at the tip", func() bool { return f.State().Head.Point == n.chain.Tip().Point })
				}
				if e.Kind != chain.Idle {
					lines = append(lines, e.ID())
				}
				if e.Kind == chain.Spent && e.Tx.IsZero() {
					removed++
				}
				if c, ok := e.Cursor(); ok && c.At.Point == n.chain.Tip().Point && (c.Place == chain.WholeBlock || e.LastOfBlock) {
					break
				}
			}
			return lines, removed
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- f.Run(ctx) }()
		for f.State().Floor.Height < 20 {
			time.Sleep(time.Millisecond)
		}
		beside, removed := read(true)
		after, _ := read(false)
		if removed == 0 {
			t.Error("no voucher was removed: the test tells little")
		}
		if !slices.Equal(beside, after) {
			t.Errorf("round %d: %d events beside the first sync, %d of the finished archive", round, len(beside), len(after))
		}
		stop()
		if err := errors.Join(ignore(<-ran, context.Canceled), f.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestAStartFromOriginIsNeverRefusedInAnArchive: following passes the start in the
// moment in which somebody subscribes there; they get it all the same, from a replay.
func TestAStartFromOriginIsNeverRefusedInAnArchive(t *testing.T) {
	n := generated(t, forge.Options{Seed: 8, K: 10, EpochBlocks: 50}, 150)
	for round := range 8 {
		cfg := n.config(t, t.TempDir())
		cfg.Archive, cfg.ExitAtTip, cfg.Memory = true, true, 64<<20
		f, err := ourotail.Open(trial.With(t.Context(), &trial.Trial{MemTable: 1 << 16}), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan error, 1)
		go func() { ran <- f.Run(t.Context()) }()
		for running := true; running; {
			select {
			case err := <-ran:
				running = false
				if err != nil {
					t.Fatal(err)
				}
			default:
			}
			for _, depth := range []chain.Height{0, 7} {
				sub, err := f.SubscribeUTxOs(t.Context(), query.Everything(), hub.Options{Start: hub.Origin, Confirmations: depth, Bound: hub.Unbounded})
				if err != nil {
					t.Fatalf("round %d, depth %d, head %v: %v", round, depth, f.State().Head.At(), err)
				}
				sub.Cancel()
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAForkTakesWhatAPausedReplayStandsOn: a reader pauses in the past, a fork undoes
// the block that it stands on, and following goes on until the fork lies below the
// floor. The reader is rolled back to the common ancestor, then given the rest.
func TestAForkTakesWhatAPausedReplayStandsOn(t *testing.T) {
	const k = 20
	n := generated(t, forge.Options{Seed: 12, K: k, EpochBlocks: 50}, 80)
	cfg := n.config(t, t.TempDir())
	cfg.Archive = true
	f := open(t, cfg)
	keepRunning(t, f)
	n.reached(t, f)
	at := n.chain.At(n.chain.Len() - 1 - 10)
	from := chain.At{Point: at.Point, Height: at.Height}
	sub, err := f.SubscribeUTxOs(t.Context(), query.Everything(), hub.Options{Start: hub.After, After: chain.Cursor{At: from, Place: chain.WholeBlock}, Idle: true, Bound: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Cancel()
	if err := n.chain.Fork(k-5, k); err != nil {
		t.Fatal(err)
	}
	n.reached(t, f)
	if err := n.chain.Extend(2 * k); err != nil {
		t.Fatal(err)
	}
	n.reached(t, f)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	stands, back := from, false
	for stands.Point != n.chain.Tip().Point {
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("it stands at %v: %v", stands, err)
		}
		if e.Kind == chain.RolledBack {
			back = true
			stands = e.At
			if at := n.chain.At(n.chain.Len() - 1 - 2*k - k); e.At.Point != at.Point {
				t.Errorf("rolled back to %v, the fork begins behind %v", e.At, at.Point)
			}
			continue
		}
		if e.At.Height > stands.Height+1 || e.At.Height < stands.Height {
			t.Fatalf("%v after %v", e.At, stands)
		}
		stands = e.At
	}
	if !back {
		t.Error("it was not rolled back")
	}
}

// TestForksNeverEndAReplay: the chain forks without a pause while readers begin a few
// blocks back, again and again, and read up to the tip. What they are told is always of
// one branch, and nothing of it ends them.
func TestForksNeverEndAReplay(t *testing.T) {
	const k = 400
	n := generated(t, forge.Options{Seed: 13, K: k, EpochBlocks: 50}, 200)
	cfg := n.config(t, t.TempDir())
	cfg.Archive = true
	f := open(t, cfg)
	keepRunning(t, f)
	n.reached(t, f)
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				at := f.State().Head
				l, err := f.Ancestor(at.Point)
				if err != nil {
					t.Errorf("%v: %v", at.At(), err)
					return
				}
				sub, err := f.SubscribeUTxOs(ctx, query.Everything(), hub.Options{Start: hub.Resume, After: chain.Cursor{At: l, Place: chain.WholeBlock}, Idle: true, Bound: 100_000})
				if err != nil {
					t.Errorf("from %v: %v", l, err)
					return
				}
				stands := l
				for range 400 {
					e, err := sub.Next(ctx)
					if ctx.Err() != nil {
						break
					}
					if err != nil {
						t.Errorf("from %v, at %v: %v", l, stands, err)
						return
					}
					if e.Kind == chain.RolledBack && e.At.Height >= stands.Height || e.Kind != chain.RolledBack && (e.At.Height < stands.Height || e.At.Height > stands.Height+1) {
						t.Errorf("%v at %v after %v", e.Kind, e.At, stands)
						return
					}
					stands = e.At
				}
				sub.Cancel()
			}
		})
	}
	for range 150 {
		if err := n.chain.Fork(20, 21); err != nil {
			t.Fatal(err)
		}
		n.reached(t, f)
	}
	stop()
	readers.Wait()
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
