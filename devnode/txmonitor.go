package devnode

import (
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Message tags of local-tx-monitor (local-tx-monitor CDDL); measures are there
// from version 20 on.
const (
	tagMonitorDone      = 0
	tagMonitorAcquire   = 1
	tagMonitorAcquired  = 2
	tagMonitorRelease   = 3
	tagNextTx           = 5
	tagReplyNextTx      = 6
	tagHasTx            = 7
	tagReplyHasTx       = 8
	tagGetSizes         = 9
	tagReplyGetSizes    = 10
	tagGetMeasures      = 11
	tagReplyGetMeasures = 12

	versionMeasures = 20
)

// txMonitor is the server's side of one client's local-tx-monitor.
type txMonitor struct {
	c        *conn
	in       *stream
	acquired bool
	txs      []*forge.Submitted // of the snapshot
	next     int                // of txs, for NextTx
	changed  <-chan struct{}    // closed when the mempool is no longer the snapshot
}

func (m *txMonitor) run() error { return m.in.serve(m.handle) }

func (m *txMonitor) handle(msg []byte) (done bool, err error) {
	tag, n, off, err := readTag(msg, "monitor")
	if err != nil {
		return false, err
	}
	var b []byte
	type form struct {
		tag      uint64
		items    int
		acquired bool
	}
	switch (form{tag, n, m.acquired}) {
	case form{tagMonitorDone, 1, false}:
		return true, nil
	case form{tagMonitorAcquire, 1, false}:
		b = m.acquire()
	case form{tagMonitorAcquire, 1, true}: // await: the client wants another mempool than it has
		select {
		case <-m.changed:
		case <-m.c.done:
			return false, errClosed
		}
		b = m.acquire()
	case form{tagMonitorRelease, 1, true}:
		m.acquired, m.txs = false, nil
		return false, nil
	case form{tagNextTx, 1, true}:
		if m.next == len(m.txs) {
			b = wire.Uint(wire.Array(nil, 1), tagReplyNextTx)
			break
		}
		t := m.txs[m.next]
		m.next++
		b = wire.Uint(wire.Array(nil, 2), tagReplyNextTx)
		b = wire.Embedded(wire.Uint(wire.Array(b, 2), eraIndex(t.Era)), t.Raw)
	case form{tagHasTx, 2, true}:
		id, err := parseTxID(msg, off)
		if err != nil {
			return false, err
		}
		has := byte(wire.False)
		if slices.ContainsFunc(m.txs, func(t *forge.Submitted) bool { return t.ID == id }) {
			has = wire.True
		}
		b = append(wire.Uint(wire.Array(nil, 2), tagReplyHasTx), has)
	case form{tagGetSizes, 1, true}:
		b = wire.Array(wire.Uint(wire.Array(nil, 2), tagReplyGetSizes), 3)
		b = wire.Uint(wire.Uint(b, MempoolCapacity), uint64(mempoolSize(m.txs)))
		b = wire.Uint(b, uint64(len(m.txs)))
	case form{tagGetMeasures, 1, true}:
		if m.c.version < versionMeasures {
			return false, fmt.Errorf("%w: measures in version %d", ErrProtocol, m.c.version)
		}
		b = wire.Uint(wire.Uint(wire.Array(nil, 3), tagReplyGetMeasures), uint64(len(m.txs)))
		b = wire.Text(wire.Map(b, 1), "transaction_bytes")
		b = wire.Uint(wire.Uint(wire.Array(b, 2), uint64(mempoolSize(m.txs))), MempoolCapacity)
	default:
		return false, fmt.Errorf("%w: monitor message %d of %d items with acquired: %v", ErrProtocol, tag, n, m.acquired)
	}
	return false, m.c.send(ProtocolTxMonitor, b, nil)
}

func (m *txMonitor) acquire() []byte {
	var slot chain.Slot
	m.txs, slot, m.changed = m.c.srv.cfg.Chain.pool.snapshot()
	m.next, m.acquired = 0, true
	return wire.Uint(wire.Uint(wire.Array(nil, 2), tagMonitorAcquired), uint64(slot))
}

// parseTxID reads [era, id], as a node does, or the bare id that some clients
// send. The era does not matter (consensus: the Eq instance of OneEraGenTxId).
func parseTxID(b []byte, off int) (id chain.TxID, err error) {
	bad := func(err error) (chain.TxID, error) {
		return chain.TxID{}, fmt.Errorf("%w: transaction id: %w", ErrProtocol, err)
	}
	if n, next, err := wire.ReadArray(b, off); err == nil {
		var era uint64
		if era, off, err = wire.ReadUint(b, next); err != nil {
			return bad(err)
		}
		if n != 2 || era >= uint64(len(eraNames)) {
			return bad(fmt.Errorf("%d items, era %d", n, era))
		}
	}
	s, end, err := wire.ReadBytes(b, off)
	if err != nil {
		return bad(err)
	}
	if len(s) != len(id) || end != len(b) {
		return bad(fmt.Errorf("%d bytes, and %d behind them", len(s), len(b)-end))
	}
	return chain.TxID(s), nil
}
