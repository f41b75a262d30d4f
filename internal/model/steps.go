package model

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// step takes one step and lets some time pass.
func (w *world) step() {
	w.t.Helper()
	steps := []struct {
		weight int
		take   func()
	}{
		{18, func() {
			n := 1 + w.rnd.IntN(8)
			w.note("extend by %d", n)
			w.extend(n)
		}},
		{12, w.fork}, {10, w.nodeAway}, {3, w.nodeBehind}, {3, w.breakBlock}, {9, w.tellLie}, {5, w.tune},
		{8, w.killAtStep}, {2, w.killNow}, {3, w.diskFault}, {5, w.restart},
		{12, w.subscribe}, {2, w.cancelReader}, {1, w.forkTooDeep}, {10, func() {}},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	pick := w.rnd.IntN(total)
	for _, s := range steps {
		if pick -= s.weight; pick < 0 {
			w.node.hold()
			s.take()
			w.node.letGo()
			break
		}
	}
	w.pass()
	if w.life == nil && w.rnd.IntN(3) > 0 {
		w.note("open")
		w.open()
	}
}

// pass lets some time pass: none, an instant, or up to half an hour.
func (w *world) pass() {
	if w.rnd.IntN(5) == 0 {
		return
	}
	d := time.Duration(1 + w.rnd.Int64N(1000))
	for range w.rnd.IntN(7) {
		d *= time.Duration(1 + w.rnd.IntN(50))
	}
	time.Sleep(min(d, 30*time.Minute))
}

// fork replaces the newest blocks, up to k of them, by more.
func (w *world) fork() {
	n := w.node
	if n.shown >= 0 {
		return
	}
	most := int(min(w.k-(n.highest-n.Tip().Height), n.Tip().Height+1))
	if most < 1 {
		return
	}
	depth := 1
	switch w.rnd.IntN(6) {
	case 0:
		depth = most
	case 1, 2:
		depth = 1 + w.rnd.IntN(most)
	default:
		for depth < most && w.rnd.IntN(2) == 0 {
			depth++
		}
	}
	gone := w.blocksAbove(n.Tip().Height - chain.Height(depth))
	made := depth + 1 + w.rnd.IntN(3)
	w.note("fork %d deep (%d blocks), %d new", depth, gone, made+1)
	// A boundary block repeats a height: one more makes it longer for sure.
	w.replace(gone, made+1)
	for w.node.Tip().Height < n.highest {
		w.extend(1)
	}
}

// trouble begins, or is over.
func (w *world) troubled(bad bool) {
	switch {
	case !bad:
		w.trouble = time.Time{}
	default:
		w.trouble = time.Now()
	}
}

// nodeAway takes the node away in one of the ways it can be, or brings it back.
func (w *world) nodeAway() {
	n := w.node
	if n.down || n.mute || n.refuses != nil {
		w.note("the node is back")
		n.change(func() { n.down, n.mute, n.deaf, n.refuses = false, false, false, nil })
		w.troubled(n.shown >= 0 || n.broken != chain.Point{})
		return
	}
	switch w.rnd.IntN(5) {
	case 0, 1:
		w.note("the node is down")
		n.change(func() { n.down = true })
	case 2:
		kind := []error{chainsync.ErrWrongNetwork, chainsync.ErrNoCommonVersion, chainsync.ErrPermission, chainsync.ErrHandshake}[w.rnd.IntN(4)]
		w.note("the node refuses: %v", kind)
		n.change(func() { n.refuses = kind })
	case 3:
		w.note("the node says nothing on our connection")
		n.change(func() { n.mute = true })
	case 4:
		w.note("the node is frozen")
		n.change(func() { n.mute, n.deaf = true, true })
	}
	w.troubled(true)
}

// nodeBehind sets the node back, or lets it catch up some more.
func (w *world) nodeBehind() {
	n := w.node
	if n.broken != (chain.Point{}) {
		return
	}
	switch {
	case n.shown < 0:
		shown := w.rnd.IntN(len(n.blocks))
		w.note("the node is set back to block %d of %d", shown, len(n.blocks))
		n.turn(n.blocks, shown)
		w.node.hangUp() // a node that loses blocks has been restarted
		w.troubled(true)
	case w.rnd.IntN(2) == 0:
		shown := n.shown + w.rnd.IntN(len(n.blocks)-n.shown+1)
		w.note("the node catches up to block %d of %d", shown, len(n.blocks))
		n.turn(n.blocks, shown)
	default:
		w.note("the node has caught up")
		n.turn(n.blocks, -1)
		w.troubled(n.down || n.mute || n.refuses != nil)
	}
}

// breakBlock lets a block to come not decode, or mends it.
func (w *world) breakBlock() {
	n := w.node
	if n.shown >= 0 {
		return
	}
	if n.broken != (chain.Point{}) {
		w.note("the block decodes again")
		n.change(func() { n.broken = chain.Point{} })
		w.node.hangUp()
		w.troubled(n.down || n.mute || n.refuses != nil)
		return
	}
	at := len(n.blocks)
	w.extend(1 + w.rnd.IntN(4))
	p := n.blocks[at].Point
	w.note("block %v will not decode", n.blocks[at].At())
	n.change(func() { n.broken = p })
	w.troubled(true)
}

func (w *world) tellLie() {
	n := w.node
	l := lie(w.rnd.IntN(int(lieEnd)))
	w.note("a lie: %v", l)
	n.change(func() { n.lies = append(n.lies, l) })
	w.extend(1 + w.rnd.IntN(3))
}

// tune changes how the node answers.
func (w *world) tune() {
	n := w.node
	n.change(func() {
		n.group = 1 + w.rnd.IntN(60)
		n.latency = []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 5 * time.Second}[w.rnd.IntN(4)]
		n.cut = 0
		if w.rnd.IntN(3) == 0 {
			n.cut = 2 + w.rnd.IntN(20)
		}
	})
	w.note("runs of up to %d, latency up to %v, cut after %d", n.group, n.latency, n.cut)
}

