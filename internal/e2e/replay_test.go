package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
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
