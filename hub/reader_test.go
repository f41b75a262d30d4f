package hub

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

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