func (w *world) killAtStep() {
	if w.life == nil {
		return
	}
	if w.tables > 0 { // tables are written in the background: a copy in the middle is none that a kill leaves
		w.killNow()
		return
	}
	l := w.life
	l.mu.Lock()
	l.kill, l.killIn = 1+w.rnd.IntN(8), ""
	if w.rnd.IntN(4) == 0 {
		l.kill, l.killIn = 1, []string{"committed", "rolling back", "half rolled back", "rolled back", "undo", "sweep"}[w.rnd.IntN(6)]
	}
	w.note("it will be killed in %d steps %s", l.kill, l.killIn)
	l.mu.Unlock()
	switch w.rnd.IntN(3) {
	case 0:
		w.fork()
	case 1:
		w.extend(1 + w.rnd.IntN(10))
	}
}

func (w *world) killNow() {
	if w.life == nil {
		return
	}
	w.note("killed now")
	synctest.Wait()
	w.stop(true)
}

func (w *world) diskFault() {
	if w.life == nil {
		return
	}
	l := w.life
	f := fault(1 + w.rnd.IntN(3))
	w.note("the disk will fail (%d)", f)
	l.mu.Lock()
	l.fault = f
	l.mu.Unlock()
	if f == failCommit {
		w.extend(1 + w.rnd.IntN(3))
	} else {
		w.fork()
	}
}

func (w *world) restart() {
	if w.life == nil {
		return
	}
	w.note("stopped")
	w.stop(false)
}

// subscribe makes a reader of any kind.
func (w *world) subscribe() {
	if w.life == nil || len(w.readers) > 14 {
		return
	}
	w.serial++
	r := &reader{w: w, q: query.Everything(), rate: []int{-1, -1, 0, 1, 5}[w.rnd.IntN(5)]}
	o := &r.opts
	switch w.rnd.IntN(6) {
	case 0:
		r.kind = hub.Txs
	case 1:
		r.kind = hub.Blocks
	default:
		r.kind = hub.UTxOs
	}
	switch w.rnd.IntN(4) {
	case 0:
		o.Start = hub.Origin
	case 1:
		w.startAfter(r)
	}
	if w.rnd.IntN(2) == 0 {
		o.Confirmations = chain.Height(w.rnd.IntN(int(w.k) + 1))
	}
	o.NoRollback = w.rnd.IntN(8) == 0
	o.Bound = hub.Unbounded
	if r.rate >= 0 && w.rnd.IntN(2) == 0 {
		o.Bound = 1 + w.rnd.IntN(60)
	}
	if r.kind == hub.UTxOs {
		o.Events = []hub.Events{hub.CreatedAndSpent, hub.CreatedAndSpent, hub.CreatedOnly, hub.SpentOnly}[w.rnd.IntN(4)]
		o.AcceptScan = w.rnd.IntN(8) > 0
		if o.Start == hub.Tip && w.rnd.IntN(4) > 0 {
			o.Seed = hub.SeedLater
		}
		switch w.rnd.IntN(4) {
		case 0, 1:
			r.q = query.AnyOf(w.address(), w.address(), w.address())
		case 2:
			r.q = query.AllOf(query.Not(w.address()), query.MinLovelace(uint64(w.rnd.IntN(20_000_000))))
		}
	}
	if r.kind != hub.Blocks {
		o.Idle = w.rnd.IntN(3) == 0
	}
	if o.Start == hub.After && r.depth() > 0 { // not above what may be seen
		st := w.life.app.State()
		if o.After.At.Height > st.Highest-r.depth() {
			o.Confirmations, o.NoRollback = 0, false
		}
	}
	r.name = r.describe(w.serial)
	w.note("subscribe %s", r.name)
	if !r.begin() {
		w.note("  refused, rightly")
		return
	}
	w.readers = append(w.readers, r)
}

