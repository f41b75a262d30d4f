package forge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ourotail/ourotail/chain"
)

// Errors of the Oracle.
var (
	// ErrUnknownBlock is wrapped when no block of the tree has that hash.
	ErrUnknownBlock = errors.New("the oracle knows no such block")
	// ErrForgotten is wrapped when a lean forge no longer knows a block's
	// contents.
	ErrForgotten = errors.New("the oracle has forgotten this block")
)

// Tx is what one transaction did.
type Tx struct {
	ID      chain.TxID
	Valid   bool
	Spent   []*Output // sorted by reference
	Created []*Output // sorted by index
	Mint    []chain.Minted
	Labels  []uint64 // metadata labels, ascending
	Fee     uint64
	// Deposited and Withdrawn balance the transaction: deposits and donations
	// go out, rewards come in. They count for a valid transaction only.
	Deposited, Withdrawn uint64
	RefIns               []chain.TxIn // reference inputs, sorted
	Scripts              []chain.Hash28
}

// Effects is what one block did. All of it is read-only.
type Effects struct {
	chain.Link
	Removed []*Output // taken by the ledger at the Allegra boundary, before the transactions; sorted
	Txs     []Tx
}

// Summary describes the unspent outputs after a block.
type Summary struct {
	chain.At
	Count       int
	Lovelace    uint64
	Accumulator [16]byte
}

// node is a block in the tree.
type node struct {
	Effects
	parent   *node
	children uint64 // how many blocks were put on it
	epoch    uint64
	count    int
	lovelace uint64
	acc      sum128
	avvm     []*Output // unredeemed so far, while that matters
	undo     []change
	drafts   []*draft
	firstAt  chain.Slot // slot of the first block that was put on it
	lean     bool       // contents forgotten
}

// Oracle knows every block of the tree that a forge made. It is safe for
// concurrent use with the forge.
type Oracle struct {
	mu      sync.RWMutex
	root    *node
	nodes   map[chain.Hash]*node
	genesis []*Output

	// The set at one block, moved along the tree as questions ask.
	at  *node
	set map[chain.TxIn]*Output
}

func newOracle(genesis []*Output) *Oracle {
	o := &Oracle{nodes: map[chain.Hash]*node{}, genesis: genesis, set: map[chain.TxIn]*Output{}}
	o.root = &node{Effects: Effects{Link: chain.Link{Height: chain.OriginHeight}}}
	var scratch []byte
	for _, out := range genesis {
		scratch = out.accumulate(scratch)
		o.root.gain(out)
		if out.avvm {
			o.root.avvm = append(o.root.avvm, out)
		}
		o.set[out.Ref] = out
	}
	o.at = o.root
	o.nodes[chain.Hash{}] = o.root
	return o
}

func (n *node) gain(o *Output) {
	n.count++
	n.lovelace += o.Lovelace
	n.acc = n.acc.add(o.term)
}

func (n *node) lose(o *Output) {
	n.count--
	n.lovelace -= o.Lovelace
	n.acc = n.acc.sub(o.term)
}

func (o *Oracle) put(n *node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[n.Point.Hash] = n
}

// Genesis returns the outputs that exist before the first block.
func (o *Oracle) Genesis() []*Output { return slices.Clone(o.genesis) }

func (o *Oracle) find(h chain.Hash) (*node, error) {
	n, ok := o.nodes[h]
	if !ok {
		return nil, fmt.Errorf("%v: %w", h, ErrUnknownBlock)
	}
	return n, nil
}

// Effects returns what the block with that header hash did.
func (o *Oracle) Effects(h chain.Hash) (*Effects, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	n, err := o.find(h)
	if err != nil {
		return nil, err
	}
	if n.lean {
		return nil, fmt.Errorf("%v: %w", n.At(), ErrForgotten)
	}
	e := n.Effects // a copy: the node may be forgotten later
	return &e, nil
}

// Summary describes the set after the block with that header hash; the zero
// hash is origin.
func (o *Oracle) Summary(h chain.Hash) (Summary, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	n, err := o.find(h)
	if err != nil {
		return Summary{}, err
	}
	return Summary{At: n.At(), Count: n.count, Lovelace: n.lovelace, Accumulator: n.acc.bytes()}, nil
}

