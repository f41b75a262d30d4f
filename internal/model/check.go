package model

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// look waits until nothing moves and checks what must hold at any moment.
func (w *world) look() {
	w.t.Helper()
	synctest.Wait()
	l := w.life
	if l == nil {
		return
	}
	if l.image != "" {
		w.note("killed at %q", l.killed)
		w.stop(true)
		w.open()
		return
	}
	if l.ended() {
		w.ended()
		return
	}
	if w.node.burst > 20 {
		w.fail("it spins: %d dials at one moment", w.node.burst)
	}
	w.compareStore(w.report.Steps%8 == 0)
	w.checkHealth()
	for _, r := range slices.Clone(w.readers) {
		tries := impatience
		if w.rnd.IntN(20) == 0 {
			tries = endurance
		}
		r.read(r.rate, tries)
	}
	synctest.Wait() // readers of the past let time go by
}

// compareStore checks that the set is the oracle's at the head.
func (w *world) compareStore(whole bool) {
	w.t.Helper()
	app := w.life.app
	st := app.State()
	want, err := w.oracle.Summary(st.Head.Point.Hash)
	if err != nil {
		w.fail("the head is %v: %v", st.Head.At(), err)
	}
	if w.link(originOr(st.Head)) != st.Head && !st.Head.Point.IsOrigin() {
		w.fail("the head is %+v, the chain has %+v", st.Head, w.link(st.Head.At()))
	}
	if int64(want.Count) != st.UTxOs || want.Lovelace != st.Lovelace {
		w.fail("at %v: %d outputs with %d, want %d with %d", st.Head.At(), st.UTxOs, st.Lovelace, want.Count, want.Lovelace)
	}
	w.traced("store %v %d %d", st.Head.At(), st.UTxOs, st.Highest)
	// Between the floor and the head there is no hole, and the floor is no higher
	// than it has to be.
	if !w.descends(originOr(st.Head), st.Floor) {
		w.fail("the floor %v is not below the head %v", st.Floor, st.Head.At())
	}
	if !whole {
		return
	}
	v := app.View()
	defer v.Close()
	d, err := v.Digest(w.t.Context())
	if err != nil {
		w.fail("%v", err)
	}
	if acc := hex.EncodeToString(want.Accumulator[:]); d.UTxOs != int64(want.Count) || d.Lovelace != want.Lovelace || d.Accumulator != acc {
		w.fail("at %v the set has %+v, want %d with %d and %s%s", st.Head.At(), d, want.Count, want.Lovelace, acc, w.difference(v, st.Head.Point))
	}
}

func (w *world) difference(v *ourotail.View, at chain.Point) string {
	want, err := w.oracle.Lines(at.Hash)
	if err != nil {
		return err.Error()
	}
	var got []string
	if err := v.Lines(w.t.Context(), query.Everything(), func(l []byte) error {
		got = append(got, string(l))
		return nil
	}); err != nil {
		return err.Error()
	}
	return diff(got, want)
}

func diff(got, want []string) string {
	var b strings.Builder
	shown := 0
	for _, side := range []struct {
		name     string
		has, not []string
	}{{"too many", got, want}, {"missing", want, got}} {
		there := map[string]int{}
		for _, l := range side.not {
			there[l]++
		}
		for _, l := range side.has {
			if there[l]--; there[l] < 0 && shown < 8 {
				fmt.Fprintf(&b, "\n  %s: %.300s", side.name, l)
				shown++
			}
		}
	}
	return b.String()
}

// ended decides whether Run had a reason to return.
func (w *world) ended() {
	w.t.Helper()
	l := w.life
	err := l.over
	w.note("Run returned: %v", err)
	st := l.app.State()
	var node *chainsync.Error
	var fatal *follow.FatalError
	switch {
	case l.faulted && errors.Is(err, errDisk) && errors.As(err, &fatal):
	case errors.Is(err, follow.ErrDiverged):
		if !errors.As(err, &fatal) || fatal.Hint == "" {
			w.fail("no hint: %v", err)
		}
		unknown := w.node.told[lieUnknown] > 0
		deep := st.Highest-w.node.deep > w.k || w.node.deep <= st.Floor.Height
		if !unknown && !deep {
			w.fail("it gave up: %v", err)
		}
	case !l.met && errors.As(err, &node) && !chainsync.Retryable(err):
	default:
		w.fail("it gave up: %v", err)
	}
	w.report.Fatal++
	w.node.change(func() { delete(w.node.told, lieUnknown); w.node.deep = 1 << 40 })
	if h := l.app.Health(); h.Grade != ourotail.Unhealthy {
		w.fail("it has ended, and its health is %+v", h)
	}
	w.compareStore(true)
	for _, r := range slices.Clone(w.readers) {
		if r.s == nil {
			continue
		}
		if past := r.s.replaying(); past {
			continue // it is given what was committed
		}
		if _, ok, err := r.s.poll(wait); ok || err == nil {
			r.fail("the follower failed, this subscription did not (%v)", err)
		}
		r.s = nil
	}
	w.stop(false)
}

