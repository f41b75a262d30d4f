package devnode

import (
	"slices"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// MempoolCapacity is how many bytes of transactions a chain's mempool holds: two
// blocks' worth, as a node's (consensus: Mempool/Capacity.hs).
const MempoolCapacity = 2 * forge.MaxBlockBody

// mempool is what was submitted and stands in no block yet. It changes under the
// generator's lock; snapshots are taken at any time.
type mempool struct {
	mu      sync.Mutex
	txs     []*forge.Submitted // a list is never changed, only replaced
	slot    chain.Slot
	changed chan struct{} // closed and replaced when txs is
	held    bool
}

// snapshot returns what is in it, the slot for which that is valid, and a channel
// that is closed when it changes. The list is read-only.
func (p *mempool) snapshot() ([]*forge.Submitted, chain.Slot, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.txs, p.slot, p.changed
}

// ready is what the next block may have.
func (p *mempool) ready() []*forge.Submitted {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		return nil
	}
	return p.txs
}

func (p *mempool) set(txs []*forge.Submitted, slot chain.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slot = slot
	if slices.Equal(p.txs, txs) {
		return
	}
	p.txs = txs
	close(p.changed)
	p.changed = make(chan struct{})
}

// sift keeps what can still stand in a block behind the head.
func (p *mempool) sift(f *forge.Forge) {
	txs, _, _ := p.snapshot()
	slot := f.Head().Point.Slot + 1
	var kept []*forge.Submitted
	for _, t := range txs {
		if f.Check(t, slot, kept) == nil {
			kept = append(kept, t)
		}
	}
	p.set(kept, slot)
}

// noLedger is what a chain without a generator says to a submission.
const noLedger = "this devnode serves blocks from files: it has no ledger to check a transaction with"

// Submit puts a transaction into the mempool of a generated chain, whose next
// block will have it, or says why not. It is what a client's submission does.
func (c *Chain) Submit(era chain.Era, tx []byte) (chain.TxID, *forge.Refusal) {
	gen, err := c.grower()
	if err != nil {
		return chain.TxID{}, &forge.Refusal{Text: noLedger}
	}
	defer gen.mu.Unlock()
	if now := gen.forge.Era(); era != now {
		return chain.TxID{}, &forge.Refusal{Kind: forge.WrongEra, TxEra: era, Era: now}
	}
	t, err := forge.ReadTx(era, tx)
	if err != nil {
		return chain.TxID{}, &forge.Refusal{Text: err.Error()}
	}
	txs, _, _ := c.pool.snapshot()
	slot := gen.forge.Head().Point.Slot + 1
	if no := gen.forge.Check(t, slot, txs); no != nil {
		return t.ID, no
	}
	if mempoolSize(txs)+len(tx) > MempoolCapacity {
		return t.ID, &forge.Refusal{Text: "the mempool is full"} // a node would wait
	}
	c.pool.set(append(slices.Clone(txs), t), slot)
	return t.ID, nil
}

func mempoolSize(txs []*forge.Submitted) (n int) {
	for _, t := range txs {
		n += len(t.Raw)
	}
	return n
}

// Mempool returns the ids of the transactions in the mempool, in order.
func (c *Chain) Mempool() (ids []chain.TxID) {
	txs, _, _ := c.pool.snapshot()
	for _, t := range txs {
		ids = append(ids, t.ID)
	}
	return ids
}

// HoldMempool says whether blocks leave the mempool alone, so that a test can
// look at it. Blocks then may spend what its transactions spend, which leave it.
func (c *Chain) HoldMempool(held bool) {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.pool.held = held
}

// DropFromMempool forgets a transaction, as a node that restarts does.
func (c *Chain) DropFromMempool(id chain.TxID) {
	gen, err := c.grower()
	if err != nil {
		return
	}
	defer gen.mu.Unlock()
	txs, slot, _ := c.pool.snapshot()
	c.pool.set(slices.DeleteFunc(slices.Clone(txs), func(t *forge.Submitted) bool { return t.ID == id }), slot)
	c.pool.sift(gen.forge)
}

// Compose makes a transaction that Submit would take now, and puts it nowhere;
// see forge.Compose.
func (c *Chain) Compose(o forge.Order) ([]byte, chain.TxID, error) {
	gen, err := c.grower()
	if err != nil {
		return nil, chain.TxID{}, err
	}
	defer gen.mu.Unlock()
	txs, _, _ := c.pool.snapshot()
	return gen.forge.Compose(o, txs)
}

// LedgerEra returns the era of the ledger at the tip of a generated chain; 0 of
// any other.
func (c *Chain) LedgerEra() chain.Era {
	gen, err := c.grower()
	if err != nil {
		return 0
	}
	defer gen.mu.Unlock()
	return gen.forge.Era()
}