// Path returns the links from the first block to the one with that hash.
func (o *Oracle) Path(h chain.Hash) ([]chain.Link, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	n, err := o.find(h)
	if err != nil {
		return nil, err
	}
	var out []chain.Link
	for ; n != o.root; n = n.parent {
		out = append(out, n.Link)
	}
	slices.Reverse(out)
	return out, nil
}

// Set returns the unspent outputs after the block with that header hash, as a
// copy of the map; the zero hash is origin.
func (o *Oracle) Set(h chain.Hash) (map[chain.TxIn]*Output, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.moveLocked(h); err != nil {
		return nil, err
	}
	out := make(map[chain.TxIn]*Output, len(o.set))
	for k, v := range o.set {
		out[k] = v
	}
	return out, nil
}

// Lines returns the canonical lines of the unspent outputs after the block,
// sorted.
func (o *Oracle) Lines(h chain.Hash) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.moveLocked(h); err != nil {
		return nil, err
	}
	out := make([]string, 0, len(o.set))
	for _, v := range o.set {
		out = append(out, v.Line())
	}
	slices.Sort(out)
	return out, nil
}

// moveLocked takes the set to a block: down to the common ancestor, then up.
func (o *Oracle) moveLocked(h chain.Hash) error {
	to, err := o.find(h)
	if err != nil {
		return err
	}
	var up []*node
	a, b := o.at, to
	for a != b {
		// The farther of the two from origin goes one down. A boundary block
		// repeats a height, so depth is counted as height plus that.
		if a.depth() >= b.depth() {
			if a.lean {
				return fmt.Errorf("%v: %w", a.At(), ErrForgotten)
			}
			for i := len(a.Txs) - 1; i >= 0; i-- {
				for _, c := range a.Txs[i].Created {
					delete(o.set, c.Ref)
				}
				for _, s := range a.Txs[i].Spent {
					o.set[s.Ref] = s
				}
			}
			for _, s := range a.Removed {
				o.set[s.Ref] = s
			}
			a = a.parent
			o.at = a
		} else {
			up = append(up, b)
			b = b.parent
		}
	}
	for i := len(up) - 1; i >= 0; i-- {
		n := up[i]
		if n.lean {
			return fmt.Errorf("%v: %w", n.At(), ErrForgotten)
		}
		for _, s := range n.Removed {
			delete(o.set, s.Ref)
		}
		for _, tx := range n.Txs {
			for _, s := range tx.Spent {
				delete(o.set, s.Ref)
			}
			for _, c := range tx.Created {
				o.set[c.Ref] = c
			}
		}
		o.at = n
	}
	return nil
}

// forget drops the contents of a block that is on every branch to come. The
// set stays at or above it.
func (o *Oracle) forget(n *node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.at
	for a != n && a.depth() > n.depth() {
		a = a.parent
	}
	if a != n {
		if err := o.moveLocked(n.Point.Hash); err != nil {
			panic(err) // the set was kept where this is always possible
		}
	}
	n.lean, n.undo, n.Txs, n.Removed, n.drafts = true, nil, nil, nil, nil
}

// depth orders the blocks of one branch: twice the height, plus one for a
// boundary block, which lies above the main block of its height.
func (n *node) depth() int64 {
	d := 2 * int64(n.Height)
	if n.Boundary {
		d++
	}
	return d
}

// EffectLines returns the block's lines of canonical text, in order.
func (e *Effects) EffectLines() []string {
	var out []string
	spend := func(o *Output, by chain.TxID) {
		b := o.appendLine([]byte("- "))
		out = append(out, string(hex.AppendEncode(append(b, " by "...), by[:])))
	}
	for _, o := range e.Removed {
		spend(o, chain.TxID{})
	}
	for _, tx := range e.Txs {
		for _, o := range tx.Spent {
			spend(o, tx.ID)
		}
		for _, o := range tx.Created {
			out = append(out, string(o.appendLine([]byte("+ "))))
		}
	}
	return out
}
