package hub

import (
	"context"
	"iter"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/mailbox"
	"github.com/ourotail/ourotail/query"
)

// Subscription is what readers and adapters hold: a stream of values that ends.
type Subscription[T any] interface {
	// Next returns the oldest value not read, waiting for it. It ends with io.EOF
	// after a clean close once everything was read, with ErrCancelled, or with
	// what the subscription failed of. The end of the context ends the wait
	// alone, and loses nothing.
	Next(ctx context.Context) (T, error)
	// Poll is Next without waiting: false if there is nothing yet.
	Poll() (v T, ok bool, err error)
	// All yields values until the end; every end but a clean close is yielded as
	// an error.
	All(ctx context.Context) iter.Seq2[T, error]
	// Wake sets a callback that runs whenever there is something new to see, on
	// the goroutine that delivered it, with no lock held and never twice at once.
	// It must not block; it may read, cancel or subscribe. Poll once after
	// setting it: it does not run for what was there before.
	Wake(func())
	// Pending returns how many values have not been read.
	Pending() int
	// Cancel ends the subscription; what was not read is dropped.
	Cancel()
}

// Stream is a subscription whose values have cursors: one for outputs,
// transactions or blocks.
type Stream[T any] interface {
	Subscription[T]
	// Cursor returns where the reader stands: behind the last value that Next
	// returned or, if it has read everything there is, behind the newest block it was
	// given. False while there is nothing to resume from.
	Cursor() (chain.Cursor, bool)
	// Watermark returns the cursor behind the newest block that was given, read or
	// not.
	Watermark() (chain.Cursor, bool)
}

// handle is the part that subscriptions with events of any type share.
type handle[E any] struct {
	sub
	box mailbox.Delta[E]
}

func (s *handle[E]) Next(ctx context.Context) (E, error)         { return s.box.Next(ctx) }
func (s *handle[E]) Poll() (E, bool, error)                      { return s.box.Poll() }
func (s *handle[E]) All(ctx context.Context) iter.Seq2[E, error] { return s.box.All(ctx) }
func (s *handle[E]) Wake(fn func())                              { s.box.Wake(fn) }
func (s *handle[E]) Pending() int                                { return s.box.Pending() }
func (s *handle[E]) Cancel()                                     { s.box.Cancel() }

func (s *handle[E]) mail() mail             { return &s.box }
func (s *handle[E]) passed(chain.Slot) bool { return false }
func (s *handle[E]) closeGroup()            {}

// owner makes a handle the owner of its mailbox.
type owner[E any] struct{ s *handle[E] }

func (o owner[E]) Ended(error) { o.s.hub.ended(&o.s.sub) }

func (o owner[E]) Overflowed(x mailbox.Overflow[E]) error {
	err := &OverflowError{Lost: x.Lost}
	if x.Returned && !x.SeedUnread {
		if e, ok := any(&x.Last).(interface {
			Cursor() (chain.Cursor, bool)
		}); ok {
			err.Cursor, err.Resumable = e.Cursor()
		}
	}
	return err
}

// UTxOSubscription is a subscription for outputs.
type UTxOSubscription struct {
	handle[chain.UTxOEvent]
	q query.UTxO
}

func (s *UTxOSubscription) covered(c chain.Coverage) bool { return s.q.Covered(c) }

func (s *UTxOSubscription) addBlock(b *chain.AppliedBlock, behind int64) int {
	h, n := s.hub, 0
	for i := range b.Txs {
		t := &b.Txs[i]
		from := len(h.utxoEvents)
		if s.want&wantSpent != 0 {
			for j := range t.Spent {
				if e := &t.Spent[j]; int64(e.Place) > behind && s.q.Match(e.UTxO) {
					s.addEffect(b.At, t, e, chain.Spent, uint32(j))
				}
			}
		}
		if s.want&wantCreated != 0 {
			for j := range t.Created {
				if e := &t.Created[j]; int64(e.Place) > behind && s.q.Match(e.UTxO) {
					s.addEffect(b.At, t, e, chain.Created, e.UTxO.Ref.Index)
				}
			}
		}
		if k := len(h.utxoEvents); k > from {
			h.utxoEvents[k-1].LastOfTx = true
			n += k - from
		}
	}
	if n > 0 {
		h.utxoEvents[len(h.utxoEvents)-1].LastOfBlock = true
	}
	return n
}

func (s *UTxOSubscription) addHits(at chain.At, hits []hit) int {
	for i := range hits {
		x := &hits[i]
		kind, index := chain.Created, x.eff.UTxO.Ref.Index
		if x.spent {
			kind, index = chain.Spent, spentIndex(x.tx, x.eff)
		}
		s.addEffect(at, x.tx, x.eff, kind, index)
		e := &s.hub.utxoEvents[len(s.hub.utxoEvents)-1]
		e.LastOfBlock = i == len(hits)-1
		e.LastOfTx = e.LastOfBlock || hits[i+1].tx != x.tx
	}
	return len(hits)
}

// spentIndex is the position of a spend among those of its transaction.
func spentIndex(t *chain.AppliedTx, e *chain.Effect) uint32 {
	return e.Place - t.Spent[0].Place
}