// since is how long this follower has had a node that is not as it should be.
func (w *world) since() time.Duration {
	if w.trouble.IsZero() {
		return 0
	}
	return min(time.Since(w.trouble), time.Since(w.life.began))
}

// checkHealth compares what a follower says of itself with what the node does.
func (w *world) checkHealth() {
	w.t.Helper()
	l := w.life
	h, p, n := l.app.Health(), l.app.Progress(), w.node
	st, err := l.app.Status(w.t.Context(), false)
	if err != nil {
		w.fail("status: %v", err)
	}
	if st.Head != l.app.State().Head.Point || !st.Running || st.Phase != string(p.Phase) || st.Health.Grade != h.Grade {
		w.fail("status says %+v", st)
	}
	if h.Grade == ourotail.Healthy != (len(h.Reasons) == 0) {
		w.fail("health %+v", h)
	}
	if h.Grade == ourotail.Healthy && !h.Connected {
		w.fail("healthy and not connected: %+v", h)
	}
	if w.since() < 5*time.Minute { // everything is noticed within that
		return
	}
	tip := n.Tip()
	switch {
	case n.down, n.refuses != nil, n.mute && n.deaf:
		if h.Grade != ourotail.Unhealthy {
			w.fail("the node is gone since %v (down %v, refuses %v, mute %v), and health is %+v", w.since(), n.down, n.refuses, n.mute, h)
		}
		if h.Connected && !n.mute {
			w.fail("connected to a node that is gone: %+v", h)
		}
	case n.mute && tip.Point != p.Head.Point && time.Since(n.tipSince) > 5*time.Minute:
		if h.Grade == ourotail.Healthy {
			w.fail("the node says nothing since %v, its tip is %v, and health is %+v", w.since(), tip, h)
		}
		if d := min(w.since(), time.Since(n.tipSince)); d > 15*time.Minute && time.Since(n.lastDial) > d {
			w.fail("the node says nothing since %v, its tip is %v, and no other connection was tried", w.since(), tip)
		}
	case !n.mute && n.broken != chain.Point{}:
		// Another lie may have ended the newest session.
		if _, reached := w.onWay(n.broken, p.Head); reached && !errors.Is(p.LastError, follow.ErrNonsense) && !errors.Is(p.LastError, chainsync.ErrDisconnected) {
			w.checkUndecodable(h)
		}
	case !n.mute && n.shown >= 0 && tip != originOr(p.Head) && w.descends(originOr(p.Head), tip):
		if h.Grade != ourotail.Degraded || !strings.Contains(strings.Join(h.Reasons, " "), "behind us") {
			w.fail("the node is at %v since %v, we are at %v, and health is %+v (%v)", tip, w.since(), p.Head.At(), h, p.Phase)
		}
	}
}

// onWay tells whether a block comes next above a head.
func (w *world) onWay(p chain.Point, head chain.Link) (chain.Link, bool) {
	l, ok := w.links[p.Hash]
	if !ok || l.Parent != head.Point.Hash && !head.Point.IsOrigin() {
		return l, false
	}
	return l, true
}

func (w *world) checkUndecodable(h ourotail.Health) {
	w.t.Helper()
	if h.Grade != ourotail.Unhealthy || h.Undecodable == "" {
		w.fail("a block does not decode since %v, and health is %+v", w.since(), h)
	}
	raw := w.raw[w.node.broken]
	kept, err := os.ReadFile(h.Undecodable)
	lied := slices.ContainsFunc(w.node.spoilt, func(b []byte) bool { return slices.Equal(b, kept) }) // by another lie since
	if err != nil || !lied && !slices.Equal(kept, raw[:len(raw)-2]) {
		w.fail("%d bytes of it were kept (%v)", len(kept), err)
	}
}

// settle lets the node be as it should be and checks that all is exact.
func (w *world) settle() {
	w.t.Helper()
	n := w.node
	n.hold()
	n.change(func() {
		n.down, n.mute, n.deaf, n.refuses, n.broken, n.lies, n.cut = false, false, false, nil, chain.Point{}, nil, 0
		n.group = 1 + w.rnd.IntN(40)
	})
	n.turn(n.blocks, -1)
	n.letGo()
	w.trouble = time.Time{}
	for tries := 0; ; tries++ {
		if w.life == nil {
			w.open()
		}
		l := w.life
		l.mu.Lock()
		l.kill, l.fault = 0, noFault
		l.mu.Unlock()
		time.Sleep(time.Second)
		w.look()
		if w.life == l && l.app.State().Head.Point == n.Tip().Point && l.app.Progress().Phase == follow.Following && l.app.Progress().LastError == nil &&
			(tries > 60 || l.app.Health().Grade == ourotail.Healthy) { // a node that was asked in vain is asked again within half a minute
			break
		}
		if tries > 600 {
			w.fail("ten minutes with a good node, and it is not at its tip")
		}
	}
	w.report.Settled++
	l := w.life
	st := l.app.State()
	w.note("settled at %v", st.Head.At())
	h := l.app.Health()
	if h.Grade != ourotail.Healthy && h.DiskFree > 1<<30 || !h.Connected || h.LagBlocks != 0 || h.LastError != "" || h.Undecodable != "" {
		w.fail("all is well, and health is %+v", h)
	}
	if want := max(n.highest-w.k, chain.OriginHeight); st.Highest != n.highest || st.Floor.Height > want && !(want < w.genesis.FirstHeight && st.Floor.IsOrigin()) {
		w.fail("highest %d, floor %v; the chain's highest tip ever was %d, k is %d", st.Highest, st.Floor, n.highest, w.k)
	}
	w.compareStore(true)
	tips, err := l.app.SubscribeTips()
	if err != nil {
		w.fail("%v", err)
	}
	if tip, ok, err := tips.Poll(); !ok || err != nil || tip != w.published(st.Head.At()) {
		w.fail("the tip is said to be %v (%v, %v)", tip, ok, err)
	}
	tips.Cancel()
	for _, r := range slices.Clone(w.readers) {
		r.read(-1, endurance)
	}
	for _, r := range slices.Clone(w.readers) {
		if r.s != nil {
			r.verify()
		}
	}
}

