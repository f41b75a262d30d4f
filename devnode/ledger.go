package devnode

import (
	"errors"
	"fmt"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// ErrNoLedger is wrapped when a question needs a ledger and the chain has none:
// only generated chains have.
var ErrNoLedger = errors.New("this chain has no ledger behind it")

// defaultK is the security parameter of a chain that does not say one.
const defaultK = 2160

// target is what a client wants to look at: a point, or one of the tips.
type target struct {
	kind  targetKind
	point chain.Point
}

type targetKind uint8

const (
	targetPoint targetKind = iota
	targetVolatileTip
	targetImmutableTip
)

// Why a point cannot be looked at (local-state-query CDDL).
type acquireFailure uint8

const (
	pointTooOld     acquireFailure = 0
	pointNotOnChain acquireFailure = 1
)

// ledgerState is a ledger at a block, whatever becomes of the chain.
type ledgerState struct {
	at    chain.At
	era   chain.Era
	chain *Chain
}

// acquire finds the ledger state that a client wants. A node keeps the states
// after the last k blocks and after the one below them, its immutable tip: a
// point in a slot before that is too old, any other that is not among them is
// not on the chain (consensus: LedgerDB, getReadOnlyForker).
func (c *Chain) acquire(t target) (s *ledgerState, why acquireFailure, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := defaultK
	if c.gen != nil {
		k = c.gen.forge.Options().K
	}
	n := c.lenLocked()
	oldest := max(n-1-k, -1)
	i := n - 1
	switch t.kind {
	case targetImmutableTip:
		i = oldest
	case targetPoint:
		var ok bool
		if i, ok = c.findLocked(t.point); !ok || i < oldest {
			if oldest >= 0 && (t.point.IsOrigin() || t.point.Slot < c.atLocked(oldest).Point.Slot) {
				return nil, pointTooOld, nil
			}
			return nil, pointNotOnChain, nil
		}
	}
	s = &ledgerState{at: c.atLocked(i), chain: c}
	s.era, err = c.eraLocked(i)
	return s, 0, err
}

// eraLocked is the era of the ledger after the i-th block.
func (c *Chain) eraLocked(i int) (chain.Era, error) {
	var raw []byte
	switch {
	case i < 0 && c.gen != nil:
		return c.gen.forge.Options().Eras[0].Era, nil
	case i < 0:
		return chain.Byron, nil
	case i >= c.baseLen:
		raw = c.blocks[i-c.baseLen].Raw
	default:
		cur := c.base.Cursor()
		defer cur.Close()
		b, err := cur.Block(i)
		if err != nil {
			return 0, err
		}
		raw = b
	}
	if len(raw) < 2 {
		return 0, fmt.Errorf("block %v has %d bytes", c.atLocked(i), len(raw))
	}
	return max(chain.Era(raw[1]), chain.Byron), nil // a boundary block's tag is 0
}

// outputs returns those of the references that are unspent, as the ledger of
// the state's era writes them.
func (s *ledgerState) outputs(refs []chain.TxIn) (map[chain.TxIn][]byte, error) {
	if s.chain.gen == nil {
		return nil, ErrNoLedger
	}
	found, err := s.chain.Oracle().Outputs(s.at.Point.Hash, refs)
	if err != nil {
		return nil, err
	}
	out := make(map[chain.TxIn][]byte, len(found))
	for ref, o := range found {
		if out[ref], err = o.LedgerCBOR(s.era); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// systemStart is the time of slot 0.
func (s *ledgerState) systemStart() (time.Time, error) {
	if s.chain.gen == nil {
		return time.Time{}, ErrNoLedger
	}
	return s.chain.gen.forge.Options().SystemStart, nil
}

// epoch is the one that the state's block lies in.
func (s *ledgerState) epoch() uint64 { return s.chain.gen.forge.Epoch(s.at.Point.Slot) }

// eraSpan is an era with its end, exclusive.
type eraSpan struct {
	forge.Span
	endSlot  chain.Slot
	endEpoch uint64
	safe     uint64 // slots
}

// eras are the eras that a node knows of at the state: those that were passed
// over, the present one, and the next where it begins so soon that it is certain.
// The last ends with the epoch that the safe zone reaches into: 2k slots from the
// tip in Byron, 3k/f later (consensus: HardFork/History/Summary.hs, summarize).
func (s *ledgerState) eras() (out []eraSpan, err error) {
	if s.chain.gen == nil {
		return nil, ErrNoLedger
	}
	f := s.chain.gen.forge
	spans, k := f.Spans(), uint64(f.Options().K)
	next := s.at.Point.Slot + 1
	if s.at.IsOrigin() {
		next = 0
	}
	for e := chain.Byron; e < spans[0].Era; e++ { // empty ones, before the first
		out = append(out, eraSpan{Span: forge.Span{Era: e, EpochSlots: spans[0].EpochSlots}, safe: safeZone(e, k)})
	}
	for i, span := range spans {
		e := eraSpan{Span: span, safe: safeZone(span.Era, k)}
		reach := max(next, span.Slot) - span.Slot + chain.Slot(e.safe)
		epochs := (uint64(reach) + span.EpochSlots - 1) / span.EpochSlots
		e.endEpoch, e.endSlot = span.Epoch+epochs, span.Slot+chain.Slot(epochs*span.EpochSlots)
		last := i == len(spans)-1 || e.endEpoch < spans[i+1].Epoch
		if !last {
			e.endEpoch, e.endSlot = spans[i+1].Epoch, spans[i+1].Slot
		}
		out = append(out, e)
		if last {
			break
		}
	}
	return out, nil
}

func safeZone(e chain.Era, k uint64) uint64 {
	if e == chain.Byron {
		return 2 * k
	}
	return 60 * k // 3k/f, with f = 1/20
}

// eras are the eras of a Cardano ledger under the numbers and names that a
// node's state queries use (consensus: CardanoEras).
var eraNames = []string{"Byron", "Shelley", "Allegra", "Mary", "Alonzo", "Babbage", "Conway", "Dijkstra"}

// eraIndex is an era's number in state queries: one less than a block's tag.
func eraIndex(e chain.Era) uint64 { return uint64(e - chain.Byron) }
