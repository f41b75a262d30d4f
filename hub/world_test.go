package hub

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
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
	bound := chain.Height(1 + w.d(2*int(w.k+w.deepest)))
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
	err := w.applyOrPass(b)
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

// applyOrPass gives the hub a block, by name alone where that is enough.
func (w *world) applyOrPass(b *chain.AppliedBlock) error {
	var txs []chain.TxEffects
	for i := range b.Txs {
		txs = append(txs, chain.TxEffects{ID: b.Txs[i].ID, Valid: b.Txs[i].Valid})
	}
	if b.Coverage.Complete {
		if ok, flush, err := w.hub.Pass(b.At, txs); ok {
			flush()
			return err
		}
	}
	return w.hub.ApplyBlock(b)
}
