package hub

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// dice is where a world's chances come from: rapid, which shrinks, or a plain
// generator, which is fast.
type dice func(n int) int

func (d dice) chance(percent int) bool { return d(100) < percent }

func pick[T any](d dice, from []T) T { return from[d(len(from))] }

// block of the world's tree, with the set of unspent outputs after it.
type wblock struct {
	at     chain.At
	parent *wblock
	txs    []chain.AppliedTx
	set    map[chain.TxIn]*chain.UTxO
	cov    chain.Coverage // it was last applied with
}

// world drives a hub and the naive one through the same calls, compares what
// every reader gets after each, and checks the named promises against the tree
// of all blocks, of which neither hub knows anything.
type world struct {
	d       dice
	fail    func(format string, args ...any)
	k       chain.Height
	deepest chain.Height
	first   chain.Height
	partial bool
	idle    bool
	thin    bool

	genesis []*chain.UTxO
	origin  *wblock
	all     []*wblock
	byAtMu  sync.Mutex // some drivers read the journal from other goroutines
	byAt    map[chain.Point]*wblock
	fed     *wblock // where the hubs stand
	node    *wblock // where the node stands, at or ahead of it, or on a fork
	highest chain.Height

	hub       *Hub
	naive     *naiveHub
	readers   []*wreader
	retired   []*wreader // stopped, with a cursor to come back with
	reads     []wread
	spawned   []*wreader                // subscribed in a callback during the present call
	sources   map[chain.Source]struct{} // probed at the last height
	tips      Subscription[chain.Tip]
	statuses  map[chain.TxID]*wstatus
	submitted map[chain.TxID]bool
	serial    uint64
	calls     int
	trace     []string
	stats     map[string]int
}

// wread is a seed that was read and has not been handed in.
type wread struct {
	r    *wreader
	at   chain.At
	rows []*chain.UTxO
}

// wreader is one subscription in both hubs and what its reader knows.
type wreader struct {
	name string
	q    naiveQuery
	o    Options
	real any // *UTxOSubscription, *TxSubscription or *BlockSubscription
	sub  *sub
	n    *naiveSub

	stale    bool
	log      []wevent
	lastAt   chain.Height
	blocks   map[chain.Height]chain.At // seen, and not rolled back
	cursor   string
	midSeed  bool
	lazy     bool // reads now and then
	callback int  // 1: cancels itself in its callback; 2: subscribes another one
	woken    int
	died     string
}

type wevent struct {
	created bool
	ref     chain.TxIn
	h       chain.Height
}

var worldAddrs = []string{"a", "b", "c"}
var worldPolicies = []chain.Hash28{{'x'}, {'y'}}

func newWorld(d dice, fail func(string, ...any)) *world {
	w := &world{d: d, fail: fail, byAt: map[chain.Point]*wblock{}, stats: map[string]int{}}
	w.k = chain.Height(1 + d(5))
	w.deepest = w.k + chain.Height(d(4))
	w.partial = d.chance(35)
	w.idle = d.chance(80)
	w.thin = !w.partial && d.chance(50)
	if d.chance(25) {
		w.first = 1
	}
	w.origin = &wblock{at: chain.Origin, set: map[chain.TxIn]*chain.UTxO{}}
	for i := range 1 + d(4) {
		u := w.output(chain.TxIn{ID: chain.TxID{'g'}, Index: uint32(i)}, chain.Origin)
		w.genesis = append(w.genesis, u)
		w.origin.set[u.Ref] = u
	}
	w.fed, w.node, w.highest = w.origin, w.origin, -1
	w.start(State{Tip: chain.Origin, Highest: -1, Floor: chain.Origin})
	return w
}

func (w *world) note(format string, args ...any) {
	if len(w.trace) < 5000 {
		w.trace = append(w.trace, fmt.Sprintf(format, args...))
	}
}

