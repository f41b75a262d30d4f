package hub

import (
	"container/list"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/mailbox"
)

// TxState is what is known of a transaction (contract 3.10).
type TxState uint8

// The states.
const (
	TxUnknown   TxState = iota // not seen, but it may lie where the hub cannot look
	TxNotFound                 // not on the chain
	TxPending                  // submitted, or seen in the mempool
	TxConfirmed                // in a block
	TxFailed                   // in a block, its scripts failed
)

var txStateNames = [...]string{"unknown", "notfound", "pending", "confirmed", "failed"}

// String returns the state in lower case.
func (s TxState) String() string {
	if int(s) < len(txStateNames) {
		return txStateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// TxStatus is the state of a transaction. At is its block if it is in one; of
// TxUnknown it is the oldest point from which on the answer holds.
type TxStatus struct {
	ID    chain.TxID
	State TxState
	At    chain.At
}

func (s TxStatus) onChain() bool { return s.State == TxConfirmed || s.State == TxFailed }

// History looks for transactions below the window. Oldest is the oldest point
// it can speak for, origin if nothing can have escaped it.
type History func(id chain.TxID) (at chain.At, valid, found bool, oldest chain.At)

// DefaultStatusTable bounds the transactions recorded that nobody subscribes to.
const DefaultStatusTable = 65536

// statusEntry is a transaction that was submitted or is subscribed to.
type statusEntry struct {
	status  TxStatus
	pending bool // submitted, or seen in the mempool
	subs    map[*mailbox.Latest[TxStatus]]struct{}
	idle    *list.Element // its place among those nobody subscribes to
}

// statuses is the table of transactions recorded.
type statuses struct {
	table map[chain.TxID]*statusEntry
	// followed are those of the table that somebody subscribes to.
	followed map[chain.TxID]*statusEntry
	// idle are the ids nobody subscribes to, the longest so first.
	idle list.List
	// settling are transactions in the order of their blocks, to be forgotten when
	// they are deep.
	settling []settling
	// chain finds the transactions of the window; nil until somebody asks.
	chain map[chain.TxID]TxStatus
}

type settling struct {
	id     chain.TxID
	height chain.Height
}

// SubscribeStatus registers a subscription for the status of a transaction. It
// gives the present one at once.
func (h *Hub) SubscribeStatus(id chain.TxID) (Subscription[TxStatus], error) {
	if !h.cfg.Capabilities.Kinds[Statuses] {
		return nil, fmt.Errorf("subscribing to the status of %v: %w: this provider does not serve it", id, ErrUnsupported)
	}
	var box *mailbox.Latest[TxStatus]
	box = mailbox.NewLatest[TxStatus](func(error) { h.statusEnded(id, box) })
	h.mu.Lock()
	if h.failed == nil && h.cfg.History != nil && h.needsHistory(id) {
		h.mu.Unlock()
		at, valid, found, oldest := h.cfg.History(id)
		h.mu.Lock()
		if h.needsHistory(id) { // still
			h.recordStatus(id, h.fromHistory(id, at, valid, found, oldest))
		}
	}
	if err := h.failed; err != nil {
		h.mu.Unlock()
		return nil, fmt.Errorf("subscribing to the status of %v: %w", id, err)
	}
	e := h.statusOf(id)
	if e.idle != nil {
		h.statuses.idle.Remove(e.idle)
		e.idle = nil
	}
	if e.subs == nil {
		e.subs = map[*mailbox.Latest[TxStatus]]struct{}{}
	}
	e.subs[box] = struct{}{}
	if h.statuses.followed == nil {
		h.statuses.followed = map[chain.TxID]*statusEntry{}
	}
	h.statuses.followed[id] = e
	box.OfferBuffered(e.status)
	h.out = append(h.out, box)
	h.unlock()()
	return box, nil
}

// Submitted records a transaction that was submitted through the provider and
// returns its status.
func (h *Hub) Submitted(id chain.TxID) (s TxStatus) {
	h.lockedFlush(func() {
		if h.failed == nil {
			s = h.pendingNow(h.statusOf(id))
		}
	})
	return s
}

func (h *Hub) pendingNow(e *statusEntry) TxStatus {
	e.pending = true
	if !e.status.onChain() {
		h.setStatus(e, TxStatus{State: TxPending})
	}
	return e.status
}

// statusOf returns the record of a transaction, a new one from what the window
// tells.
func (h *Hub) statusOf(id chain.TxID) *statusEntry {
	if e := h.statuses.table[id]; e != nil {
		return e
	}
	s, ok := h.txsOnChain()[id]
	if !ok {
		s = h.absent(false)
	}
	return h.recordStatus(id, s)
}

func (h *Hub) recordStatus(id chain.TxID, s TxStatus) *statusEntry {
	t := &h.statuses
	if t.table == nil {
		t.table = map[chain.TxID]*statusEntry{}
	}
	s.ID = id
	e := &statusEntry{status: s}
	t.table[id] = e
	h.idleStatus(e)
	if s.onChain() {
		h.settle(s)
	}
	return e
}

// idleStatus enters a record among those nobody subscribes to, which are
// bounded.
func (h *Hub) idleStatus(e *statusEntry) {
	t := &h.statuses
	e.idle = t.idle.PushBack(e.status.ID)
	limit := h.cfg.StatusTable
	if limit == 0 {
		limit = DefaultStatusTable
	}
	for t.idle.Len() > limit {
		h.forgetStatus(t.idle.Front().Value.(chain.TxID))
	}
}

func (h *Hub) forgetStatus(id chain.TxID) {
	t := &h.statuses
	if e := t.table[id]; e != nil && e.idle != nil {
		t.idle.Remove(e.idle)
		delete(t.table, id)
	}
}

func (h *Hub) setStatus(e *statusEntry, s TxStatus) {
	s.ID = e.status.ID
	if s == e.status {
		return
	}
	e.status = s
	for box := range e.subs {
		box.OfferBuffered(s)
		h.out = append(h.out, box)
	}
	if s.onChain() {
		h.settle(s)
	}
}

// absent is the status of a transaction that is not in the window. left: it
// has just left the chain.
func (h *Hub) absent(left bool) TxStatus {
	if !h.cfg.Capabilities.Partial && (left || h.win.floor.IsOrigin()) {
		return TxStatus{State: TxNotFound}
	}
	return TxStatus{State: TxUnknown, At: h.win.floor}
}

// needsHistory tells whether neither table nor window can answer for a
// transaction.
func (h *Hub) needsHistory(id chain.TxID) bool {
	if h.failed != nil || h.statuses.table[id] != nil {
		return false
	}
	_, ok := h.txsOnChain()[id]
	return !ok && !h.win.floor.IsOrigin()
}

func (h *Hub) fromHistory(id chain.TxID, at chain.At, valid, found bool, oldest chain.At) TxStatus {
	switch {
	case found && valid:
		return TxStatus{State: TxConfirmed, At: at}
	case found:
		return TxStatus{State: TxFailed, At: at}
	case norm(oldest) == chain.Origin && !h.cfg.Capabilities.Partial:
		return TxStatus{State: TxNotFound}
	}
	return TxStatus{State: TxUnknown, At: norm(oldest)}
}

// txsOnChain finds the transactions of the window; it is made when first asked
// for and kept from then on.
func (h *Hub) txsOnChain() map[chain.TxID]TxStatus {
	t := &h.statuses
	if t.chain == nil {
		t.chain = map[chain.TxID]TxStatus{}
		for i := range h.win.n {
			h.noteTxs(h.win.entry(i))
		}
	}
	return t.chain
}

func (h *Hub) noteTxs(e *entry) {
	if h.statuses.chain == nil {
		return
	}
	for _, m := range e.txs() {
		h.statuses.chain[m.id] = m.status(e.at)
	}
}

func (h *Hub) dropTxs(e *entry) {
	if h.statuses.chain == nil {
		return
	}
	for _, m := range e.txs() {
		delete(h.statuses.chain, m.id)
	}
}

// statusApplied tells of the transactions of a block that was just applied.
func (h *Hub) statusApplied(e *entry) {
	h.noteTxs(e)
	if len(h.statuses.table) == 0 {
		return
	}
	for _, m := range e.txs() {
		if r := h.statuses.table[m.id]; r != nil {
			h.setStatus(r, m.status(e.at))
		}
	}
}

// statusGone tells of the transactions of a block that has left the chain.
func (h *Hub) statusGone(e *entry) {
	h.dropTxs(e)
	for _, m := range e.txs() {
		r := h.statuses.table[m.id]
		if r == nil || r.status.At != e.at {
			continue
		}
		if r.pending {
			h.setStatus(r, TxStatus{State: TxPending})
		} else {
			h.setStatus(r, h.absent(true))
		}
	}
}

func (h *Hub) settle(s TxStatus) {
	h.statuses.settling = append(h.statuses.settling, settling{s.ID, s.At.Height})
}

// settleStatuses forgets what is deep and nobody subscribes to.
func (h *Hub) settleStatuses() {
	t, limit := &h.statuses, h.stampLimit()
	n := 0
	for n < len(t.settling) && t.settling[n].height <= limit {
		if e := t.table[t.settling[n].id]; e != nil && h.settled(e) && e.idle != nil {
			h.forgetStatus(e.status.ID)
		}
		n++
	}
	t.settling = t.settling[n:]
	if len(t.settling) == 0 {
		t.settling = nil
	}
}

func (h *Hub) settled(e *statusEntry) bool {
	return e.status.onChain() && e.status.At.Height <= h.stampLimit()
}

// statusEnded is called when a status subscription has died.
func (h *Hub) statusEnded(id chain.TxID, box *mailbox.Latest[TxStatus]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.statuses.table[id]
	if e == nil {
		return
	}
	delete(e.subs, box)
	if len(e.subs) > 0 || e.idle != nil {
		return
	}
	delete(h.statuses.followed, id)
	h.idleStatus(e)
	if h.settled(e) || !e.pending && e.status.State == TxUnknown { // who asks next learns as much
		h.forgetStatus(id)
	}
}

// endStatuses ends all status subscriptions.
func (h *Hub) endStatuses(end func(mail)) {
	for id, e := range h.statuses.table {
		for box := range e.subs {
			end(box)
			h.out = append(h.out, box)
		}
		delete(h.statuses.table, id)
	}
	clear(h.statuses.followed)
	h.statuses.idle.Init()
	h.statuses.settling, h.statuses.chain = nil, nil
}
