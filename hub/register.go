package hub

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// SubscribeUTxO registers a subscription for outputs. Registration and what it
// begins with are one step: nothing that happens afterwards is missed, nothing
// before it is given twice.
func (h *Hub) SubscribeUTxO(q query.UTxO, o Options) (*UTxOSubscription, error) {
	keys, exact := h.cfg.Capabilities.utxoKeys(q)
	if sup := h.cfg.Capabilities.Support(UTxOs, keys, o); sup.Level == Unsupported {
		return nil, fmt.Errorf("subscribing to %v: %w: %s", short(q), ErrUnsupported, sup.Reason)
	}
	s := &UTxOSubscription{q: q}
	h.prepare(&s.sub, s, UTxOs, &o)
	s.want, s.exact = o.Events.mask(), exact
	s.box.Init(h.bound(&o), owner[chain.UTxOEvent]{&s.handle})
	for _, k := range keys {
		s.addKey(uint8(k.Kind), k.Key)
	}
	var genesis []*chain.UTxO
	if o.Start == Origin && s.want&wantCreated != 0 && h.cfg.Genesis != nil {
		var err error
		if genesis, err = h.cfg.Genesis(q); err != nil {
			return nil, fmt.Errorf("subscribing to %v: genesis outputs: %w", short(q), err)
		}
	}
	if err := h.register(&s.sub, &o, genesis); err != nil {
		return nil, fmt.Errorf("subscribing to %v: %w", short(q), err)
	}
	return s, nil
}

// SubscribeTx registers a subscription for transactions.
func (h *Hub) SubscribeTx(q query.Tx, o Options) (*TxSubscription, error) {
	keys, exact := h.cfg.Capabilities.txKeys(q)
	if sup := h.cfg.Capabilities.Support(Txs, txSources(keys), o); sup.Level == Unsupported {
		return nil, fmt.Errorf("subscribing to transactions: %w: %s", ErrUnsupported, sup.Reason)
	}
	s := &TxSubscription{q: q}
	h.prepare(&s.sub, s, Txs, &o)
	s.exact = exact
	s.box.Init(h.bound(&o), owner[chain.TxEvent]{&s.handle})
	for _, k := range keys {
		s.addKey(uint8(k.Kind), k.Key)
	}
	if err := h.register(&s.sub, &o, nil); err != nil {
		return nil, fmt.Errorf("subscribing to transactions: %w", err)
	}
	return s, nil
}

// SubscribeBlock registers a subscription for blocks. One over a range of
// slots is closed once the chain has passed the range.
func (h *Hub) SubscribeBlock(q query.Block, o Options) (*BlockSubscription, error) {
	if sup := h.cfg.Capabilities.Support(Blocks, nil, o); sup.Level == Unsupported {
		return nil, fmt.Errorf("subscribing to blocks: %w: %s", ErrUnsupported, sup.Reason)
	}
	s := &BlockSubscription{q: q}
	h.prepare(&s.sub, s, Blocks, &o)
	s.box.Init(h.bound(&o), owner[chain.BlockEvent]{&s.handle})
	s.addKey(0, "")
	if err := h.register(&s.sub, &o, nil); err != nil {
		return nil, fmt.Errorf("subscribing to blocks: %w", err)
	}
	return s, nil
}

// short is a query's text as far as it is worth showing in an error.
func short(q query.UTxO) string {
	keys, _ := q.Keys()
	if len(keys) > 4 {
		return fmt.Sprintf("a query of %d sources", len(keys))
	}
	return q.String()
}

func (h *Hub) bound(o *Options) int {
	switch b := o.Bound; {
	case b == 0:
		return max(h.cfg.Bound, 0)
	case b < 0:
		return 0
	default:
		return b
	}
}

func (h *Hub) prepare(s *sub, t typed, kind Kind, o *Options) {
	c := &h.cfg.Capabilities
	s.hub, s.typed, s.kind = h, t, kind
	s.depth, s.noRollback = c.depth(o), o.NoRollback
	s.idle = o.Idle && c.Idle
	s.started = true
}

