package hub

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/mailbox"
	"github.com/ourotail/ourotail/query"
)

// Config says what a hub serves and from where.
type Config struct {
	Capabilities Capabilities
	// FirstHeight is the height of the chain's first real block: 0, or 1 behind
	// a genesis boundary block (contract 1.5).
	FirstHeight chain.Height
	// BehindFirst tells that origin stands for whatever lies behind the first real
	// block, such as a genesis boundary block at height 0: a rollback to it is as deep
	// as one to the height under that block, not to origin's own.
	BehindFirst bool
	// SeedWindow bounds how many blocks below the tip are held for the sake of
	// deferred seeds that are not in yet; 0 for DefaultSeedWindow.
	SeedWindow chain.Height
	// Bound is the number of unread events a subscription may have that names no
	// bound of its own; 0 for DefaultBound, Unbounded for none.
	Bound int
	// Genesis returns the genesis outputs that a query wants, their point origin
	// (contract 1.7). Nil if there are none. Called with no lock held.
	Genesis func(query.UTxO) ([]*chain.UTxO, error)
	// Contents reads blocks whose contents the window no longer holds; nil to
	// hold all contents. Only for complete providers.
	Contents Contents
	// History answers for the status of transactions below the window; nil if
	// nothing can. Called with no lock held.
	History History
	// StatusTable bounds the transactions recorded that nobody subscribes to; 0
	// for DefaultStatusTable.
	StatusTable int
	// Changed, if set, is called with no lock held after the sources that
	// subscriptions want may have changed: one came, or one ended by whatever
	// route; see Sources.
	Changed func()
	Logger  *slog.Logger
}

// Defaults of Config.
const (
	DefaultSeedWindow chain.Height = 2160
	DefaultBound      int          = 65536
)

// Hub is the registry and the fan-out. It is safe for concurrent use, except
// that applying and rolling back are for one goroutine at a time: blocks have an
// order.
type Hub struct {
	cfg Config

	mu      sync.Mutex
	win     window
	tip     chain.At
	highest chain.Height // ever applied
	// highestBase is no lower than any subscription's base.
	highestBase chain.Height
	orphans     map[chain.Point]*entry // blocks rolled back less than k blocks ago
	failed      error                  // why nothing can be subscribed to any more
	count       int                    // subscriptions for outputs, transactions and blocks
	groups      []*group
	loose       subList // live ones of a partial provider
	await       subList // those whose seed is not in
	awaiting    heights // their watermarks
	pins        heights // above which contents are being read
	held        map[*sub]struct{}
	idlers      map[*sub]struct{}
	index       [3]index // of UTxOs, Txs, Blocks

	tips     latest[chain.Tip]
	params   latest[ProtocolParams]
	statuses statuses

	scratch [64]byte // for keys being looked up
	probes  probes
	serial  uint64 // counts effects, to match each subscription once with each
	hits    []hit
	touched []*sub // those with hits
	chains  []hit  // the hits of one of them

	utxoEvents  []chain.UTxOEvent // being gathered for one subscription
	txEvents    []chain.TxEvent
	blockEvents []chain.BlockEvent

	out   []mail   // to be flushed when the mutex is released
	spare []mail   // room for the next out
	later []func() // to be called then
}

