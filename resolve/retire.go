package resolve

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// Retire adds to a block, before its transactions, the spending of outputs by the
// ledger itself: by a transaction with the all-zero id (contract 1.7). refs are
// sorted in place; with none it does nothing.
func Retire(e *chain.Effects, refs []chain.TxIn) {
	n := len(refs)
	if n == 0 {
		return
	}
	slices.SortFunc(refs, chain.TxIn.Compare)
	spent := make([]chain.Output, n, n+len(e.Spent))
	for i, ref := range refs {
		spent[i].Ref = ref
	}
	e.Spent = append(spent, e.Spent...)
	for i := range e.Txs {
		e.Txs[i].Spent += n
	}
	e.Txs = slices.Insert(e.Txs, 0, chain.TxEffects{Valid: true, Spent: n})
}
