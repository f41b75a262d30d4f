package hub

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ourotail/ourotail/chain"
)

var errModel = errors.New("model")

// setWake makes a reader act inside its callback, once: it cancels itself, or
// subscribes another reader.
func (w *world) setWake(r *wreader) {
	wake := func() {
		if r.woken++; r.woken > 1 {
			return
		}
		if r.callback == 2 {
			x := w.newReader()
			x.o.Seed = NoSeed
			x.o.Start = Tip
			if err := w.subscribe(x); err == nil {
				w.spawned = append(w.spawned, x)
			}
			return
		}
		line, ok, err := r.poll()
		switch {
		case ok:
			r.died = "cancelled after " + line
		case err != nil:
			r.died = endOf(err)
		}
		r.cancel()
	}
	switch s := r.real.(type) {
	case *UTxOSubscription:
		s.Wake(wake)
	case *TxSubscription:
		s.Wake(wake)
	case *BlockSubscription:
		s.Wake(wake)
	}
}

func (r *wreader) cancel() {
	switch s := r.real.(type) {
	case *UTxOSubscription:
		s.Cancel()
	case *TxSubscription:
		s.Cancel()
	case *BlockSubscription:
		s.Cancel()
	}
}

func endOf(err error) string {
	var over *OverflowError
	var gap *GapError
	switch {
	case errors.Is(err, io.EOF):
		return "closed"
	case errors.As(err, &over):
		c := ""
		if over.Resumable {
			c = over.Cursor.String()
		}
		return fmt.Sprintf("overflow lost=%d cursor=%s", over.Lost, c)
	case errors.As(err, &gap):
		return "gap"
	case errors.Is(err, ErrResync):
		return "resync"
	case errors.Is(err, ErrSeed):
		return "seed"
	case errors.Is(err, ErrCancelled):
		return "cancelled"
	case errors.Is(err, errModel):
		return "failed"
	}
	return err.Error()
}

func (s *naiveSub) end() string {
	if s.why == "overflow" {
		return fmt.Sprintf("overflow lost=%d cursor=%s", s.lost, s.cursor)
	}
	return s.why
}

// settle ends a call on both hubs: callbacks have run, readers read, and
// everything is compared.
func (w *world) settle() {
	grown := map[*naiveSub]int{}
	for _, r := range w.readers {
		grown[r.n] = len(r.n.box)
	}
	w.naive.finish()
	for _, r := range slices.Clone(w.readers) {
		if r.callback == 0 || r.woken == 0 {
			if r.callback > 0 && (len(r.n.box) > grown[r.n] || r.n.state == dead) {
				w.fail("%s: has something new, and was not woken", r.name)
			}
			continue
		}
		if r.callback == 2 {
			r.callback = 0
			continue
		}
		want := r.n.end()
		if len(r.n.box) > 0 {
			want = "cancelled after " + r.n.box[0]
		}
		if r.died != want && !(strings.HasPrefix(want, "cancelled after seed") && strings.HasPrefix(r.died, "cancelled after seed")) {
			w.fail("%s in its callback: %s, want %s", r.name, r.died, want)
		}
		w.forget(r)
	}
	spawned := w.spawned
	w.spawned = nil
	for _, x := range spawned {
		n, why := w.naive.subscribe(x.q, x.o)
		if why != "" {
			w.fail("%s, from a callback: refused with %s", x.name, why)
		}
		x.n = n
		w.note("%s: subscribed from a callback %s", x.name, x.describe())
		w.readers = append(w.readers, x)
		w.naive.finish()
	}
	for _, r := range slices.Clone(w.readers) {
		if !r.lazy || w.d.chance(25) {
			w.read(r, 1<<30)
		}
	}
	w.checkTip()
	w.checkStatuses()
	if n := len(w.naive.subs); n != w.hub.Subscribers()-len(w.hub.statuses.table) {
		w.fail("%d subscriptions, want %d", w.hub.Subscribers(), n)
	}
	if w.hub.Tip() != w.naive.tip || !w.naive.dead && w.hub.Floor() != w.naive.floor {
		w.fail("tip %v, floor %v; want %v, %v", w.hub.Tip(), w.hub.Floor(), w.naive.tip, w.naive.floor)
	}
}