// New returns a hub at origin.
func New(cfg Config) *Hub {
	if cfg.SeedWindow <= 0 {
		cfg.SeedWindow = DefaultSeedWindow
	}
	if cfg.Bound == 0 {
		cfg.Bound = DefaultBound
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hub{
		cfg: cfg, tip: chain.Origin, tips: latest[chain.Tip]{value: chain.Origin, known: true}, highest: chain.OriginHeight, win: window{floor: chain.Origin, thinned: chain.OriginHeight}, highestBase: chain.OriginHeight,
		orphans: map[chain.Point]*entry{}, awaiting: heights{}, pins: heights{}, held: map[*sub]struct{}{}, idlers: map[*sub]struct{}{},
	}
}

// State is what a hub starts from: the newest block published, the highest
// height ever applied, and the blocks of the journal, oldest first and without
// a gap, of which the last is the tip. Floor is the point just below the oldest
// of them; with none it is the tip.
type State struct {
	Tip     chain.At
	Highest chain.Height
	Floor   chain.At
	Blocks  []*chain.AppliedBlock
	// Orphans are the blocks that were undone and whose contents Contents still
	// has: cursors on them can be resumed from.
	Orphans []Orphan
}

// Orphan names an undone block and the block below it, which is on the chain or
// undone as well.
type Orphan struct{ At, Parent chain.At }

// Restore replaces everything the hub knows of the chain. It is refused while
// somebody is subscribed.
func (h *Hub) Restore(s State) (err error) {
	h.lockedFlush(func() { err = h.restore(s) })
	return err
}

func (h *Hub) restore(s State) error {
	if h.failed != nil {
		return h.failed
	}
	if h.subscribers() > 0 {
		return ErrBusy
	}
	tip, floor := norm(s.Tip), norm(s.Floor)
	w := window{floor: floor, thinned: floor.Height}
	below := floor
	for _, b := range s.Blocks {
		if b.At.Height <= below.Height || !h.cfg.Capabilities.Partial && b.At.Height != max(below.Height+1, h.cfg.FirstHeight) {
			return fmt.Errorf("restoring: %w: %v after %v", ErrHeight, b.At, below)
		}
		w.push(entry{at: b.At, parent: below, cov: b.Coverage, b: b})
		below = b.At
	}
	if below != tip {
		return fmt.Errorf("restoring: %w: the newest block held is %v, the tip %v", ErrUnknownPoint, below, tip)
	}
	h.win, h.tip, h.highest, h.highestBase = w, tip, max(s.Highest, tip.Height), chain.OriginHeight
	h.statuses.chain = nil
	clear(h.orphans)
	for _, o := range s.Orphans {
		at := norm(o.At)
		h.orphans[at.Point] = &entry{at: at, parent: norm(o.Parent), cov: chain.Complete}
	}
	h.thin() // what is given is kept until the next block, however deep
	h.tipChanged()
	return nil
}

// Skip moves a hub that nobody is subscribed to to a point, without the blocks
// below it. With subscribers it does nothing, and the next block is refused.
func (h *Hub) Skip(tip chain.At) {
	h.lockedFlush(func() {
		if h.failed != nil || h.subscribers() > 0 {
			return
		}
		h.tip = norm(tip)
		h.win.reset(h.tip)
		h.highest = max(h.highest, h.tip.Height)
		h.statuses.chain = nil
		clear(h.orphans)
		h.tipChanged()
	})
}

// Pass is BufferBlock without contents, for a complete provider whose hub nobody is
// subscribed to: the block is known by its point and transactions, and the rest is
// read from Config.Contents if somebody comes to need it. It does nothing and
// returns false where the contents are needed.
func (h *Hub) Pass(at chain.At, txs []chain.TxEffects) (ok bool, flush func(), err error) {
	h.mu.Lock()
	if h.failed == nil && (h.cfg.Contents == nil || h.subscribers() > 0 || h.keepAbove() < h.tip.Height) {
		h.mu.Unlock()
		return false, func() {}, nil
	}
	err = h.pass(at, txs)
	return true, h.unlock(), err
}

func (h *Hub) pass(at chain.At, txs []chain.TxEffects) error {
	if h.failed != nil {
		return h.failed
	}
	if err := h.comesNext(at); err != nil {
		return err
	}
	e := entry{at: at, parent: h.tip, cov: chain.Complete}
	if h.cfg.Capabilities.Kinds[Statuses] {
		for i := range txs {
			e.marks = append(e.marks, txMark{txs[i].ID, txs[i].Valid})
		}
	}
	h.win.push(e)
	h.win.thinned = at.Height
	h.tip = at
	h.highest = max(h.highest, at.Height)
	h.tipChanged()
	h.statusApplied(h.win.entry(h.win.n - 1))
	h.trim()
	return nil
}

// Capabilities returns what the provider declared. The maps are read-only.
func (h *Hub) Capabilities() Capabilities { return h.cfg.Capabilities }

// Tip returns the newest block applied.
func (h *Hub) Tip() chain.At {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tip
}

// At returns the hub's block at a height, if it still knows it.
func (h *Hub) At(height chain.Height) (chain.At, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.pointAt(height)
	return chain.At{Point: p, Height: height}, ok
}

// Highest returns the highest height ever applied, from which depth is counted.
func (h *Hub) Highest() chain.Height {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.highest
}

// Floor returns the oldest point that a subscription can start after.
func (h *Hub) Floor() chain.At {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.win.floor
}

// Subscribers returns how many there are who need blocks: subscriptions for
// outputs, transactions and blocks, and transactions whose status is recorded.
func (h *Hub) Subscribers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.subscribers()
}