func (w *world) start(s State) {
	bound := chain.Height(1 + w.d(int(w.k+w.deepest)))
	cfg := Config{
		Capabilities: Capabilities{
			Kinds: allKinds(), Partial: w.partial, Indexed: ^query.Kinds(0), Replay: true, Horizon: w.k, MaxConfirmations: w.deepest, Idle: w.idle,
		},
		FirstHeight: w.first, SeedWindow: bound, Bound: Unbounded,
		Genesis: func(q query.UTxO) (rows []*chain.UTxO, err error) {
			for _, u := range w.genesis {
				if q.Match(u) {
					rows = append(rows, u)
				}
			}
			return rows, nil
		},
	}
	if w.thin {
		cfg.Contents = w
	}
	w.hub = New(cfg)
	if err := w.hub.Restore(s); err != nil {
		w.fail("restore: %v", err)
	}
	w.naive = &naiveHub{
		partial: w.partial, idleOK: w.idle, k: w.k, deepest: w.deepest, keep: bound, first: w.first, genesis: w.genesis,
		floor: s.Floor, tip: s.Tip, highest: s.Highest, orphans: map[chain.Point]naiveBlock{},
	}
	var err error
	if w.tips, err = w.hub.SubscribeTip(); err != nil {
		w.fail("tip: %v", err)
	}
	w.statuses, w.submitted = map[chain.TxID]*wstatus{}, map[chain.TxID]bool{}
	below := s.Floor
	for _, b := range s.Blocks {
		w.naive.blocks = append(w.naive.blocks, naiveBlock{b, below})
		below = b.At
	}
	low := s.Highest - w.k - w.deepest
	for len(w.naive.blocks) > 0 && w.naive.blocks[0].At.Height <= low {
		w.naive.floor = w.naive.blocks[0].At
		w.naive.blocks = w.naive.blocks[1:]
	}
}

// Block is the journal of a hub that keeps little.
func (w *world) Block(at chain.At) (*chain.AppliedBlock, error) {
	w.byAtMu.Lock()
	defer w.byAtMu.Unlock()
	if b := w.byAt[at.Point]; b != nil {
		return &chain.AppliedBlock{At: b.at, Txs: b.txs, Coverage: chain.Complete}, nil
	}
	return nil, errors.New("no such block")
}

func (w *world) output(ref chain.TxIn, at chain.At) *chain.UTxO {
	u := &chain.UTxO{Ref: ref, At: at, Out: chain.TxOut{Address: []byte(pick(w.d, worldAddrs)), Lovelace: uint64(w.d(3))}}
	if w.d.chance(40) {
		u.Out.Assets = []chain.Asset{{Policy: pick(w.d, worldPolicies), Quantity: 1}}
	}
	return u
}

func (w *world) id(tag byte) (id chain.TxID) {
	w.serial++
	id[0] = tag
	binary.BigEndian.PutUint64(id[1:], w.serial)
	return id
}

// grow makes a block on top of where the node stands.
func (w *world) grow() {
	p := w.node
	h := max(p.at.Height+1, w.first)
	b := &wblock{parent: p, at: chain.At{Point: chain.Point{Slot: chain.Slot(10*h) + chain.Slot(w.d(5)), Hash: w.id('b')}, Height: h}}
	b.set = maps.Clone(p.set)
	place := uint32(0)
	for i := range w.d(4) {
		if len(b.set) == 0 {
			break
		}
		t := chain.AppliedTx{ID: w.id('t'), Index: i, Valid: w.d.chance(85)}
		for range 1 + w.d(2) {
			refs := slices.SortedFunc(maps.Keys(b.set), chain.TxIn.Compare)
			if len(refs) == 0 {
				break
			}
			r := pick(w.d, refs)
			t.Spent = append(t.Spent, chain.Effect{UTxO: b.set[r]})
			delete(b.set, r)
		}
		slices.SortFunc(t.Spent, func(x, y chain.Effect) int { return x.UTxO.Ref.Compare(y.UTxO.Ref) })
		from, n := 0, 1+w.d(3)
		if !t.Valid {
			from, n = 1+w.d(2), 1
		}
		if len(b.set) > 8 {
			n = 1
		}
		for j := range n {
			u := w.output(chain.TxIn{ID: t.ID, Index: uint32(from + j)}, b.at)
			t.Created = append(t.Created, chain.Effect{UTxO: u})
			b.set[u.Ref] = u
		}
		for _, list := range [][]chain.Effect{t.Spent, t.Created} {
			for j := range list {
				list[j].Place = place
				place++
			}
		}
		b.txs = append(b.txs, t)
	}
	w.all = append(w.all, b)
	w.byAtMu.Lock()
	w.byAt[b.at.Point] = b
	w.byAtMu.Unlock()
	w.node = b
	w.note("node: block %v on %v", b.at, p.at)
}

