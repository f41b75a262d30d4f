package resolve

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

// Builder turns resolved blocks into what the hub takes. It is used from one
// goroutine; what it builds is independent of it and of the block's buffers.
type Builder struct {
	// ByronEpochSlots is passed on to ledger.Block.
	ByronEpochSlots uint64

	block ledger.Block
}

// Build decodes a resolved block with everything that subscribers may ask of it.
// Its bytes are copied once, so that the result outlives e's buffers. createdAt
// names the block at a height of the chain that e belongs to.
func (b *Builder) Build(e *chain.Effects, createdAt func(chain.Height) (chain.At, error)) (*chain.AppliedBlock, error) {
	raw, spent := own(e)
	b.block.ByronEpochSlots = b.ByronEpochSlots
	b.block.Trusted = true // it was walked when it came, or is from our own store
	if err := b.block.Walk(raw); err != nil {
		return nil, err
	}
	// What the ledger itself removes stands first, in a transaction that is not
	// among the block's own (contract 1.7).
	ledgers := len(e.Txs) - len(b.block.Txs)
	if ledgers < 0 || ledgers > 1 {
		return nil, fmt.Errorf("block %s: %d transactions were resolved, it has %d", e.At(), len(e.Txs), len(b.block.Txs))
	}
	out := &chain.AppliedBlock{At: e.At(), Txs: make([]chain.AppliedTx, len(e.Txs)), Block: raw, Coverage: chain.Complete}
	utxos := make([]chain.UTxO, len(e.Spent)+len(e.Created))
	effects := make([]chain.Effect, len(utxos))
	place, s, c := 0, 0, 0
	add := func(o *chain.Output, bytes []byte, at chain.At) error {
		u := &utxos[place]
		*u = chain.UTxO{Ref: o.Ref, At: at, TxIndex: o.TxIndex}
		var err error
		if u.Out, err = ledger.DecodeOutput(o.Era, bytes); err != nil {
			return fmt.Errorf("block %s, output %s: %w", e.At(), o.Ref, err)
		}
		effects[place] = chain.Effect{UTxO: u, Place: uint32(place)}
		place++
		return nil
	}
	for i := range e.Txs {
		tx := &out.Txs[i]
		*tx = chain.AppliedTx{ID: e.Txs[i].ID, Index: -1, Valid: true}
		var outs []ledger.Out
		if i >= ledgers {
			*tx = b.block.Tx(i - ledgers)
			_, outs = b.block.Txs[i-ledgers].Creates()
		}
		from := place
		for ; s < e.Txs[i].Spent; s++ {
			o := &e.Spent[s]
			at := chain.Origin
			if o.Height > chain.OriginHeight {
				var err error
				if at, err = createdAt(o.Height); err != nil {
					return nil, fmt.Errorf("block %s, output %s: %w", e.At(), o.Ref, err)
				}
			}
			if err := add(o, spent[s], at); err != nil {
				return nil, err
			}
		}
		tx.Spent, from = effects[from:place:place], place
		for j := 0; c < e.Txs[i].Created; c, j = c+1, j+1 {
			if err := add(&e.Created[c], b.block.Bytes(outs[j].Span), out.At); err != nil {
				return nil, err
			}
		}
		tx.Created = effects[from:place:place]
	}
	return out, nil
}

// own copies the block and the outputs it spends into one buffer.
func own(e *chain.Effects) (raw []byte, spent [][]byte) {
	n := len(e.Raw)
	for i := range e.Spent {
		n += len(e.Spent[i].Raw)
	}
	buf := append(make([]byte, 0, n), e.Raw...)
	raw = buf[:len(buf):len(buf)]
	spent = make([][]byte, len(e.Spent))
	for i := range e.Spent {
		start := len(buf)
		buf = append(buf, e.Spent[i].Raw...)
		spent[i] = buf[start:len(buf):len(buf)]
	}
	return raw, spent
}
