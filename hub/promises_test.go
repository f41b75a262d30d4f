package hub

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

func TestOrdered(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Idle: true})
	for i := range 8 {
		f.block(fmt.Sprintf("t%d: > a a", i), fmt.Sprintf("u%d: t%d.0 > a", i, i))
		if i == 4 {
			must(t, f.rollback(2))
		}
	}
	h, place := chain.Height(-2), int64(-1)
	for _, e := range all(t, s) {
		c, _ := e.Cursor()
		if e.Kind == chain.RolledBack {
			h, place = e.At.Height, 1<<40
			continue
		}
		if c.At.Height < h || c.At.Height == h && c.Place <= place {
			t.Errorf("%s after %d+%d", f.text(&e), h, place)
		}
		h, place = c.At.Height, c.Place
	}
}

func TestAtomic(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{})
	visible := 0
	s.Wake(func() { // the events of one transaction are there in one flush, the last marked
		got := all(t, s)
		visible += len(got)
		if len(got) == 0 || !got[len(got)-1].LastOfTx || !got[len(got)-1].LastOfBlock {
			t.Errorf("woken with %d events, the last is none of its transaction", len(got))
		}
		for i, e := range got {
			last := i == len(got)-1
			if e.LastOfTx != (last || got[i+1].Tx != e.Tx) || e.LastOfBlock != last {
				t.Errorf("%s: last of tx %v, of block %v", f.text(&e), e.LastOfTx, e.LastOfBlock)
			}
		}
	})
	f.block("t: g.0 > a a b", "u: t.0 > b a", "v: t.1 > b")
	if visible != 6 {
		t.Fatalf("%d events", visible)
	}
	// A bounded mailbox takes all of a block's events or none.
	tight := f.sub(q("a"), Options{Bound: 2})
	f.block("w: > a a a")
	if got := f.got(tight); len(got) != 1 {
		t.Fatal(got)
	}
}

func TestReliable(t *testing.T) {
	f := newFx(t, partial)
	s := f.sub(q("a"), Options{Seed: SeedNow, Bound: 3})
	f.want(s, "seed g.0 @origin")
	f.covering("a", "t: > a")
	f.covering("a", "u: > a")
	f.want(s, "created t.0 by t @0", "created u.0 by u @1")
	f.covering("b", "v: > a") // missed
	if got := f.got(s); !slices.Equal(got, []string{"end: gap"}) {
		t.Fatalf("a gap without an error: %v", got)
	}
}

func TestReversible(t *testing.T) {
	f := newFx(t)
	var subs []*UTxOSubscription
	for _, d := range []chain.Height{0, 1, 2} {
		subs = append(subs, f.sub(q("a"), Options{Confirmations: d, Idle: true}))
	}
	var seen [3]map[chain.Height]chain.At
	for i := range seen {
		seen[i] = map[chain.Height]chain.At{}
	}
	for i := range 40 {
		f.block(fmt.Sprintf("t%d: > a", i))
		if i%5 == 4 {
			must(t, f.rollback(f.at.Height-chain.Height(1+i%3)))
		}
		for j, s := range subs {
			for _, e := range all(t, s) {
				if e.Kind != chain.RolledBack {
					seen[j][e.At.Height] = e.At
					continue
				}
				for h := range seen[j] {
					if h > e.At.Height {
						delete(seen[j], h)
					}
				}
			}
			for h, at := range seen[j] {
				if f.back(h) != at {
					t.Fatalf("depth %d saw %v, which left the chain, and was not told", j, at)
				}
			}
		}
	}
}

func TestSettled(t *testing.T) {
	for d := range chain.Height(4) {
		f := newFx(t)
		f.blocks(4)
		s := f.sub(q("a"), Options{Confirmations: d, Idle: true, Seed: SeedNow})
		highest := f.at.Height
		for i := range 40 {
			f.block(fmt.Sprintf("t%d: > a", i))
			highest = max(highest, f.at.Height)
			if back := f.at.Height - chain.Height(1+i%3); i%4 == 3 && highest-back <= 3 {
				must(t, f.rollback(back))
			}
			for _, e := range all(t, s) {
				switch {
				case e.Because != chain.Live:
				case e.Kind == chain.RolledBack:
					if highest-e.At.Height <= d {
						t.Fatalf("depth %d saw a rollback of %d", d, highest-e.At.Height)
					}
				case e.At.Height > highest-d:
					t.Fatalf("depth %d was given %v, highest %d", d, e.At, highest)
				}
			}
			if s.watermark() > max(highest-d, -1) {
				t.Fatalf("depth %d stands at %d, highest %d", d, s.watermark(), highest)
			}
		}
	}
}