// applied is a block as the provider hands it over.
func (w *world) applied(b *wblock, cov chain.Coverage) *chain.AppliedBlock {
	out := &chain.AppliedBlock{At: b.at, Txs: b.txs, Coverage: cov}
	if cov.Complete {
		return out
	}
	hit := func(list []chain.Effect) (out []chain.Effect) {
		for _, e := range list {
			for s := range cov.Sources {
				if query.MatchSource(s, e.UTxO) {
					out = append(out, e)
					break
				}
			}
		}
		return out
	}
	out.Txs = nil
	for _, t := range b.txs {
		t.Spent, t.Created = hit(t.Spent), hit(t.Created)
		if len(t.Spent)+len(t.Created) > 0 {
			out.Txs = append(out.Txs, t)
		}
	}
	return out
}

// probe says what a partial provider examines: what it was asked for by the
// last height, mostly.
func (w *world) probe() chain.Coverage {
	if !w.partial || w.d.chance(5) {
		return chain.Complete
	}
	now := map[chain.Source]struct{}{}
	for _, r := range w.readers {
		if r.sub.state != dead && r.q.kind == UTxOs {
			for _, s := range leavesOf(r.q.output) {
				now[s] = struct{}{}
			}
		}
	}
	c := chain.Coverage{Sources: map[chain.Source]struct{}{}}
	for _, s := range sortedSources(now) {
		if _, ok := w.sources[s]; (ok || w.d.chance(30)) && !w.d.chance(2) {
			c.Sources[s] = struct{}{}
		}
	}
	w.sources = now
	return c
}

func sortedSources(m map[chain.Source]struct{}) []chain.Source {
	return slices.SortedFunc(maps.Keys(m), func(a, b chain.Source) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Key, b.Key))
	})
}

// leavesOf are the sources a provider probes for a query: all it is made of.
func leavesOf(q query.UTxO) (out []chain.Source) {
	for _, a := range worldAddrs {
		if strings.Contains(q.String(), query.Address([]byte(a)).String()) {
			out = append(out, chain.Source{Kind: chain.SourceAddress, Key: a})
		}
	}
	for _, p := range worldPolicies {
		if strings.Contains(q.String(), query.Asset(p, nil).String()) {
			out = append(out, chain.Source{Kind: chain.SourceAsset, Key: string(p[:])})
		}
	}
	return out
}

func (b *wblock) below(h chain.Height) *wblock {
	for b.at.Height > h && b.parent != nil {
		b = b.parent
	}
	return b
}

func ancestorOf(a, b *wblock) *wblock {
	for a != b {
		if a.at.Height >= b.at.Height {
			a = a.parent
		} else {
			b = b.parent
		}
	}
	return a
}

// feed takes the hubs one step towards the node; false if they are there.
func (w *world) feed() bool {
	if w.naive.dead {
		return false
	}
	if a := ancestorOf(w.fed, w.node); a != w.fed {
		w.fed = a
		w.rollback(a.at)
		return true
	}
	next := w.node
	for next != w.fed && next.parent != w.fed {
		next = next.parent
	}
	if next == w.fed {
		return false
	}
	if w.partial && next != w.node && w.d.chance(8) { // skips a height
		at := w.node
		for at.parent != next {
			at = at.parent
		}
		next = at
	}
	next.cov = w.probe()
	w.fed = next
	w.apply(w.applied(next, next.cov))
	return true
}

func (w *world) apply(b *chain.AppliedBlock) {
	w.note("hub: apply %v %v", b.At, b.Coverage)
	err := w.hub.ApplyBlock(b)
	want := w.naive.apply(b)
	w.sameRefusal("apply", err, want)
	w.highest = max(w.highest, w.naive.highest)
	w.settle()
}

func (w *world) rollback(to chain.At) {
	w.note("hub: roll back to %v", to)
	err := w.hub.RollbackTo(to)
	want := w.naive.rollback(to)
	w.sameRefusal("rollback", err, want)
	w.settle()
}

var refusals = map[string][]error{
	"dead": {ErrFailed, ErrClosed}, "height": {ErrHeight}, "ahead": {ErrAhead}, "unknown": {ErrUnknownPoint}, "resync": {ErrResync},
	"depth": {ErrUnsupported}, "reach": {ErrReach}, "shallow": {ErrShallow}, "overflow": nil, "lost": nil, "older": nil, "gap": nil,
}

