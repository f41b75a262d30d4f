package chainsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/blinklabs-io/gouroboros/protocol"
	"github.com/blinklabs-io/gouroboros/protocol/localtxmonitor"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

// Message tags of local-tx-monitor that gouroboros does not know, and the first
// version of the protocol that has them (local-tx-monitor.cddl).
const (
	tagGetMeasures      = 11
	tagReplyGetMeasures = 12

	versionMeasures = 20
)

// monitorStates are gouroboros' with those messages.
func monitorStates() protocol.StateMap {
	m := localtxmonitor.StateMap.Copy()
	var busy, acquired protocol.State
	for s := range m {
		switch s.Name {
		case "Busy":
			busy = s
		case "Acquired":
			acquired = s
		}
	}
	for from, t := range map[protocol.State]protocol.StateTransition{
		acquired: {MsgType: tagGetMeasures, NewState: busy},
		busy:     {MsgType: tagReplyGetMeasures, NewState: acquired},
	} {
		e := m[from]
		e.Transitions = append(slices.Clone(e.Transitions), t)
		m[from] = e
	}
	return m
}

// Mempool is what was in the node's mempool at one moment, until it is released:
// the transactions that the node would put into a block. It is used by one
// goroutine at a time.
type Mempool struct {
	c    *Conn
	q    *dialogue
	slot chain.Slot
}

// MempoolTx is a transaction in a mempool. Its bytes are the caller's.
type MempoolTx struct {
	ID  chain.TxID
	Era chain.Era
	Raw []byte // the transaction as it was submitted: [body, witnesses, ...]
}

// MempoolSizes say how full a mempool is.
type MempoolSizes struct {
	Capacity uint32 `json:"capacity"` // in bytes
	Size     uint32 `json:"size"`     // in bytes
	Txs      uint32 `json:"txs"`
}

// Measure is how much of something transactions in a mempool take.
type Measure struct {
	Name     string `json:"name"` // "transaction_bytes", "ex_units_memory" and others
	Size     int64  `json:"size"`
	Capacity int64  `json:"capacity"`
}

// Mempool takes a snapshot of the node's mempool. A connection has one at a
// time: while another is held the error is an ErrUsage. Next and ledger states
// may go on meanwhile. Once a ctx has ended while the node owed an answer, the
// connection is over.
func (c *Conn) Mempool(ctx context.Context) (*Mempool, error) {
	q, err := c.dialogue(talkMempool)
	if err != nil {
		return nil, err
	}
	select {
	case q.busy <- struct{}{}:
	default:
		return nil, c.problem(q.op, ErrUsage, errors.New("another mempool snapshot is held on this connection"), "")
	}
	m := &Mempool{c: c, q: q}
	d, err := m.ask(ctx, localtxmonitor.MessageTypeAcquire, 0, nil, localtxmonitor.MessageTypeAcquired, 2)
	if err == nil {
		m.slot = chain.Slot(d.uint("slot"))
		err = m.end(d)
	}
	if err != nil {
		<-q.busy
		return nil, err
	}
	return m, nil
}

// Slot returns the slot for which the transactions were found to be valid: that
// of the block the node would make next.
func (m *Mempool) Slot() chain.Slot { return m.slot }

// Release gives the snapshot up, also if the connection is over.
func (m *Mempool) Release() {
	_ = m.q.proto.SendMessage(rawQuestion(localtxmonitor.MessageTypeRelease, 0, nil)) // fails only if the connection is over
	<-m.q.busy
}

// hasTxEra is the era of the ids that Has asks for. The node compares the hashes
// alone (consensus: the Eq instance of OneEraGenTxId); an era has to stand
// there, and Conway's is one that every node knows.
const hasTxEra = uint64(chain.Conway - chain.Byron)

// Has tells whether a transaction is in the snapshot.
func (m *Mempool) Has(ctx context.Context, id chain.TxID) (bool, error) {
	// [7, [era, id]]: an id is one of an era (consensus: SerialiseNodeToClient
	// of the hard fork combinator's GenTxId).
	rest := append(appendHead([]byte{0x82}, majorUint, hasTxEra), 0x58, byte(len(id)))
	d, err := m.ask(ctx, localtxmonitor.MessageTypeHasTx, 1, append(rest, id[:]...), localtxmonitor.MessageTypeReplyHasTx, 2)
	if err != nil {
		return false, err
	}
	answer := d.expect(majorOther, "answer")
	if d.err == nil && answer != simpleFalse && answer != simpleTrue {
		d.fail("simple value %d, want false or true", answer)
	}
	return answer == simpleTrue, m.end(d)
}

// Simple values (RFC 8949 section 3.3).
const (
	simpleFalse = 20
	simpleTrue  = 21
)

// Next returns the snapshot's next transaction, in the order in which the node
// would put them into a block; false after the last.
func (m *Mempool) Next(ctx context.Context) (MempoolTx, bool, error) {
	d, err := m.ask(ctx, localtxmonitor.MessageTypeNextTx, 0, nil, localtxmonitor.MessageTypeReplyNextTx, 0)
	if err != nil {
		return MempoolTx{}, false, err
	}
	if d.off == len(d.b) {
		return MempoolTx{}, false, nil
	}
	tx := d.genTx(m.c.cfg.MaxMessage)
	return tx, true, m.end(d)
}