func (w *world) address() query.UTxO { return query.Address(w.wallet[w.rnd.IntN(len(w.wallet))]) }

// startAfter lets a reader begin behind a block of our chain.
func (w *world) startAfter(r *reader) {
	st := w.life.app.State()
	path := w.path(w.published(st.Floor), originOr(st.Head))
	if len(path) == 0 {
		return
	}
	at := path[w.rnd.IntN(len(path))].At()
	r.opts.Start, r.opts.After = hub.After, chain.Cursor{At: at, Place: chain.WholeBlock}
}

func (w *world) cancelReader() {
	if len(w.readers) == 0 {
		return
	}
	r := w.readers[w.rnd.IntN(len(w.readers))]
	w.note("cancel %s", r.name)
	if r.s != nil {
		r.s.cancel()
		if _, ok, err := r.s.poll(wait); ok || err == nil {
			r.fail("cancelled, and goes on (%v)", err)
		}
	}
	r.end()
}

// forkTooDeep shows the follower a fork deeper than the security parameter: it
// must stop and touch nothing.
func (w *world) forkTooDeep() {
	n, l := w.node, w.life
	if l == nil || n.down || n.mute || n.refuses != nil || n.shown >= 0 || n.broken != (chain.Point{}) || n.Tip().Height <= w.k+2 {
		return
	}
	n.letGo()
	w.settle()
	if l = w.life; l == nil {
		return
	}
	blocks := slices.Clone(n.blocks)
	other := w.newForge(w.chainOf)
	for _, g := range w.grown {
		if g < 0 {
			if err := other.Rewind(-g); err != nil {
				w.t.Fatal(err)
			}
		}
		for range max(g, 0) {
			w.must(other.Next())
		}
	}
	depth := w.k + 1 + chain.Height(w.rnd.IntN(3))
	gone := w.blocksAbove(n.Tip().Height - depth)
	if gone >= len(blocks) {
		return
	}
	if err := other.Rewind(gone); err != nil {
		w.t.Fatal(err)
	}
	alt := slices.Clone(blocks[:len(blocks)-gone])
	for range gone + 3 {
		alt = append(alt, w.must(other.Next()))
	}
	w.note("a fork %d deep, k is %d", depth, w.k)
	before, highest := l.app.State(), n.highest
	n.change(func() { n.deep = n.highest - depth })
	n.turn(alt, -1)
	time.Sleep(time.Minute)
	w.look()
	if l.over == nil {
		w.fail("a fork %d deep, and it goes on", depth)
	}
	n.turn(blocks, -1)
	n.change(func() { n.highest = highest })
	w.open()
	if after := w.life.app.State(); after.Head != before.Head || after.UTxOs != before.UTxOs || after.Floor != before.Floor {
		w.fail("it was at %v, it is at %v", before.Head.At(), after.Head.At())
	}
}

// describe names a reader.
func (r *reader) describe(n int) string {
	start := map[hub.Start]string{hub.Tip: "tip", hub.Origin: "origin", hub.After: "after", hub.Resume: "resume"}[r.opts.Start]
	return fmt.Sprintf("%d (%v from %s, %.40s, depth %d, events %d, seed %d, idle %v, bound %d, rate %d)", n, r.kind, start, r.q, r.depth(), r.opts.Events, r.opts.Seed, r.opts.Idle, r.opts.Bound, r.rate)
}