func (w *world) sameRefusal(what string, err error, want string) {
	verb, _, _ := strings.Cut(what, " ")
	result, _, _ := strings.Cut(want, " ")
	w.stats[verb+" "+result]++
	if (err == nil) != (want == "") {
		w.fail("%s: %v, want %q", what, err, want)
	}
	if err == nil {
		return
	}
	if rest, ok := strings.CutPrefix(want, "orphaned "); ok {
		var o *OrphanedError
		if !errors.As(err, &o) || o.Ancestor.String() != rest {
			w.fail("%s: %v, want %s", what, err, want)
		}
		return
	}
	for _, e := range refusals[want] {
		if errors.Is(err, e) {
			return
		}
	}
	if len(refusals[want]) > 0 {
		w.fail("%s: %v, want %q", what, err, want)
	}
}

func (w *world) query() naiveQuery {
	if !w.partial && w.d.chance(12) {
		q := naiveQuery{kind: Txs, tx: query.EveryTx()}
		switch w.d(3) {
		case 0:
			q.tx = query.Involves([]byte(pick(w.d, worldAddrs)))
		case 1:
			q.tx = query.NotTx(query.Involves([]byte(pick(w.d, worldAddrs))))
		}
		return q
	}
	if !w.partial && w.d.chance(8) {
		q := naiveQuery{kind: Blocks, block: query.EveryBlock()}
		if w.d.chance(60) {
			from := w.fed.at.Point.Slot
			q.block = query.Slots(from, from+chain.Slot(w.d(60)))
		}
		return q
	}
	leaf := func() query.UTxO {
		if w.d.chance(70) {
			return query.Address([]byte(pick(w.d, worldAddrs)))
		}
		return query.Asset(pick(w.d, worldPolicies), nil)
	}
	q := naiveQuery{kind: UTxOs}
	switch w.d(10) {
	case 0, 1:
		q.output = query.AnyOf(leaf(), leaf())
	case 2:
		q.output = query.AllOf(leaf(), leaf())
	case 3:
		q.output = query.AllOf(leaf(), query.Not(query.MinLovelace(1)))
	case 4:
		if q.output = leaf(); !w.partial {
			q.output = query.Not(leaf())
		}
	default:
		q.output = leaf()
	}
	return q
}

func (w *world) options(kind Kind) Options {
	o := Options{
		Events:        pick(w.d, []Events{CreatedAndSpent, CreatedAndSpent, CreatedAndSpent, CreatedOnly, SpentOnly}),
		Confirmations: pick(w.d, []chain.Height{0, 0, 1, 2, w.k, w.deepest}),
		NoRollback:    w.d.chance(15), Idle: w.d.chance(50), Bound: Unbounded,
	}
	if w.d.chance(20) {
		o.Bound = 1 + w.d(6)
	}
	if kind != UTxOs {
		o.Events = CreatedAndSpent
	}
	return o
}

func (w *world) rows(b *wblock, q query.UTxO) (rows []*chain.UTxO) {
	for _, r := range slices.SortedFunc(maps.Keys(b.set), chain.TxIn.Compare) {
		if u := b.set[r]; q.Match(u) {
			rows = append(rows, u)
		}
	}
	return rows
}

func (w *world) subscribe(r *wreader) error {
	var err error
	switch r.q.kind {
	case Txs:
		var s *TxSubscription
		if s, err = w.hub.SubscribeTx(r.q.tx, r.o); err == nil {
			r.real, r.sub = s, &s.sub
		}
	case Blocks:
		var s *BlockSubscription
		if s, err = w.hub.SubscribeBlock(r.q.block, r.o); err == nil {
			r.real, r.sub = s, &s.sub
		}
	default:
		o := r.o
		o.Stale = func() { r.stale = true }
		var s *UTxOSubscription
		if s, err = w.hub.SubscribeUTxO(r.q.output, o); err == nil {
			r.real, r.sub = s, &s.sub
		}
	}
	return err
}

