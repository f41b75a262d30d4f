package forge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// ErrTooDeep is returned by Rewind for more blocks than can be undone.
var ErrTooDeep = errors.New("cannot rewind that far")

// Block is a forged block in storage form, [era tag, block].
type Block struct {
	chain.Link
	Raw []byte
}

// Forge makes blocks on a head that can be taken back. It is not safe for
// concurrent use; its Oracle is.
type Forge struct {
	opts    Options
	cal     calendar
	genesis *Genesis
	oracle  *Oracle
	head    *node
	path    []*node // the blocks of the head's branch, the head last
	live    live
	orphans []*draft               // transactions of the blocks undone last, oldest first
	again   map[chain.TxIn]*Output // outputs that orphans made again on the new branch
	wallet  [][]byte               // addresses that outputs go to again and again
	assets  []assetKind
	scratch []byte
	orders  []Order // of the block being made
	ordered []chain.TxID

	submitted []*Submitted // for the block being made
	composed  uint64       // calls of Compose
}

// New returns a forge at origin. Errors wrap ErrOptions.
func New(opts Options) (*Forge, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Forge{opts: opts, cal: opts.calendar()}
	g := newRnd(opts.Seed, chain.Hash{1}, 0)
	f.makeWallet(g)
	f.genesis = f.makeGenesis(g)
	f.oracle = newOracle(f.genesis.Outputs)
	f.head = f.oracle.root
	for _, o := range f.genesis.Outputs {
		f.live.add(o)
	}
	return f, nil
}

// Options returns the options with their defaults filled in.
func (f *Forge) Options() Options { return f.opts }

// Genesis returns what the chain starts from.
func (f *Forge) Genesis() *Genesis { return f.genesis }

// Oracle returns the ledger of the tree.
func (f *Forge) Oracle() *Oracle { return f.oracle }

// Head returns the point and height the next block is put on.
func (f *Forge) Head() chain.At { return f.head.At() }

// Wallet returns the addresses that the chain pays to again and again. The
// slices are read-only.
func (f *Forge) Wallet() [][]byte { return slices.Clone(f.wallet) }

// SlotAt returns the slot that is current at a time; every slot lasts a second.
func (f *Forge) SlotAt(t time.Time) chain.Slot {
	return chain.Slot(max(0, t.Sub(f.opts.SystemStart)/time.Second))
}

// ByronEpochSlots returns the number of slots of a Byron epoch, which is also
// the size of an ImmutableDB chunk.
func (f *Forge) ByronEpochSlots() uint64 { return f.cal.byronSlots }

// Rewind takes the head n blocks back; boundary blocks count. The next block
// begins another branch, on which many of the transactions undone come again,
// as they do on a real fork, and whose first block now and then stands in the
// very slot of the one it replaces. It returns ErrTooDeep, and moves nothing, beyond
// origin or what a lean forge remembers.
func (f *Forge) Rewind(n int) error {
	to := f.head
	for i := range n {
		if to == f.oracle.root || to.lean {
			return fmt.Errorf("%w: %d blocks, at most %d", ErrTooDeep, n, i)
		}
		to = to.parent
	}
	if n > 0 {
		f.orphans, f.again = nil, map[chain.TxIn]*Output{}
	}
	for f.head != to {
		f.orphans = append(slices.Clone(f.head.drafts), f.orphans...)
		f.live.undo(f.head.undo)
		f.head = f.head.parent
		f.path = f.path[:len(f.path)-1]
	}
	return nil
}

// Next makes a block on the head and moves the head to it.
func (f *Forge) Next() (Block, error) { return f.NextAt(0) }

// NextAt is Next for a block in a given slot, or in the first possible one
// after that if the head is there already. Where that would pass over an era
// or a boundary block the block stands where the next of these begins.
func (f *Forge) NextAt(slot chain.Slot) (Block, error) {
	parent := f.head
	g := newRnd(f.opts.Seed, parent.Point.Hash, parent.children)
	parent.children++
	n := &node{parent: parent, count: parent.count, lovelace: parent.lovelace, acc: parent.acc, avvm: parent.avvm}
	if parent == f.oracle.root {
		n.Parent = f.genesis.Hash
	} else {
		n.Parent = parent.Point.Hash
	}
	m := &maker{f: f, g: g, n: n, at: slot}
	var raw []byte
	switch m.place(); {
	case n.Boundary && len(f.orders) > 0:
		parent.children--
		return Block{}, fmt.Errorf("%w: the next block is a boundary block", ErrOrder)
	case n.Boundary:
		raw = m.boundaryBlock()
		// Its bytes depend on its parent alone: on another branch from there it
		// is the same block.
		if known, ok := f.oracle.nodes[n.Point.Hash]; ok {
			f.head = known
			f.path = append(f.path, known)
			return Block{Link: known.Link, Raw: raw}, nil
		}
	default:
		m.boundaryOfEras()
		m.submittedHere()
		if err := m.ordersHere(); err != nil {
			f.live.undo(n.undo)
			parent.children--
			return Block{}, err
		}
		m.transactions()
		switch n.Era {
		case chain.Byron:
			raw = m.byronBlock()
		case chain.Dijkstra:
			raw = m.dijkstraBlock()
		default:
			raw = m.shelleyBlock()
		}
	}
	m.settle()
	f.oracle.put(n)
	f.head = n
	f.path = append(f.path, n)
	if f.opts.Lean {
		f.forget()
	}
	return Block{Link: n.Link, Raw: raw}, nil
}

// forget drops what a lean forge need not remember: the contents of the block
// k below the head.
func (f *Forge) forget() {
	if i := len(f.path) - 1 - f.opts.K; i >= 0 {
		f.oracle.forget(f.path[i])
	}
}
