package hub

import "github.com/ourotail/ourotail/chain"

// What the hub and whoever looks into the node's mempool tell each other
// (contract 3.10).

// SeenInMempool says that a transaction waits for its block. It is ignored
// unless the transaction was submitted or is subscribed to.
func (h *Hub) SeenInMempool(id chain.TxID) {
	h.lockedFlush(func() {
		if e := h.statuses.table[id]; e != nil {
			h.pendingNow(e)
		}
	})
}

// LeftMempool says that a transaction that was pending is so no more, and is in
// none of the blocks that the node had when it was missed: call it once those
// have been applied. A transaction that is on the chain stays there, but will not
// be called pending again should its block be undone.
func (h *Hub) LeftMempool(id chain.TxID) {
	h.lockedFlush(func() {
		e := h.statuses.table[id]
		if e == nil {
			return
		}
		e.pending = false
		if e.status.State == TxPending {
			// What waits is not on the chain, and since then all blocks were seen.
			h.setStatus(e, h.absent(true))
		}
	})
}

// Followed tells whether anybody is subscribed to a transaction's status.
func (h *Hub) Followed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.statuses.followed) > 0
}

// Waiting returns the transactions that somebody is subscribed to and that are
// not on the chain, with whether they are pending: those to look for in the
// mempool.
func (h *Hub) Waiting() map[chain.TxID]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[chain.TxID]bool{}
	for id, e := range h.statuses.followed {
		if !e.status.onChain() {
			out[id] = e.status.State == TxPending
		}
	}
	return out
}