// verify compares everything that a reader was given with the chain.
func (r *reader) verify() {
	w := r.w
	w.t.Helper()
	head := w.life.app.State().Head.At()
	c, ok := r.s.cursor()
	if !ok || c.Place != chain.WholeBlock {
		r.fail("it has read everything and stands nowhere: %v %v", c, ok)
	}
	if r.seeding {
		r.fail("its seed never ended")
	}
	want := w.gate(head, r.depth())
	if r.start.Height > want.Height {
		want = r.start
	}
	if c.At != want {
		r.fail("it stands at %v, want %v (depth %d, start %v)", c.At, want, r.depth(), r.start)
	}
	seen := 0
	for _, l := range w.path(r.start, c.At) {
		got := r.blocks[l.Point]
		if len(got) > 0 {
			seen++
		}
		if l.Height <= r.sound {
			continue
		}
		if due := r.due(l); !slices.Equal(got, due) {
			r.fail("of block %v it has %d events, want %d%s", l.At(), len(got), len(due), diff(got, due))
		}
	}
	if seen != len(r.blocks) {
		r.fail("it has events of %d blocks, %d of them are on the chain above %v", len(r.blocks), seen, r.start)
	}
	r.sound = c.At.Height
	if !r.folds {
		return
	}
	var got []string
	for _, h := range r.set {
		if h.spent == notSpent {
			got = append(got, h.line)
		}
	}
	slices.Sort(got)
	if due := r.lines(c.At); !slices.Equal(got, due) {
		r.fail("its events come to %d outputs at %v, want %d%s", len(got), c.At, len(due), diff(got, due))
	}
}

// lines is what a query wants of the oracle's set.
func (r *reader) lines(at chain.At) (out []string) {
	set, err := r.w.oracle.Set(at.Point.Hash)
	if err != nil {
		r.fail("%v", err)
	}
	for _, o := range set {
		if r.wants(o) {
			out = append(out, o.Line())
		}
	}
	slices.Sort(out)
	return out
}

func (r *reader) wants(o *forge.Output) bool {
	return r.q.Match(&chain.UTxO{Ref: o.Ref, Out: chain.TxOut{Address: o.Address, Lovelace: o.Lovelace, Assets: o.Assets}})
}

// due is what a reader must be given of a block.
func (r *reader) due(l chain.Link) (out []string) {
	e, err := r.w.oracle.Effects(l.Point.Hash)
	if err != nil {
		r.fail("%v", err)
	}
	switch r.kind {
	case hub.Blocks:
		return []string{"block"}
	case hub.Txs:
		if len(e.Removed) > 0 {
			out = append(out, fmt.Sprintf("%s valid=true -%d +0", chain.TxID{}, len(e.Removed)))
		}
		for _, tx := range e.Txs {
			out = append(out, fmt.Sprintf("%s valid=%v -%d +%d", tx.ID, tx.Valid, len(tx.Spent), len(tx.Created)))
		}
	default:
		spent := func(o *forge.Output, by chain.TxID, valid bool) {
			if r.opts.Events != hub.CreatedOnly && r.wants(o) {
				out = append(out, fmt.Sprintf("-%s by %s@%d valid=%v", o.Line(), by, o.Height, valid))
			}
		}
		for _, o := range e.Removed {
			spent(o, chain.TxID{}, true)
		}
		for _, tx := range e.Txs {
			for _, o := range tx.Spent {
				spent(o, tx.ID, tx.Valid)
			}
			for _, o := range tx.Created {
				if r.opts.Events != hub.SpentOnly && r.wants(o) {
					out = append(out, fmt.Sprintf("+%s@%d valid=%v", o.Line(), o.Height, tx.Valid))
				}
			}
		}
	}
	if len(out) == 0 && r.opts.Idle {
		out = append(out, "idle")
	}
	return out
}