// register puts a subscription where its start asks for and delivers what it
// begins with.
func (h *Hub) register(s *sub, o *Options, genesis []*chain.UTxO) error {
	h.mu.Lock()
	for h.enterIndex(s) { // nothing is matched with it before it is admitted
		h.mu.Unlock()
		h.mu.Lock()
	}
	err := h.begin(s, o, genesis)
	h.unlock()()
	if err != nil {
		h.sweep(s)
	}
	if err == nil && h.cfg.Changed != nil {
		h.cfg.Changed()
	}
	return err
}

func (h *Hub) begin(s *sub, o *Options, genesis []*chain.UTxO) error {
	if h.failed != nil {
		return h.failed
	}
	switch o.Start {
	case Origin:
		return h.beginAtOrigin(s, genesis)
	case After, Resume:
		return h.beginAfter(s, o)
	}
	return h.beginAtTip(s, o)
}

// admit enters a subscription into the registry.
func (h *Hub) admit(s *sub) {
	if s.first.sub != nil {
		h.index[s.kind].add(&s.first)
	}
	h.count++
}

// goLive gives a subscription what is due and lets it take part from now on.
func (h *Hub) goLive(s *sub) {
	s.state, s.wait = live, nil
	if e := h.win.at(s.w); e != nil && s.typed.passed(e.at.Point.Slot) {
		s.typed.commit()
		h.drop(s)
		s.typed.mail().CloseBuffered()
		h.touch(s)
		return
	}
	if h.addDue(s) {
		s.typed.commit()
		h.enlist(s)
		h.touch(s)
	}
}

// beginAtOrigin starts before the first block, with the genesis outputs
// (contract 1.7).
func (h *Hub) beginAtOrigin(s *sub, genesis []*chain.UTxO) error {
	err := h.load(func() []chain.At {
		if !h.win.floor.IsOrigin() {
			return nil
		}
		return h.thinAbove(chain.OriginHeight, h.tip.Height)
	})
	switch {
	case h.failed != nil:
		return h.failed
	case !h.win.floor.IsOrigin():
		return &OlderError{Point: chain.Origin, Oldest: h.win.floor}
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReach, err)
	}
	s.w = chain.OriginHeight
	h.admit(s)
	if u, ok := s.typed.(*UTxOSubscription); ok && s.want&wantCreated != 0 {
		origin := chain.Origin
		s.base = &origin
		u.seed(genesis, s.base, h.highest)
	}
	h.goLive(s)
	return nil
}

// gate is where a subscription of a depth starts (contract 3.4).
func (h *Hub) gate(depth, atLeast chain.Height) chain.Height {
	g := max(h.tip.Height-depth, atLeast, chain.OriginHeight)
	if g < h.cfg.FirstHeight {
		return chain.OriginHeight // there is nothing between
	}
	return g
}

func (h *Hub) beginAtTip(s *sub, o *Options) error {
	later := s.kind == UTxOs && o.seeds() && o.Seed == SeedLater // what it needs is read with its seed
	err := h.load(func() []chain.At {
		if later {
			return nil
		}
		return h.thinAbove(h.gate(s.depth, chain.OriginHeight), h.tip.Height)
	})
	switch {
	case h.failed != nil:
		return h.failed
	case err != nil:
		return fmt.Errorf("%w: depth %d: %w", ErrReach, s.depth, err)
	}
	s.w = h.gate(s.depth, chain.OriginHeight)
	if s.w < h.win.floor.Height {
		return fmt.Errorf("%w: depth %d, the oldest point is %v", ErrReach, s.depth, h.win.floor)
	}
	if s.kind == UTxOs && o.seeds() {
		s.state, s.wait = await, &waiting{stale: o.Stale}
		h.admit(s)
		s.list = &h.await
		h.await.add(s)
		h.awaiting.add(s.w)
		if o.Seed == SeedNow {
			// Its contents are at hand, so this does not let go of the mutex.
			if h.seed(s, h.tip, o.Rows) == SeedStale && o.Stale != nil {
				h.later = append(h.later, o.Stale)
			}
		}
		return nil
	}
	s.started = !h.cfg.Capabilities.Partial
	h.admit(s)
	h.goLive(s)
	return nil
}
