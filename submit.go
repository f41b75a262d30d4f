package ourotail

import (
	"context"
	"errors"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

var errNoLedger = errors.New("ourotail: this node cannot be asked")

// Submit hands a signed transaction to the node, unchanged: [body, witnesses, ...],
// made for the era that the node is in. The node takes it into its mempool if it is
// valid, which is no promise of a block. It returns the transaction's id, also with
// an error if it could be computed.
//
// From its return on the transaction is pending for SubscribeStatus, or further. A
// subscription made before on the same goroutine misses nothing that comes of it.
//
// If the ledger says no, the error wraps chainsync.ErrRejected and a
// *chainsync.RejectedError that has the reason; package ledger/reject takes it apart.
// It wraps ledger.ErrNotATx, and nothing was sent, if tx is no transaction. With any
// other error nobody knows whether the node has it: submitting it again does no
// harm. Submit needs the node, on a connection of its own, but not Run; a node whose
// mempool is full lets it wait, so give ctx an end.
func (f *Follower) Submit(ctx context.Context, tx []byte) (chain.TxID, error) {
	node, ok := f.node.(ledgerNode)
	if !ok {
		return chain.TxID{}, errNoLedger
	}
	if id, err := ledger.TxID(tx); err != nil {
		return id, err // whether there is a node or not
	}
	id, err := node.submit(ctx, tx)
	if err != nil {
		return id, err
	}
	f.hub.Submitted(id)
	f.lookIntoMempool()
	return id, nil
}
