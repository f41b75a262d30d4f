package chainsync

import (
	"context"
	"errors"
	"fmt"

	"github.com/blinklabs-io/gouroboros/protocol/localtxsubmission"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/reject"
)

// ErrRejected is the kind of an error whose cause is a *RejectedError.
var ErrRejected = errors.New("the node's ledger rejects the transaction")

// RejectedError is why a transaction was not accepted.
type RejectedError struct {
	ID  chain.TxID
	Raw []byte // the ledger's reason as it came, CBOR; package ledger/reject reads it
}

// Error returns the reason in words.
func (e *RejectedError) Error() string { return reject.Text(e.Raw) }

// Submit hands a transaction to the node, which puts it into its mempool if it
// is valid. tx is the whole of it, [body, witnesses, ...], unchanged; era is the
// era it was made for, 0 for the one the node's ledger is in, for which a ledger
// state must not be held on this connection. It returns the transaction's id,
// also with an error if it could be computed.
//
// The error is of kind ErrRejected, its cause a *RejectedError, if the ledger
// says no; the connection is as it was. It is of kind ledger.ErrNotATx, and nothing
// was sent, if tx is no transaction. With any other error nobody knows whether
// the node has it. To submit it again is safe: nothing can be spent twice.
//
// Submissions on one connection wait for each other. A node whose mempool is full
// answers when there is room again, so a follower does better to submit on a
// connection of its own: after Config.AnswerTimeout, or once a ctx has ended
// while the node owed an answer, the connection is over.
func (c *Conn) Submit(ctx context.Context, era chain.Era, tx []byte) (chain.TxID, error) {
	id, err := ledger.TxID(tx)
	if err != nil {
		return id, c.problem(talkSubmit.op, ledger.ErrNotATx, strip(err, ledger.ErrNotATx), "")
	}
	if era == 0 {
		s, err := c.AcquireTip(ctx)
		if err != nil {
			return id, err
		}
		era = s.Era()
		s.Release()
	}
	if era <= chain.Byron || era > chain.Dijkstra {
		return id, c.problem(talkSubmit.op, ErrUsage, fmt.Errorf("transactions of %s cannot be submitted", era), "")
	}
	q, err := c.dialogue(talkSubmit)
	if err != nil {
		return id, err
	}
	select {
	case q.busy <- struct{}{}:
	case <-ctx.Done():
		return id, ctx.Err()
	}
	defer func() { <-q.busy }()
	// [0, [era, #6.24(bytes)]] (local-tx-submission.cddl; consensus:
	// SerialiseNodeToClient of GenTx).
	rest := appendHead([]byte{0x82}, majorUint, uint64(era-chain.Byron))
	rest = appendHead(appendHead(rest, majorTag, tagEncodedCBOR), majorBytes, uint64(len(tx)))
	msg, err := c.ask(ctx, q, rawQuestion(localtxsubmission.MessageTypeSubmitTx, 1, append(rest, tx...)))
	if err != nil {
		return id, err
	}
	d := decoder{b: msg.Cbor()}
	switch n, tag := d.array("message"), d.uint("message tag"); {
	case d.err != nil:
	case tag == localtxsubmission.MessageTypeAcceptTx && n == 1:
	case tag == localtxsubmission.MessageTypeRejectTx && n == 2:
		return id, c.problem(q.op, ErrRejected, &RejectedError{ID: id, Raw: d.b[d.off:]}, "")
	default:
		d.fail("message %d of %d items", tag, n)
	}
	if err := d.end(); err != nil {
		return id, c.broken(err)
	}
	return id, nil
}