func (s *UTxOSubscription) addEffect(at chain.At, t *chain.AppliedTx, e *chain.Effect, kind chain.EventKind, index uint32) {
	s.hub.utxoEvents = append(s.hub.utxoEvents, chain.UTxOEvent{
		Kind: kind, TxValid: t.Valid, TxIndex: uint32(t.Index), Index: index, Place: e.Place,
		Tx: t.ID, UTxO: e.UTxO, At: at, Base: s.base,
	})
}

func (s *UTxOSubscription) addIdle(at chain.At) {
	s.hub.utxoEvents = append(s.hub.utxoEvents, chain.UTxOEvent{Kind: chain.Idle, LastOfBlock: true, At: at, Base: s.base})
}

func (s *UTxOSubscription) addRollback(to chain.At, from *chain.At) {
	s.hub.utxoEvents = append(s.hub.utxoEvents, chain.UTxOEvent{Kind: chain.RolledBack, At: to, Mark: from, Base: s.base})
}

func (s *UTxOSubscription) addCorrection(u *chain.UTxO, at chain.At, to *chain.At) {
	s.hub.utxoEvents = append(s.hub.utxoEvents, chain.UTxOEvent{
		Kind: chain.Created, Because: chain.Correction, UTxO: u, At: at, Mark: to, Base: s.base,
	})
}

func (s *UTxOSubscription) closeGroup() {
	events := s.hub.utxoEvents
	for i := len(events) - 1; i >= 0; i-- {
		if e := &events[i]; e.Kind == chain.RolledBack || e.Because == chain.Correction {
			e.Base = s.base
			return
		}
	}
}

func (s *UTxOSubscription) commit() {
	s.box.OfferBuffered(s.hub.utxoEvents...)
	s.discard()
}

func (s *UTxOSubscription) discard() {
	clear(s.hub.utxoEvents)
	s.hub.utxoEvents = s.hub.utxoEvents[:0]
}

// TxSubscription is a subscription for transactions.
type TxSubscription struct {
	handle[chain.TxEvent]
	q query.Tx
}

func (s *TxSubscription) covered(c chain.Coverage) bool { return s.q.Covered(c) }

func (s *TxSubscription) addBlock(b *chain.AppliedBlock, behind int64) int {
	n := 0
	for i := range b.Txs {
		if t := &b.Txs[i]; int64(t.LastPlace()) > behind && s.q.Match(t) {
			s.add(chain.TxEvent{Kind: chain.Included, Tx: t, At: b.At})
			n++
		}
	}
	if n > 0 {
		s.hub.txEvents[len(s.hub.txEvents)-1].LastOfBlock = true
	}
	return n
}

func (s *TxSubscription) addHits(at chain.At, hits []hit) int {
	for i := range hits {
		s.add(chain.TxEvent{Kind: chain.Included, LastOfBlock: i == len(hits)-1, Tx: hits[i].tx, At: at})
	}
	return len(hits)
}

func (s *TxSubscription) add(e chain.TxEvent) { s.hub.txEvents = append(s.hub.txEvents, e) }

func (s *TxSubscription) addIdle(at chain.At) {
	s.add(chain.TxEvent{Kind: chain.Idle, LastOfBlock: true, At: at})
}

func (s *TxSubscription) addRollback(to chain.At, from *chain.At) {
	s.add(chain.TxEvent{Kind: chain.RolledBack, At: to, Mark: from})
}

func (s *TxSubscription) commit() {
	s.box.OfferBuffered(s.hub.txEvents...)
	s.discard()
}

func (s *TxSubscription) discard() {
	clear(s.hub.txEvents)
	s.hub.txEvents = s.hub.txEvents[:0]
}

// BlockSubscription is a subscription for blocks.
type BlockSubscription struct {
	handle[chain.BlockEvent]
	q query.Block
}

func (s *BlockSubscription) covered(c chain.Coverage) bool { return s.q.Covered(c) }
func (s *BlockSubscription) passed(slot chain.Slot) bool   { return s.q.Passed(slot) }

func (s *BlockSubscription) addBlock(b *chain.AppliedBlock, behind int64) int {
	if behind >= 0 || !s.q.Match(b.At.Point.Slot) {
		return 0
	}
	s.add(chain.BlockEvent{Kind: chain.Applied, Block: b, At: b.At})
	return 1
}

func (s *BlockSubscription) addHits(at chain.At, hits []hit) int {
	for i := range hits {
		s.add(chain.BlockEvent{Kind: chain.Applied, Block: hits[i].block, At: at})
	}
	return len(hits)
}

func (s *BlockSubscription) add(e chain.BlockEvent) {
	s.hub.blockEvents = append(s.hub.blockEvents, e)
}

func (s *BlockSubscription) addIdle(at chain.At) {
	s.add(chain.BlockEvent{Kind: chain.Idle, At: at})
}

func (s *BlockSubscription) addRollback(to chain.At, from *chain.At) {
	s.add(chain.BlockEvent{Kind: chain.RolledBack, At: to, Mark: from})
}

func (s *BlockSubscription) commit() {
	s.box.OfferBuffered(s.hub.blockEvents...)
	s.discard()
}

func (s *BlockSubscription) discard() {
	clear(s.hub.blockEvents)
	s.hub.blockEvents = s.hub.blockEvents[:0]
}