// genTx reads a transaction with its era: [era, #6.24(bytes)] (consensus:
// SerialiseNodeToClient of GenTx; Byron: [0, [kind, transaction]]).
func (d *decoder) genTx(limit int) (tx MempoolTx) {
	if n := d.array("transaction"); d.err == nil && n != 2 {
		d.fail("a transaction of %d items", n)
	}
	index := d.uint("era")
	if d.err == nil && index > uint64(chain.Dijkstra-chain.Byron) {
		d.fail("era number %d, which is not known", index)
	}
	if d.err != nil {
		return tx
	}
	tx.Era = chain.Byron + chain.Era(index)
	if tx.Era == chain.Byron {
		if n := d.array("transaction"); d.err == nil && n != 2 {
			d.fail("a transaction of %d items", n)
		}
		d.uint("kind")
		if d.err != nil {
			return tx
		}
		size, err := ledger.ItemSize(d.b[d.off:])
		if err != nil {
			d.fail("transaction: %s", err)
			return tx
		}
		tx.Raw = d.b[d.off : d.off+size]
		d.off += size
	} else {
		if tag := d.expect(majorTag, "wrapper"); d.err == nil && tag != tagEncodedCBOR {
			d.fail("transaction wrapped in tag %d, want %d", tag, tagEncodedCBOR)
		}
		tx.Raw = d.string(majorBytes, "transaction", limit)
	}
	if d.err != nil {
		return tx
	}
	tx.Raw = bytes.Clone(tx.Raw)
	var err error
	if tx.ID, err = ledger.TxID(tx.Raw); err != nil {
		d.fail("%s", err)
	}
	return tx
}

// TxIDs returns the ids of the transactions that Next has not yet returned. It
// reads them whole: the protocol has no list of ids.
func (m *Mempool) TxIDs(ctx context.Context) ([]chain.TxID, error) {
	var out []chain.TxID
	for {
		tx, ok, err := m.Next(ctx)
		if err != nil || !ok {
			return out, err
		}
		out = append(out, tx.ID)
	}
}

// Sizes returns how full the mempool was.
func (m *Mempool) Sizes(ctx context.Context) (MempoolSizes, error) {
	d, err := m.ask(ctx, localtxmonitor.MessageTypeGetSizes, 0, nil, localtxmonitor.MessageTypeReplyGetSizes, 2)
	if err != nil {
		return MempoolSizes{}, err
	}
	if n := d.array("sizes"); d.err == nil && n != 3 {
		d.fail("%d sizes", n)
	}
	var n [3]uint32
	for i := range n {
		v := d.uint("size")
		if d.err == nil && v > math.MaxUint32 {
			d.fail("size %d", v)
		}
		n[i] = uint32(v)
	}
	return MempoolSizes{Capacity: n[0], Size: n[1], Txs: n[2]}, m.end(d)
}

// Measures returns the same in more detail, as many as the era's ledger limits,
// sorted by name. It wants version 20 of the protocol or later: the error is of
// kind ErrNoQuery otherwise.
func (m *Mempool) Measures(ctx context.Context) ([]Measure, error) {
	if v := m.c.Version(); v < versionMeasures {
		return nil, m.c.problem(m.q.op, ErrNoQuery, fmt.Errorf("mempool measures, in version %d of the protocol", v), "")
	}
	d, err := m.ask(ctx, tagGetMeasures, 0, nil, tagReplyGetMeasures, 3)
	if err != nil {
		return nil, err
	}
	d.uint("number of transactions")
	var out []Measure
	d.each(majorMap, "measures", func() {
		v := Measure{Name: string(d.string(majorText, "name", 200))}
		if n := d.array("measure"); d.err == nil && n != 2 {
			d.fail("a measure of %d items", n)
		}
		v.Size, v.Capacity = d.integer("measure"), d.integer("measure")
		out = append(out, v)
	})
	slices.SortFunc(out, func(a, b Measure) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return out, m.end(d)
}

// ask sends [tag, rest...] and returns a decoder that stands behind the tag of
// the answer, which has to be the one wanted, and to have that many items; with
// 0 any number.
func (m *Mempool) ask(ctx context.Context, tag uint8, items int, rest []byte, want, wantItems uint64) (*decoder, error) {
	msg, err := m.c.ask(ctx, m.q, rawQuestion(tag, items, rest))
	if err != nil {
		return nil, err
	}
	d := &decoder{b: msg.Cbor()}
	n, got := d.array("message"), d.uint("message tag")
	switch {
	case d.err != nil:
	case got != want:
		d.fail("message %d where %d answers", got, want)
	case wantItems > 0 && n != wantItems || wantItems == 0 && (n < 1 || n > 2 || (n == 1) != (d.off == len(d.b))):
		d.fail("message %d of %d items", got, n)
	}
	if d.err != nil {
		return nil, m.c.broken(whole(d.err))
	}
	return d, nil
}

// end ends the connection if the answer was not what it should be.
func (m *Mempool) end(d *decoder) error {
	if err := d.end(); err != nil {
		return m.c.broken(err)
	}
	return nil
}