func (h *Hub) subscribers() int { return h.count + len(h.statuses.table) }

// Sources returns what a provider has to probe: the sources of all output and
// transaction subscriptions. SourceAll among them means that somebody wants
// whole blocks.
func (h *Hub) Sources() map[chain.Source]struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[chain.Source]struct{}{}
	h.index[UTxOs].sources(out, func(kind uint8, key string) chain.Source {
		return chain.Source{Kind: chain.SourceKind(kind), Key: key}
	})
	h.index[Txs].sources(out, func(kind uint8, key string) chain.Source {
		s, _ := query.TxKey{Kind: query.TxKeyKind(kind), Key: key}.Source()
		return s
	})
	h.index[Blocks].sources(out, nil)
	return out
}

// FailAll ends every subscription with the cause: what readers have seen is not
// to be trusted. Nothing can be subscribed to afterwards.
func (h *Hub) FailAll(cause error) { h.lockedFlush(func() { h.failAll(cause) }) }

// CloseAll ends every subscription cleanly: readers get what is buffered, and
// it is true. Nothing can be subscribed to afterwards.
func (h *Hub) CloseAll() {
	h.lockedFlush(func() {
		h.endAll(ErrClosed, mail.CloseBuffered)
	})
}

func (h *Hub) failAll(cause error) {
	h.endAll(fmt.Errorf("%w: %w", ErrFailed, cause), func(m mail) { m.FailBuffered(cause) })
}

func (h *Hub) endAll(refusal error, end func(mail)) {
	if h.failed != nil {
		return
	}
	h.failed = refusal
	h.each(func(s *sub) {
		h.drop(s)
		end(s.typed.mail())
		h.touch(s)
	})
	h.tips.end(h, func(s *mailbox.Latest[chain.Tip]) { end(s) })
	h.params.end(h, func(s *mailbox.Latest[ProtocolParams]) { end(s) })
	h.endStatuses(end)
}

// each calls f for every subscription; f may drop it.
func (h *Hub) each(f func(*sub)) {
	lists := []*subList{&h.loose, &h.await}
	for _, g := range h.groups {
		lists = append(lists, &g.members)
	}
	for _, l := range lists {
		for s := l.first; s != nil; {
			next := s.next
			f(s)
			s = next
		}
	}
}

// lockedFlush runs f under the mutex and then delivers what it buffered.
func (h *Hub) lockedFlush(f func()) {
	h.mu.Lock()
	f()
	h.unlock()()
}

func nothing() {}

// unlock releases the mutex and returns the second half of the operation.
func (h *Hub) unlock() func() {
	if len(h.out) == 0 && len(h.later) == 0 {
		h.mu.Unlock()
		return nothing
	}
	out, later := h.out, h.later
	h.out, h.later = h.spare, nil
	h.spare = nil
	h.mu.Unlock()
	return func() {
		for _, m := range out {
			m.Flush()
		}
		for _, f := range later {
			f()
		}
		if out == nil {
			return // flushing again does nothing
		}
		clear(out)
		h.mu.Lock()
		if cap(out) > cap(h.spare) {
			h.spare = out[:0]
		}
		h.mu.Unlock()
		out, later = nil, nil
	}
}

// ended is called when a mailbox has died, by whatever route.
func (h *Hub) ended(s *sub) {
	h.mu.Lock()
	h.drop(s)
	h.unlock()()
	if h.cfg.Changed != nil {
		h.cfg.Changed()
	}
}

// norm gives origin its height.
func norm(a chain.At) chain.At {
	if a.IsOrigin() && a.Height <= 0 {
		return chain.Origin
	}
	return a
}

// stamp is the point that seeds and corrections carry (contract 3.3): that of
// the creation, or origin if it lies at or below the limit.
func stamp(at chain.At, limit chain.Height) chain.At {
	if at.Height > limit {
		return at
	}
	return chain.Origin
}

func (h *Hub) stampLimit() chain.Height { return h.highest - h.cfg.Capabilities.horizon() }
