package hub

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// The steps.
func (w *world) steps() map[string]func() {
	return map[string]func(){
		"grow": func() {
			for range 1 + w.d(2) {
				w.grow()
			}
		},
		"feed": func() {
			for range pickInt(w.d, 1, 1, 1, 2, 9) {
				if !w.feed() {
					break
				}
			}
		},
		"feed again": func() { w.feed() },
		"fork":       w.fork,
		"subscribe":  w.stepSubscribe,
		"seed":       w.stepSeed,
		"after":      w.stepAfter,
		"cancel":     w.stepCancel,
		"stop":       w.stepStop,
		"resume":     w.stepResume,
		"bad":        w.stepBad,
		"status":     w.stepStatus,
		"restart": func() {
			if w.d.chance(10) || w.naive.dead {
				w.restart()
			}
		},
		"end": func() {
			if !w.d.chance(4) {
				return
			}
			w.note("hub: the end")
			closes := w.d.chance(50)
			for _, s := range w.naive.subs {
				if s.state, s.why = dead, "closed"; !closes {
					s.die("failed")
				}
			}
			w.naive.dead = true
			if closes {
				w.hub.CloseAll()
			} else {
				w.hub.FailAll(errModel)
			}
			w.settle()
		},
	}
}

func pickInt(d dice, from ...int) int { return pick(d, from) }

// fork sends the node back, within the horizon counted from the highest.
func (w *world) fork() {
	highest := w.highest
	for _, b := range w.all {
		if b == w.node {
			highest = max(highest, b.at.Height)
		}
	}
	to := w.node
	for back := pickInt(w.d, 1, 2, 3, int(w.k), int(w.k), int(w.k)+1); back > 0 && to.parent != nil; back-- {
		if highest-to.parent.at.Height > w.k && !w.d.chance(1) {
			break
		}
		to = to.parent
	}
	if w.d.chance(30) { // below where somebody's view starts
		for _, r := range w.readers {
			if s := r.sub; s.state == live && s.base != nil && s.base.Height >= 0 && highest-s.base.Height < w.k {
				to = w.node.below(s.base.Height - 1 - chain.Height(w.d(2)))
				if highest-to.at.Height > w.k {
					to = w.node.below(s.base.Height - 1)
				}
			}
		}
	}
	w.node = to
	w.note("node: back to %v", to.at)
	if w.d.chance(25) { // a branch it had left
		var c []*wblock
		for _, b := range w.all[max(0, len(w.all)-20):] {
			if a := ancestorOf(b, w.node); b.at.Height > w.node.at.Height && highest-a.at.Height <= w.k {
				c = append(c, b)
			}
		}
		if len(c) > 0 {
			w.node = pick(w.d, c)
		}
	} else if w.d.chance(70) {
		w.grow()
	}
	if w.d.chance(60) {
		w.feed()
	}
}

func (w *world) stepSubscribe() {
	if len(w.readers) > 6 || w.naive.dead {
		return
	}
	r := w.newReader()
	r.lazy = w.d.chance(20)
	r.callback = max(w.d(12)-9, 0)
	if w.d.chance(15) {
		r.o.Start = Origin
	} else if r.q.kind == UTxOs {
		r.o.Seed = pick(w.d, []SeedMode{NoSeed, SeedNow, SeedNow, SeedLater, SeedLater, SeedLater})
		if r.o.Seed == SeedNow {
			r.o.Rows = w.rows(w.fed, r.q.output)
		}
	}
	if w.begin(r) && r.sub.state == await && !r.n.held {
		w.readSeed(r)
	}
}

// readSeed reads a seed now, which arrives later: ahead of the hub, level with it,
// or behind.
func (w *world) readSeed(r *wreader) {
	b := pick(w.d, []*wblock{w.node, w.node, w.fed, w.fed.below(w.fedHeight() - chain.Height(w.d(3)))})
	rows := w.rows(b, r.q.output)
	w.reads = append(w.reads, wread{r, b.at, rows})
}

func (w *world) stepSeed() {
	if len(w.reads) == 0 {
		return
	}
	i := w.d(len(w.reads))
	x := w.reads[i]
	w.reads = slices.Delete(w.reads, i, i+1)
	r := x.r
	s := r.real.(*UTxOSubscription)
	if w.d.chance(3) {
		w.note("%s: seed cannot be read", r.name)
		s.SeedFailed(errModel)
		if r.n.state == await && !r.n.held {
			r.n.die("seed")
		}
		w.settle()
		return
	}
	r.stale, r.n.stale = false, false
	got := s.Seed(x.at, x.rows)
	want := w.naive.seed(r.n, x.at, x.rows)
	w.note("%s: seed read at %v -> %v", r.name, x.at, got)
	w.stats["seed handed in: "+got.String()]++
	if got != want {
		w.fail("%s: seed read at %v: %v, want %v", r.name, x.at, got, want)
	}
	if w.d.chance(10) && slices.Contains([]SeedResult{SeedTaken, SeedHeld, SeedFatal}, got) {
		if again := s.Seed(x.at, x.rows); again != SeedIgnored {
			w.fail("%s: seeded twice: %v", r.name, again)
		}
	}
	w.settle()
	if got == SeedStale {
		w.reread(r)
	}
}