// read has a reader read at most so many events and compares them.
func (w *world) read(r *wreader, most int) {
	var got []string
	var end error
	for len(got) < most {
		line, ok, err := r.poll()
		if !ok {
			end = err
			break
		}
		got = append(got, line)
	}
	want := r.n.box[:min(most, len(r.n.box))]
	seeds := 0
	for seeds < len(r.n.box) && isSeed(r.n.box[seeds]) {
		seeds++
	}
	if len(got) != len(want) {
		w.fail("%s got\n    %s\nwant\n    %s", r.name, strings.Join(got, "\n    "), strings.Join(want, "\n    "))
	}
	if len(got) >= seeds { // within a seed order is free
		a, b := slices.Clone(got), slices.Clone(want)
		orderFree(a[:seeds])
		orderFree(b[:seeds])
		for i := range a {
			if a[i] != b[i] {
				w.fail("%s: event %d is\n    %s\nwant\n    %s", r.name, i, a[i], b[i])
			}
		}
	}
	for _, line := range got {
		kind, _, _ := strings.Cut(line, " ")
		w.stats[kind]++
		w.promises(r, line)
		r.n.last = lastField(line)
		if isSeed(line) {
			r.n.seedLeft--
		} else {
			r.n.unread--
		}
	}
	if len(got) > 0 {
		r.cursor = lastField(got[len(got)-1])
		r.midSeed = r.cursor == ""
		w.note("    %s <- %s", r.name, strings.Join(got, "\n        "))
	}
	r.n.box = r.n.box[len(want):]
	if len(r.n.box) > 0 {
		return
	}
	wantEnd := ""
	if r.n.state == dead {
		wantEnd = r.n.end()
	}
	gotEnd := ""
	if end != nil {
		gotEnd = endOf(end)
	}
	if most == 1<<30 && gotEnd != wantEnd {
		w.fail("%s ended with %q, want %q", r.name, gotEnd, wantEnd)
	}
	if r.n.state == dead {
		w.note("    %s ended: %s", r.name, wantEnd)
		kind, _, _ := strings.Cut(wantEnd, " ")
		w.stats["ended "+kind]++
		w.forget(r)
		return
	}
	w.checkFold(r)
}

// orderFree sorts a run but leaves the cursor at its end.
func orderFree(run []string) {
	heads, cursors := make([]string, len(run)), make([]string, len(run))
	for i, e := range run {
		heads[i], cursors[i], _ = strings.Cut(e, " | ")
	}
	slices.Sort(heads)
	for i := range run {
		run[i] = heads[i] + " | " + cursors[i]
	}
}

func (w *world) forget(r *wreader) {
	w.readers = slices.DeleteFunc(w.readers, func(x *wreader) bool { return x == r })
	w.reads = slices.DeleteFunc(w.reads, func(x wread) bool { return x.r == r })
	r.n.state = dead
	w.naive.subs = slices.DeleteFunc(w.naive.subs, func(s *naiveSub) bool { return s == r.n })
}

// promises checks what a single event can break (contract 5.4).
func (w *world) promises(r *wreader, line string) {
	kind, _, _ := strings.Cut(line, " ")
	c, err := chain.ParseCursor(lastField(line))
	if err != nil {
		return // inside a seed
	}
	switch kind {
	case "created", "spent", "included", "applied", "idle":
		if r.o.Confirmations > 0 && !r.lazy && c.At.Height > w.naive.highest-r.sub.depth && c.At != r.o.After.At {
			w.fail("Settled: %s at depth %d got %s, highest %d", r.name, r.sub.depth, line, w.naive.highest)
		}
		if c.At.Height < r.lastAt {
			w.fail("Ordered: %s got %s after height %d", r.name, line, r.lastAt)
		}
		if !r.lazy && w.fed.below(c.At.Height).at != c.At {
			w.fail("Reliable: %s got %s, which is not on the chain", r.name, line)
		}
		r.lastAt = c.At.Height
		r.blocks[c.At.Height] = c.At
	case "rolledback":
		if r.sub.noRollback {
			w.fail("Settled: %s asked for no rollbacks and got %s", r.name, line)
		}
		if !r.lazy && w.naive.highest-c.At.Height <= r.sub.depth {
			w.fail("Settled: %s at depth %d got %s, highest %d", r.name, r.sub.depth, line, w.naive.highest)
		}
		r.lastAt = min(r.lastAt, c.At.Height)
		for h := range r.blocks {
			if h > c.At.Height {
				delete(r.blocks, h)
			}
		}
	}
}

// checkFold compares what a reader has made of its events with the truth.
func (w *world) checkFold(r *wreader) {
	s := r.sub
	for h, at := range r.blocks {
		if w.fed.below(h).at != at {
			w.fail("Reversible: %s saw %v, which has left the chain, and heard nothing", r.name, at)
		}
	}
	if r.q.kind != UTxOs || s.state != live || s.base == nil || r.o.Events == SpentOnly || r.o.Bound != Unbounded && r.o.Start == Resume {
		return
	}
	at := s.watermark()
	// What a created-only reader knows is all that ever was: only the base's rows
	// and later creations; the naive hub is its check.
	if r.o.Events != CreatedAndSpent {
		return
	}
	if at > w.fedHeight() {
		w.fail("Reversible: %s stands at %d, the chain ends at %d", r.name, at, w.fedHeight())
	}
	b := w.fed.below(at)
	have := r.fold()
	for ref, u := range b.set {
		if r.q.output.Match(u) != have[ref] {
			w.fail("Reliable: %s at %d: %v in the set %v, in the fold %v", r.name, at, ref, r.q.output.Match(u), have[ref])
		}
		delete(have, ref)
	}
	if len(have) > 0 {
		w.fail("Reliable: %s at %d has %v, which are not in the set", r.name, at, have)
	}
}

func (w *world) fedHeight() chain.Height { return w.naive.tip.Height }
