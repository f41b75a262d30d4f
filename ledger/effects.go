package ledger

import (
	"github.com/ourotail/ourotail/chain"
)

// Effects fills dst with what the block does to the set of unspent outputs. Of
// a spent output only the reference is known here: Ref is set, the rest zero,
// until it is resolved. Raw and the outputs' bytes alias b.Raw; dst's slices
// are reused, so nothing is allocated once they have grown.
func (b *Block) Effects(dst *chain.Effects) {
	dst.Link = b.Link
	dst.Raw = b.Raw
	dst.Journal = false
	dst.Txs = dst.Txs[:0]
	dst.Spent = dst.Spent[:0]
	dst.Created = dst.Created[:0]
	for i := range b.Txs {
		t := &b.Txs[i]
		for _, ref := range t.spends {
			dst.Spent = append(dst.Spent, chain.Output{Ref: ref})
		}
		first, outs := t.Creates()
		for j := range outs {
			o := &outs[j]
			dst.Created = append(dst.Created, chain.Output{
				Ref:      chain.TxIn{ID: t.ID, Index: first + uint32(j)},
				Height:   b.Height,
				Slot:     b.Point.Slot,
				TxIndex:  uint32(i),
				Era:      b.Era,
				Lovelace: o.Lovelace,
				Raw:      b.Bytes(o.Span),
			})
		}
		dst.Txs = append(dst.Txs, chain.TxEffects{
			ID:      t.ID,
			Valid:   t.Valid,
			Spent:   len(dst.Spent),
			Created: len(dst.Created),
		})
	}
}

// Mint returns what the i-th transaction minted (positive) and burnt, sorted
// by policy and name, without zeros; nothing if it is not valid. Names alias
// b.Raw.
func (b *Block) Mint(i int) []chain.Minted {
	t := &b.Txs[i]
	if !t.Valid || !t.Mint.Present() {
		return nil
	}
	c := cursor{b: b.Raw}
	assets := c.decodeAssets(t.Mint, true)
	if len(assets) == 0 {
		return nil
	}
	minted := make([]chain.Minted, len(assets))
	for j, a := range assets {
		minted[j] = chain.Minted{Policy: a.Policy, Name: a.Name, Quantity: int64(a.Quantity)}
	}
	return minted
}