// begin registers a reader with both hubs; false if both refuse.
func (w *world) begin(r *wreader) bool {
	err := w.subscribe(r)
	var why string
	if r.o.Start == After || r.o.Start == Resume {
		r.n, why = w.naive.after(r.q, r.o)
	} else {
		r.n, why = w.naive.subscribe(r.q, r.o)
	}
	w.note("%s: subscribe %+v -> %v", r.name, r.describe(), err)
	w.sameRefusal("subscribe "+r.name, err, why)
	if err != nil {
		return false
	}
	callback := r.callback
	r.callback = 0
	w.readers = append(w.readers, r)
	w.settle()
	if callback > 0 && r.n.state != dead {
		r.callback = callback // it hears of what comes from here on
		w.setWake(r)
	}
	return true
}

func (r *wreader) describe() string {
	return fmt.Sprintf("kind=%v %v%v%v start=%d after=%v d=%d norb=%v seed=%d events=%d bound=%d idle=%v", r.q.kind, r.q.output, r.q.tx, r.q.block,
		r.o.Start, r.o.After, r.o.Confirmations, r.o.NoRollback, r.o.Seed, r.o.Events, r.o.Bound, r.o.Idle)
}

func (w *world) newReader() *wreader {
	w.calls++
	q := w.query()
	return &wreader{name: fmt.Sprintf("r%d", w.calls), q: q, o: w.options(q.kind), blocks: map[chain.Height]chain.At{}, lastAt: -2}
}

func (r *wreader) poll() (line string, ok bool, err error) {
	switch s := r.real.(type) {
	case *UTxOSubscription:
		e, ok, err := s.Poll()
		if !ok {
			return "", false, err
		}
		return r.output(&e), true, nil
	case *TxSubscription:
		e, ok, err := s.Poll()
		if !ok {
			return "", false, err
		}
		text := fmt.Sprintf("%v %v", e.Kind, e.At)
		if e.Kind == chain.Included {
			text = fmt.Sprintf("included %v %v", e.Tx.ID, e.At)
		} else if e.Kind == chain.RolledBack {
			text += fmt.Sprintf(" from %v", *e.Mark)
		}
		c, _ := e.Cursor()
		return text + " | " + c.String(), true, nil
	case *BlockSubscription:
		e, ok, err := s.Poll()
		if !ok {
			return "", false, err
		}
		text := fmt.Sprintf("%v %v", e.Kind, e.At)
		if e.Kind == chain.RolledBack {
			text += fmt.Sprintf(" from %v", *e.Mark)
		}
		c, _ := e.Cursor()
		return text + " | " + c.String(), true, nil
	}
	return "", false, io.EOF
}

// output writes an event as the naive hub does, and takes it into the fold.
func (r *wreader) output(e *chain.UTxOEvent) string {
	var text string
	switch {
	case e.Because == chain.Seed:
		text = fmt.Sprintf("seed %v %v", e.UTxO.Ref, e.At)
	case e.Because == chain.Correction:
		text = fmt.Sprintf("correction %v %v to %v", e.UTxO.Ref, e.At, *e.Mark)
	case e.Kind == chain.RolledBack:
		text = fmt.Sprintf("rolledback %v from %v", e.At, *e.Mark)
	case e.Kind == chain.Idle:
		text = fmt.Sprintf("idle %v", e.At)
	default:
		text = fmt.Sprintf("%v %v by %v valid=%v tx=%d index=%d %v last=%v,%v", e.Kind, e.UTxO.Ref, e.Tx, e.TxValid, e.TxIndex, e.Index, e.At, e.LastOfTx, e.LastOfBlock)
	}
	c, ok := e.Cursor()
	if ok {
		text += " | " + c.String()
	} else {
		text += " | "
	}
	r.take(e)
	return text
}

// take is a reader that knows nothing but its events (contract 4.1).
func (r *wreader) take(e *chain.UTxOEvent) {
	switch e.Kind {
	case chain.Created:
		r.log = append(r.log, wevent{true, e.UTxO.Ref, e.At.Height})
	case chain.Spent:
		r.log = append(r.log, wevent{false, e.UTxO.Ref, e.At.Height})
	case chain.RolledBack:
		r.log = slices.DeleteFunc(r.log, func(x wevent) bool { return x.h > e.At.Height })
	}
}

func (r *wreader) fold() map[chain.TxIn]bool {
	have := map[chain.TxIn]bool{}
	for _, e := range r.log {
		if e.created {
			have[e.ref] = true
		} else {
			delete(have, e.ref)
		}
	}
	return have
}
