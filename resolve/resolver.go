package resolve

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

var (
	// ErrUnknownOutput is wrapped when an input names an output that never was.
	ErrUnknownOutput = errors.New("the output is not in the set")
	// ErrSpentTwice is wrapped when an earlier block of the same batch spent it.
	ErrSpentTwice = errors.New("the output was spent already in this batch")
	// ErrMadeTwice is wrapped when a block makes an output that is there already.
	ErrMadeTwice = errors.New("the output was made already in this batch")
)

// InputError names an input that does not resolve. Either the node's chain is
// not the one that the store was filled from, or the store is damaged.
type InputError struct {
	Block chain.At
	Tx    chain.TxID
	Input chain.TxIn
	Cause error
}

// Error implements error.
func (e *InputError) Error() string {
	return fmt.Sprintf("block %s, transaction %s, input %s: %v", e.Block, e.Tx, e.Input, e.Cause)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Cause }

// Source is where outputs of earlier commits are found.
type Source interface {
	// Outputs looks up the live outputs named by the Ref of each element and
	// fills in the rest. It returns the index of the first that is not there, or
	// -1. The bytes stay valid until the source's next commit.
	Outputs(want []*chain.Output) (missing int, err error)
}

// birth is an output made in the open batch.
type birth struct {
	block *chain.Effects
	index int
}

func (b birth) output() *chain.Output { return &b.block.Created[b.index] }

// Resolver resolves the blocks of one open batch. It is used from one goroutine.
type Resolver struct {
	source Source
	births map[chain.TxIn]birth    // made in the batch; InBatch says whether it was spent in it
	spent  map[chain.TxIn]struct{} // outputs of earlier commits, spent in the batch
	want   []*chain.Output         // scratch
	tx     []int                   // the transaction of each of want
}

// New returns a resolver with an empty batch.
func New(source Source) *Resolver {
	return &Resolver{source: source, births: map[chain.TxIn]birth{}, spent: map[chain.TxIn]struct{}{}}
}

// Block fills in what e spends and adds e to the open batch. On an error
// the batch is as it was. Resolved bytes alias the block that made the output,
// or are the source's.
func (r *Resolver) Block(e *chain.Effects) error {
	r.want, r.tx = r.want[:0], r.tx[:0]
	done := 0 // transactions taken into the batch, for undoing on an error
	err := r.take(e, &done)
	if err == nil && len(r.want) > 0 {
		err = r.fetch(e)
	}
	if err != nil {
		r.giveBack(e, done)
		return err
	}
	return nil
}

func (r *Resolver) take(e *chain.Effects, done *int) error {
	spent, created := 0, 0
	for i, tx := range e.Txs {
		for ; spent < tx.Spent; spent++ {
			out := &e.Spent[spent]
			b, born := r.births[out.Ref]
			_, twice := r.spent[out.Ref]
			if twice || born && b.output().InBatch {
				r.undoTx(e, i, spent, created)
				return &InputError{Block: e.At(), Tx: tx.ID, Input: out.Ref, Cause: ErrSpentTwice}
			}
			if born {
				b.output().InBatch = true
				*out = *b.output()
				continue
			}
			out.InBatch = false
			r.spent[out.Ref] = struct{}{}
			r.want, r.tx = append(r.want, out), append(r.tx, i)
		}
		for ; created < tx.Created; created++ {
			ref := e.Created[created].Ref
			if _, twice := r.births[ref]; twice {
				r.undoTx(e, i, spent, created)
				return &InputError{Block: e.At(), Tx: tx.ID, Input: ref, Cause: ErrMadeTwice}
			}
			e.Created[created].InBatch = false
			r.births[ref] = birth{e, created}
		}
		*done = i + 1
	}
	return nil
}

func (r *Resolver) fetch(e *chain.Effects) error {
	missing, err := r.source.Outputs(r.want)
	if err != nil {
		return fmt.Errorf("block %s: %w", e.At(), err)
	}
	if missing >= 0 {
		return &InputError{Block: e.At(), Tx: e.Txs[r.tx[missing]].ID, Input: r.want[missing].Ref, Cause: ErrUnknownOutput}
	}
	return nil
}

// undoTx takes back the part of transaction i that was taken: its spends below
// spent, its creations below created.
func (r *Resolver) undoTx(e *chain.Effects, i, spent, created int) {
	s, c := 0, 0
	if i > 0 {
		s, c = e.Txs[i-1].Spent, e.Txs[i-1].Created
	}
	for _, o := range e.Created[c:created] {
		delete(r.births, o.Ref)
	}
	for j := spent - 1; j >= s; j-- {
		r.unspend(&e.Spent[j])
	}
}

func (r *Resolver) giveBack(e *chain.Effects, txs int) {
	for i := txs - 1; i >= 0; i-- {
		r.undoTx(e, i, e.Txs[i].Spent, e.Txs[i].Created)
	}
}

func (r *Resolver) unspend(o *chain.Output) {
	if o.InBatch {
		o.InBatch = false
		r.births[o.Ref].output().InBatch = false
		return
	}
	delete(r.spent, o.Ref)
}

// Cut takes the newest block out of the open batch again. Blocks are cut
// newest first.
func (r *Resolver) Cut(e *chain.Effects) { r.giveBack(e, len(e.Txs)) }

// Committed empties the batch: what it held is in the source now.
func (r *Resolver) Committed() {
	clear(r.births)
	clear(r.spent)
}
