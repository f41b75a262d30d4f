package hub

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"pgregory.net/rapid"
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
		for range w.d(int(w.k + w.deepest + 1)) {
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

// weights of the steps of a long run.
var stepWeights = map[string]int{
	"grow": 10, "feed": 14, "feed again": 6, "fork": 6, "subscribe": 6, "seed": 5, "after": 2, "cancel": 1, "stop": 3, "resume": 3, "bad": 1, "status": 3, "restart": 1, "end": 1,
}

// TestModel compares the hub with the naive one under random steps that shrink.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, func(format string, args ...any) {
			t.Fatalf(format, args...)
		})
		actions := map[string]func(*rapid.T){}
		for name, step := range w.steps() {
			for i := range stepWeights[name] {
				actions[fmt.Sprintf("%s %d", name, i)] = func(*rapid.T) { step() }
			}
		}
		t.Repeat(actions)
	})
}

var (
	modelSteps = flag.Int("model.steps", 200_000, "steps of the long model run")
	modelSeed  = flag.Uint64("model.seed", 1, "first seed of the long model run")
)

// TestModelLong is the same with a plain generator, for a number of steps that
// -model.steps sets, from a seed that -model.seed sets. A failure names the seed of
// its episode, which with -model.steps 1 runs alone.
func TestModelLong(t *testing.T) {
	start, done, episodes := time.Now(), 0, 0
	seed := *modelSeed
	stats := map[string]int{}
	for ; done < *modelSteps; seed++ {
		n, err := modelEpisode(seed, stats)
		if done, episodes = done+n, episodes+1; err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, n, err)
		}
	}
	t.Logf("%d steps in %d episodes, seeds %d to %d, %v: clean", done, episodes, *modelSeed, seed-1, time.Since(start).Round(time.Second))
	for _, k := range slices.Sorted(maps.Keys(stats)) {
		t.Logf("%9d %s", stats[k], k)
	}
}

type modelFailure struct{ text string }

func modelEpisode(seed uint64, stats map[string]int) (n int, err error) {
	r := rand.New(rand.NewPCG(seed, 0x6f75726f))
	var w *world
	defer func() {
		if x := recover(); x != nil {
			f, ok := x.(modelFailure)
			if !ok {
				panic(x)
			}
			err = fmt.Errorf("%s\n%s", shortNames(f.text), shortNames(strings.Join(w.trace, "\n")))
		}
	}()
	w = newWorld(r.IntN, func(format string, args ...any) { panic(modelFailure{fmt.Sprintf(format, args...)}) })
	steps := w.steps()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(stepWeights)) {
		for range stepWeights[name] {
			names = append(names, name)
		}
	}
	for range pickInt(r.IntN, 15, 30, 60, 100, 200) {
		n++
		name := pick(r.IntN, names)
		w.note("# %s", name)
		steps[name]()
	}
	for k, v := range w.stats {
		stats[k] += v
	}
	return n, nil
}

var longName = regexp.MustCompile(`(\d+\.)?(62|74|67)0{0,16}([0-9a-f]*?)0{46,64}`)

// shortNames makes the points and ids of a world's text readable.
func shortNames(s string) string {
	return longName.ReplaceAllStringFunc(s, func(x string) string {
		m := longName.FindStringSubmatch(x)
		return map[string]string{"62": "b", "74": "t", "67": "g"}[m[2]] + m[3]
	})
}
