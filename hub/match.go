package hub

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// hit is a transaction, or one of its effects, that a subscription wants.
type hit struct {
	tx    *chain.AppliedTx
	eff   *chain.Effect // nil for transaction and block subscriptions
	block *chain.AppliedBlock
	next  int32 // the subscription's next hit, 1-based
	spent bool
}

// matching says which subscriptions a match is for.
type matching uint8

const (
	matchReleasing matching = iota // those in groups that are releasing
	matchCorrected                 // those that collect corrections, of which the block is at or below the base
)

func (m matching) wants(s *sub, b *chain.AppliedBlock) bool {
	if m == matchCorrected {
		return s.corr && b.At.Height <= s.base.Height
	}
	return s.group != nil && s.group.root().releasing
}

// match collects hits of a block: each subscription that the mode wants, with
// each effect, transaction or block its query wants, in order.
func (h *Hub) match(b *chain.AppliedBlock, m matching) {
	if outputs := &h.index[UTxOs]; outputs.kinds != 0 || outputs.all != nil {
		h.matchEffects(b, m)
	}
	if m == matchCorrected {
		return
	}
	if txs := &h.index[Txs]; txs.kinds != 0 || txs.all != nil {
		for i := range b.Txs {
			h.matchTx(hit{tx: &b.Txs[i], block: b}, m)
		}
	}
	if p := h.index[Blocks].all; p != nil {
		h.serial++
		h.offerHits(p, hit{block: b}, m)
	}
}

// matchEffects collects the hits of a block's effects.
func (h *Hub) matchEffects(b *chain.AppliedBlock, m matching) {
	h.probes.of(b, m, &h.index[UTxOs], h.scratch[:])
	n := 0
	for i := range b.Txs {
		t := &b.Txs[i]
		for j := range t.Spent {
			h.matchEffect(hit{tx: t, eff: &t.Spent[j], block: b, spent: true}, m, h.probes.likely(n))
			n++
		}
		if m == matchCorrected {
			continue // only what was spent comes back
		}
		for j := range t.Created {
			h.matchEffect(hit{tx: t, eff: &t.Created[j], block: b}, m, h.probes.likely(n))
			n++
		}
	}
}

// matchEffect collects the hits of one effect; keyed tells whether anybody may
// be found under one of its keys.
func (h *Hub) matchEffect(x hit, m matching, keyed bool) {
	h.serial++
	ix := &h.index[UTxOs]
	h.offerHits(ix.all, x, m)
	if !keyed {
		return
	}
	query.EachSource(x.eff.UTxO, ix.kinds, h.scratch[:], func(k chain.SourceKind, key []byte) bool {
		h.offerHits(ix.find(uint8(k), key), x, m)
		return true
	})
}

func (h *Hub) matchTx(x hit, m matching) {
	h.serial++
	ix := &h.index[Txs]
	h.offerHits(ix.all, x, m)
	if ix.kinds == 0 {
		return
	}
	query.EachTxKey(x.tx, h.scratch[:], func(k query.TxKeyKind, key []byte) bool {
		if ix.kinds.Has(chain.SourceKind(k)) {
			h.offerHits(ix.find(uint8(k), key), x, m)
		}
		return true
	})
}

// offerHits adds a hit to every subscription in a list that wants it and has
// not got it yet under another key.
func (h *Hub) offerHits(p *posting, x hit, m matching) {
	for ; p != nil; p = p.next {
		s := p.sub
		if s.mark == h.serial || !m.wants(s, x.block) || !s.wants(&x) {
			continue
		}
		s.mark = h.serial
		h.hits = append(h.hits, x)
		n := int32(len(h.hits))
		if s.head == 0 {
			s.head = n
			h.touched = append(h.touched, s)
		} else {
			h.hits[s.tail-1].next = n
		}
		s.tail = n
	}
}

// wants tells whether the query wants a hit that its keys have found.
func (s *sub) wants(x *hit) bool {
	switch s.kind {
	case UTxOs:
		mask := uint8(wantCreated)
		if x.spent && !s.corr {
			mask = wantSpent
		}
		return s.want&mask != 0 && (s.exact || s.typed.(*UTxOSubscription).q.Match(x.eff.UTxO))
	case Txs:
		return s.exact || s.typed.(*TxSubscription).q.Match(x.tx)
	}
	return s.typed.(*BlockSubscription).q.Match(x.block.At.Point.Slot)
}

// hitsOf takes a subscription's hits off its chain. The slice is valid until
// the next call.
func (h *Hub) hitsOf(s *sub) []hit {
	h.chains = h.chains[:0]
	for i := s.head; i != 0; i = h.hits[i-1].next {
		h.chains = append(h.chains, h.hits[i-1])
	}
	s.head, s.tail = 0, 0
	return h.chains
}