// reread reads a stale seed again; one read at the hub's own tip must not be
// stale for ever.
func (w *world) reread(r *wreader) {
	if r.sub.state == await {
		w.readSeed(r)
	}
}

func (w *world) stepAfter() {
	if w.naive.dead || len(w.readers) > 7 {
		return
	}
	r := w.newReader()
	b := w.fed.below(w.fedHeight() - chain.Height(w.d(5)))
	if len(w.all) > 0 && w.d.chance(30) {
		b = pick(w.d, w.all[max(0, len(w.all)-8):])
	}
	r.o.Start = pick(w.d, []Start{After, Resume})
	r.o.After = chain.Cursor{At: b.at, Place: chain.WholeBlock}
	w.begin(r)
}

func (w *world) stepCancel() {
	if len(w.readers) == 0 {
		return
	}
	r := pick(w.d, w.readers)
	w.note("%s: cancel", r.name)
	r.cancel()
	if s, ok := r.real.(*UTxOSubscription); ok && w.d.chance(30) {
		if got := s.Seed(chain.Origin, nil); got != SeedIgnored {
			w.fail("%s: seeded after cancel: %v", r.name, got)
		}
	}
	w.forget(r)
	w.settle()
}

// stepStop ends a reader somewhere inside what is buffered for it; it may come
// back with its cursor.
func (w *world) stepStop() {
	if len(w.readers) == 0 {
		return
	}
	r := pick(w.d, w.readers)
	if r.callback > 0 || r.sub.state != live || !r.lazy && w.d.chance(50) {
		r.lazy = true
		return
	}
	w.read(r, w.d(4))
	if !slices.Contains(w.readers, r) {
		return
	}
	w.note("%s: stops, cursor %s", r.name, r.cursor)
	r.cancel()
	w.forget(r)
	if r.cursor != "" && !r.midSeed {
		w.retired = append(w.retired, r)
	}
	w.settle()
}

func (w *world) stepResume() {
	if len(w.retired) == 0 || w.naive.dead {
		return
	}
	i := w.d(len(w.retired))
	old := w.retired[i]
	w.retired = slices.Delete(w.retired, i, i+1)
	c, err := chain.ParseCursor(old.cursor)
	if err != nil {
		w.fail("%s: %v", old.name, err)
	}
	r := w.newReader()
	r.q, r.o, r.log = old.q, old.o, old.log
	r.o.Start, r.o.After, r.o.Seed, r.o.Rows, r.o.Bound = Resume, c, NoSeed, nil, Unbounded
	if w.d.chance(20) {
		r.o.Confirmations = pick(w.d, []chain.Height{0, 1, w.k})
	}
	w.begin(r)
}

func (w *world) stepBad() {
	if w.naive.tip == chain.Origin || w.naive.dead {
		return
	}
	switch w.d(5) {
	case 0:
		w.rollback(w.naive.tip) // no event
	case 1:
		w.apply(&chain.AppliedBlock{At: chain.At{Point: chain.Point{Hash: chain.Hash{1}}, Height: w.naive.tip.Height}, Coverage: chain.Complete})
	case 2:
		if !w.partial {
			w.apply(&chain.AppliedBlock{At: chain.At{Point: chain.Point{Hash: chain.Hash{1}}, Height: w.naive.tip.Height + 2}, Coverage: chain.Complete})
		}
	case 3:
		w.rollback(chain.At{Point: chain.Point{Slot: 1, Hash: chain.Hash{2}}, Height: w.naive.tip.Height})
	case 4:
		w.rollback(chain.At{Point: chain.Point{Slot: 1, Hash: chain.Hash{2}}, Height: w.naive.tip.Height + 1})
	}
}

func (w *world) restart() {
	if w.naive.dead {
		w.fed, w.highest = w.node, max(w.highest, w.node.at.Height)
	}
	s := State{Tip: w.fed.at, Highest: max(w.highest, w.fed.at.Height), Floor: w.fed.at}
	if !w.partial {
		b := w.fed
		for range w.d(int(w.k + w.deepest + 4)) {
			if b.parent == nil {
				break
			}
			s.Blocks = append([]*chain.AppliedBlock{{At: b.at, Txs: b.txs, Coverage: chain.Complete}}, s.Blocks...)
			b = b.parent
			s.Floor = b.at
		}
	}
	for _, r := range slices.Clone(w.readers) {
		if r.cursor != "" && !r.midSeed && r.sub.state == live && len(r.n.box) == 0 {
			w.retired = append(w.retired, r)
		}
	}
	w.readers, w.reads, w.sources = nil, nil, nil
	w.start(s)
	w.note("hub: restarted at %v, highest %d, floor %v", s.Tip, s.Highest, s.Floor)
}
