package hub

import (
	"errors"
	"io"

	"github.com/ourotail/ourotail/chain"
)

// wstatus is a transaction whose status somebody watches.
type wstatus struct {
	sub  Subscription[TxStatus]
	last TxStatus
}

// checkTip compares what a tip subscription says with where the hubs stand.
func (w *world) checkTip() {
	v, ok, err := w.tips.Poll()
	switch {
	case w.naive.dead:
		if !ok && !errors.Is(err, io.EOF) && err == nil {
			w.fail("tip: lives on")
		}
	case ok && v != w.naive.tip:
		w.fail("tip: %v, want %v", v, w.naive.tip)
	case !ok && err != nil:
		w.fail("tip: %v", err)
	}
}

// stepStatus subscribes to the status of a transaction, submits one, or lets one
// go.
func (w *world) stepStatus() {
	if w.naive.dead {
		return
	}
	id := chain.TxID{'n', 'o'}
	for range 4 {
		if b := w.node.below(w.node.at.Height - chain.Height(w.d(5))); len(b.txs) > 0 {
			id = pick(w.d, b.txs).ID
			break
		}
	}
	switch old := w.statuses[id]; {
	case w.d.chance(30):
		w.note("submit %v", id)
		w.submitted[id] = true
		st := w.hub.Submitted(id)
		w.status(id, st)
		if st.State == TxUnknown || st.State == TxNotFound {
			w.fail("Submitted(%v) says %v", id, st)
		}
	case old != nil && w.d.chance(50):
		old.sub.Cancel()
		delete(w.statuses, id)
	case old == nil:
		s, err := w.hub.SubscribeStatus(id)
		if err != nil {
			w.fail("status of %v: %v", id, err)
		}
		st, ok, err := s.Poll()
		if !ok {
			w.fail("status of %v: nothing at once, %v", id, err)
		}
		w.note("status of %v: %v", id, st)
		w.statuses[id] = &wstatus{s, st}
		w.status(id, st)
	}
	w.settle()
}

func (w *world) checkStatuses() {
	if w.naive.dead {
		return
	}
	for id, x := range w.statuses {
		if st, ok, err := x.sub.Poll(); ok {
			if st == x.last {
				w.fail("status of %v: %v came twice", id, st)
			}
			x.last = st
		} else if err != nil {
			w.fail("status of %v: %v", id, err)
		}
		w.status(id, x.last)
		if b, _ := w.find(id); b == nil && x.last.State == TxUnknown && w.submitted[id] {
			w.fail("status of %v: unknown, but it was submitted", id)
		}
	}
}

// status compares a status with the truth (contract 3.10).
func (w *world) status(id chain.TxID, st TxStatus) {
	w.stats["status "+st.State.String()]++
	b, valid := w.find(id)
	switch st.State {
	case TxConfirmed, TxFailed:
		if b == nil || b.at != st.At || valid != (st.State == TxConfirmed) {
			w.fail("status of %v: %v, which is not so", id, st)
		}
		return
	case TxNotFound:
		if b != nil || w.partial {
			w.fail("status of %v: not found, on chain %v, partial %v", id, b != nil, w.partial)
		}
	case TxPending:
		if !w.submitted[id] {
			w.fail("status of %v: pending, but nobody submitted it", id)
		}
	}
	if b != nil && !w.partial && b.at.Height > w.naive.floor.Height {
		w.fail("status of %v: %v, but it is in the window at %v", id, st, b.at)
	}
}

// find returns the block of the hubs' chain that holds a transaction.
func (w *world) find(id chain.TxID) (b *wblock, valid bool) {
	for b := w.fed; b != nil; b = b.parent {
		for _, t := range b.txs {
			if t.ID == id {
				return b, t.Valid
			}
		}
	}
	return nil, false
}
