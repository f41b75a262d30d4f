package ourotail_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// opened is a follower of a fresh example node.
func opened(t *testing.T) (*node, *ourotail.Follower) {
	t.Helper()
	n := startNode()
	t.Cleanup(n.Stop)
	f, err := ourotail.Open(t.Context(), n.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, f
}

var ours = query.Address(payee)

// A loop left after any event goes on from that event's cursor, text only, with
// exactly the rest.
func TestLoopsResumeByTheTextOfTheirCursor(t *testing.T) {
	_, f := opened(t)
	const events = 3
	var ids []string
	read := func(from ourotail.UTxOOption, until int) (cursors []string) {
		got := 0
		for ev, err := range f.UTxOs(t.Context(), ours, from) {
			if err != nil {
				t.Fatal(err)
			}
			if cursors = append(cursors, ev.Cursor()); len(ids) < events {
				ids = append(ids, ev.ID())
			} else if want := ids[events-until+got]; ev.ID() != want {
				t.Errorf("event %s, want %s", ev.ID(), want)
			}
			if got++; got == until {
				break
			}
		}
		return cursors
	}
	cursors := read(ourotail.FromOrigin(), events)
	for i, c := range cursors[:events-1] {
		read(ourotail.Resume(c), events-1-i)
	}
}

// A fork that comes while nobody reads is the first thing that a resumed loop gives.
func TestAResumedLoopIsToldOfTheForkItMissed(t *testing.T) {
	n, f := opened(t)
	var cursor string
	for ev, err := range f.UTxOs(t.Context(), ours, ourotail.Existing(), ourotail.Idle()) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Because == chain.Seed {
			if ev.UTxO.Out.Lovelace != 2_000_000 || ev.Time().IsZero() {
				t.Errorf("the seed is %d from %v", ev.UTxO.Out.Lovelace, ev.Time())
			}
			n.Pay(4_000_000)
			continue
		}
		cursor = ev.Cursor()
		break
	}
	n.Fork()
	for tip, err := range f.Tips(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tip.Point == n.chain.Tip().Point {
			break
		}
	}
	for ev, err := range f.UTxOs(t.Context(), ours, ourotail.Resume(cursor)) {
		if err != nil || ev.Kind != chain.RolledBack {
			t.Fatalf("%v, %v, want the fork", ev.Kind, err)
		}
		break
	}
}

// Without a start a loop gives what happens from now on, however far behind the
// directory was when it began.
func TestALoopBeginsAtTheNodesTip(t *testing.T) {
	n, f := opened(t)
	done := make(chan struct{})
	var paying sync.WaitGroup
	paying.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				n.Pay(1_000_000)
			}
		}
	})
	defer paying.Wait()
	defer close(done)
	for ev, err := range f.Txs(t.Context(), query.Involves(payee)) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != chain.Included || ev.Tx.Created[0].UTxO.Out.Lovelace != 1_000_000 {
			t.Errorf("it began with %v", ev.ID())
		}
		break
	}
}

// The end of the context ends a loop, with its error; others go on.
func TestTheContextEndsALoop(t *testing.T) {
	_, f := opened(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	blocks, last := 0, error(nil)
	for ev, err := range f.Blocks(ctx, query.EveryBlock(), ourotail.FromOrigin()) {
		if last = err; err != nil {
			break
		}
		if blocks++; ev.At.Height == 7 {
			cancel()
		}
	}
	if blocks < 8 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d blocks, then %v", blocks, last)
	}
	for _, err := range f.Tips(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

// A loop over a range of slots ends by itself, and so does every loop when following
// ends as configured.
func TestLoopsEndWithoutAnError(t *testing.T) {
	n, f := opened(t)
	count := func(f *ourotail.Follower, q query.Block) (blocks int) {
		for _, err := range f.Blocks(t.Context(), q, ourotail.FromOrigin()) {
			if err != nil {
				t.Fatal(err)
			}
			blocks++
		}
		return blocks
	}
	tip := n.chain.Tip()
	if got := count(f, query.Slots(0, tip.Point.Slot)); got != int(tip.Height)+1 {
		t.Errorf("%d blocks up to %v", got, tip)
	}
	f.Close()
	n.Config.ExitAtTip = true
	f, err := ourotail.Open(t.Context(), n.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := count(f, query.EveryBlock()); got != int(tip.Height)+1 {
		t.Errorf("%d blocks, the tip is %v", got, tip)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	_, f := opened(t)
	for name, c := range map[string]struct {
		opts []ourotail.UTxOOption
		want error
	}{
		"two starts":         {[]ourotail.UTxOOption{ourotail.FromTip(), ourotail.Existing()}, ourotail.ErrOption},
		"a kind":             {[]ourotail.UTxOOption{ourotail.Only(chain.Idle)}, ourotail.ErrOption},
		"nothing":            {[]ourotail.UTxOOption{ourotail.Only(chain.Created), ourotail.Only(chain.Spent)}, ourotail.ErrOption},
		"no buffer":          {[]ourotail.UTxOOption{ourotail.Buffer(0)}, ourotail.ErrOption},
		"negative":           {[]ourotail.UTxOOption{ourotail.Confirmations(-1)}, ourotail.ErrOption},
		"too deep":           {[]ourotail.UTxOOption{ourotail.FromOrigin(), ourotail.Confirmations(1 << 20)}, hub.ErrUnsupported},
		"nil":                {[]ourotail.UTxOOption{ourotail.FromOrigin(), nil}, ourotail.ErrOption},
		"no cursor yet":      {[]ourotail.UTxOOption{ourotail.Resume("")}, chain.ErrCursor},
		"no cursor":          {[]ourotail.UTxOOption{ourotail.Resume("42:origin:00000000")}, chain.ErrCursor},
		"an unknown point":   {[]ourotail.UTxOOption{ourotail.From(chain.Point{Slot: 1, Hash: chain.Hash{1}})}, ourotail.ErrForgotten},
		"an unknown network": {[]ourotail.UTxOOption{ourotail.Resume(chain.Token{Magic: 7, Cursor: chain.Cursor{At: chain.Origin}}.String())}, ourotail.ErrOtherNetwork},
	} {
		var err error
		for _, err = range f.UTxOs(t.Context(), ours, c.opts...) {
			break
		}
		if err == nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if name == "no cursor yet" && !strings.Contains(err.Error(), "FromOrigin") {
			t.Errorf("it does not say what to do: %v", err)
		}
	}
}

// Run takes over from the loops' following, and hands back to it.
func TestRunTakesOver(t *testing.T) {
	n, f := opened(t)
	blocks := make(chan chain.Height, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(blocks)
		for ev, err := range f.Blocks(ctx, query.EveryBlock(), ourotail.FromOrigin()) {
			if err != nil {
				return
			}
			blocks <- ev.At.Height
		}
	}()
	await := func() {
		t.Helper()
		for h := range blocks {
			if h == n.chain.Tip().Height {
				return
			}
		}
		t.Fatal("the loop ended")
	}
	await()
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(running) }()
	n.Pay(1_000_000)
	await()
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	n.Pay(1_000_000)
	await()
	cancel()
	for range blocks {
	}
}

func TestOnlyOneRunAtATime(t *testing.T) {
	_, f := opened(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	for range 2 {
		go func() { ended <- f.Run(ctx) }()
	}
	if err := <-ended; !errors.Is(err, ourotail.ErrFollowing) {
		t.Errorf("the second ends with %v", err)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the first ends with %v", err)
	}
}
