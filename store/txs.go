package store

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// Txs returns the transactions of a block that has a record, without reading
// what they did; the errors are those of Effects.
func (v *Snapshot) Txs(at chain.Position) ([]chain.TxEffects, error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	defer v.end()
	var rec record
	found, err := get(v.txn, appendPositionKey(nil, keyRecord, at), rec.decode)
	if err != nil {
		return nil, err
	}
	if !found || at.Compare(v.head.base.Position()) <= 0 {
		return nil, fmt.Errorf("%w at height %d", ErrNoRecord, at.Height)
	}
	return rec.txs, nil
}
