package devnode

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Message tags of local-state-query (local-state-query CDDL). All versions
// since 16 have all of them.
const (
	tagAcquire          = 0
	tagAcquired         = 1
	tagAcquireFailure   = 2
	tagQuery            = 3
	tagResult           = 4
	tagRelease          = 5
	tagReacquire        = 6
	tagQueryDone        = 7
	tagAcquireVolatile  = 8
	tagReacquireVol     = 9
	tagAcquireImmutable = 10
	tagReacquireImm     = 11
)

// ErrNoAnswer is wrapped when a client asks something a node answers and this
// server does not. The protocol has no reply for that: the connection is closed,
// as a node does with a query it cannot read.
var ErrNoAnswer = errors.New("devnode has no answer to this state query")

// stateQuery is the server's side of one client's local-state-query.
type stateQuery struct {
	c     *conn
	in    *stream
	state *ledgerState // nil: nothing acquired
}

func (s *stateQuery) run() error { return s.in.serve(s.handle) }

func (s *stateQuery) handle(msg []byte) (done bool, err error) {
	tag, n, off, err := readTag(msg, "state query")
	if err != nil {
		return false, err
	}
	// The same questions have one tag while nothing is acquired and another
	// while something is.
	type form struct {
		tag      uint64
		items    int
		acquired bool
	}
	var want target
	switch (form{tag, n, s.state != nil}) {
	case form{tagAcquire, 2, false}, form{tagReacquire, 2, true}:
		if want.point, _, err = parsePoint(msg, off); err != nil {
			return false, err
		}
	case form{tagAcquireVolatile, 1, false}, form{tagReacquireVol, 1, true}:
		want.kind = targetVolatileTip
	case form{tagAcquireImmutable, 1, false}, form{tagReacquireImm, 1, true}:
		want.kind = targetImmutableTip
	case form{tagQuery, 2, true}:
		answer, err := s.answer(msg[off:])
		if err != nil {
			return false, err
		}
		return false, s.c.send(ProtocolStateQuery, append(wire.Uint(wire.Array(nil, 2), tagResult), answer...), nil)
	case form{tagRelease, 1, true}:
		s.state = nil
		return false, nil
	case form{tagQueryDone, 1, false}:
		return true, nil
	default:
		return false, fmt.Errorf("%w: state query message %d of %d items with acquired: %v", ErrProtocol, tag, n, s.state != nil)
	}
	return false, s.acquire(want)
}

func (s *stateQuery) acquire(want target) error {
	state, why, err := s.c.srv.cfg.Chain.acquire(want)
	if err != nil {
		return err
	}
	s.state = state
	b := wire.Uint(wire.Array(nil, 1), tagAcquired)
	if state == nil {
		b = wire.Uint(wire.Uint(wire.Array(nil, 2), tagAcquireFailure), uint64(why))
	}
	return s.c.send(ProtocolStateQuery, b, nil)
}

// Queries by their numbers: those about the chain, those about a block's
// ledger, of which there are those for an era and those about eras (consensus:
// Query, HardFork's SerialiseNodeToClient).
const (
	queryBlock       = 0
	querySystemStart = 1
	queryBlockNo     = 2
	queryPoint       = 3

	queryIfCurrent = 0
	queryHardFork  = 2

	queryInterpreter = 0
	queryCurrentEra  = 1
)

// Queries for an era since Shelley (consensus: Shelley/Ledger/Query.hs).
const (
	queryEpochNo        = 1
	queryCurrentPParams = 3
	queryGenesisConfig  = 11
	queryUTxOByTxIn     = 15
)

// answer encodes the answer to a query.
func (s *stateQuery) answer(q []byte) ([]byte, error) {
	path, rest, err := queryPath(q)
	if err != nil {
		return nil, err
	}
	is := func(want ...uint64) bool { return slices.Equal(path, want) }
	switch {
	case is(querySystemStart):
		return s.systemStart()
	case is(queryBlockNo):
		if s.state.at.IsOrigin() {
			return wire.Uint(wire.Array(nil, 1), 0), nil
		}
		return wire.Uint(wire.Uint(wire.Array(nil, 2), 1), uint64(s.state.at.Height)), nil
	case is(queryPoint):
		return AppendPoint(nil, s.state.at.Point), nil
	case is(queryBlock, queryHardFork, queryCurrentEra):
		return wire.Uint(nil, eraIndex(s.state.era)), nil
	case is(queryBlock, queryHardFork, queryInterpreter):
		return s.interpreter()
	case len(path) >= 3 && path[0] == queryBlock && path[1] == queryIfCurrent:
		return s.ifCurrent(path[2], path[3:], rest)
	}
	return nil, fmt.Errorf("%w: %v", ErrNoAnswer, path)
}

// queryPath takes a query apart: each level is an array of a number and what
// it is about, until the latter is no such array; rest is that.
func queryPath(q []byte) (path []uint64, rest []byte, err error) {
	off := 0
	for {
		n, next, err := wire.ReadArray(q, off)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: query: %w", ErrProtocol, err)
		}
		number, next, err := wire.ReadUint(q, next)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: query: %w", ErrProtocol, err)
		}
		path = append(path, number)
		// A query for an era is at most four deep: block, if current, era, query.
		if n != 2 || len(path) == 4 {
			return path, q[next:], nil
		}
		off = next
	}
}

// ifCurrent answers a query for an era, [answer], or says that it is not the
// era of the ledger, [the query's era, the ledger's era].
func (s *stateQuery) ifCurrent(era uint64, query []uint64, rest []byte) ([]byte, error) {
	if era >= uint64(len(eraNames)) {
		return nil, fmt.Errorf("%w: query for era %d", ErrProtocol, era)
	}
	if now := eraIndex(s.state.era); era != now {
		b := wire.Array(nil, 2)
		for _, e := range []uint64{era, now} {
			b = wire.Text(wire.Uint(wire.Array(b, 2), e), eraNames[e])
		}
		return b, nil
	}
	if s.state.era > chain.Byron && len(query) == 1 && query[0] == queryUTxOByTxIn {
		answer, err := s.utxoByTxIn(rest)
		return append(wire.Array(nil, 1), answer...), err
	}
	if s.state.era > chain.Byron && len(query) == 1 && s.state.chain.gen != nil {
		switch b := wire.Array(nil, 1); query[0] {
		case queryEpochNo:
			return wire.Uint(b, s.state.epoch()), nil
		case queryCurrentPParams:
			return AppendParams(b, s.state.era, s.c.version), nil
		case queryGenesisConfig:
			return s.genesis(b)
		}
	}
	return nil, fmt.Errorf("%w: query %v in era %v", ErrNoAnswer, query, s.state.era)
}

// genesis appends the Shelley genesis without what is only needed at origin:
// delegates, funds and staking are empty (cardano-ledger, Shelley Genesis.hs;
// consensus, compactGenesis). What it says is in the genesis files too.
func (s *stateQuery) genesis(b []byte) ([]byte, error) {
	start, err := s.systemStart()
	if err != nil {
		return nil, err
	}
	f := s.state.chain.gen.forge
	spans := f.Spans()
	b = append(wire.Array(b, 15), start...)
	b = wire.Uint(wire.Uint(b, uint64(f.Options().Magic)), 0)
	b = wire.Uint(wire.Uint(wire.Array(b, 2), 1), 20)
	for _, v := range []uint64{uint64(f.Options().K), spans[len(spans)-1].EpochSlots, 129_600, 62, 1_000_000, 5, 45_000_000_000_000_000} {
		b = wire.Uint(b, v) // the slot in microseconds
	}
	b = AppendParams(b, chain.Shelley, s.c.version)
	b = wire.Map(wire.Map(b, 0), 0)
	return wire.Map(wire.Map(wire.Array(b, 2), 0), 0), nil
}

// utxoByTxIn answers with a map of those of the references that are unspent.
func (s *stateQuery) utxoByTxIn(set []byte) ([]byte, error) {
	refs, err := parseTxIns(set, s.state.era)
	if err != nil {
		return nil, err
	}
	found, err := s.state.outputs(refs)
	if err != nil {
		return nil, fmt.Errorf("outputs at %v: %w", s.state.at, err)
	}
	if lie := s.c.srv.behaviour().OnUTxO; lie != nil {
		for _, ref := range refs {
			if out := lie(s.state.at, ref, found[ref]); out != nil {
				found[ref] = out
			} else {
				delete(found, ref)
			}
		}
	}
	// The ledger writes maps of more than 23 pairs with indefinite length
	// (cardano-ledger-binary, encodeMap).
	var b []byte
	indef := len(found) > 23
	if indef {
		b = append(b, wire.IndefMap)
	} else {
		b = wire.Map(b, len(found))
	}
	for _, ref := range slices.SortedFunc(maps.Keys(found), chain.TxIn.Compare) {
		b = wire.Bytes(wire.Array(b, 2), ref.ID[:])
		b = append(wire.Uint(b, uint64(ref.Index)), found[ref]...)
	}
	if indef {
		b = append(b, wire.Break)
	}
	return b, nil
}

// parseTxIns reads a set of references as the ledger of an era does: a list of
// definite or indefinite length; from Conway on it may have the tag of a set and
// nothing may come twice (cardano-ledger-binary, decodeSet).
func parseTxIns(b []byte, era chain.Era) ([]chain.TxIn, error) {
	bad := func(err error) error { return fmt.Errorf("%w: set of references: %w", ErrProtocol, err) }
	off := 0
	if t, err := wire.Read(b, 0); err == nil && t.Major == wire.MajorTag && t.Arg == tagSet && era >= chain.Conway {
		off = t.Next
	}
	n, off, err := wire.ReadArray(b, off)
	if err != nil {
		return nil, bad(err)
	}
	var out []chain.TxIn
	seen := map[chain.TxIn]bool{}
	for i := 0; i != n; i++ {
		if n < 0 && off < len(b) && b[off] == wire.Break {
			break
		}
		items, next, err := wire.ReadArray(b, off)
		if err != nil {
			return nil, bad(err)
		}
		id, next, err := wire.ReadBytes(b, next)
		if err != nil {
			return nil, bad(err)
		}
		index, next, err := wire.ReadUint(b, next)
		if err != nil {
			return nil, bad(err)
		}
		ref := chain.TxIn{Index: uint32(index)}
		if items != 2 || copy(ref.ID[:], id) != len(ref.ID) || len(id) != len(ref.ID) || index > maxTxIx {
			return nil, bad(fmt.Errorf("a reference of %d items, %d bytes of id and index %d", items, len(id), index))
		}
		if seen[ref] && era >= chain.Conway {
			return nil, bad(fmt.Errorf("%v twice", ref))
		}
		seen[ref] = true
		out, off = append(out, ref), next
	}
	return out, nil
}

const (
	tagSet  = 258
	maxTxIx = 1<<16 - 1 // the ledger's TxIx has 16 bits
)

// interpreter answers with the eras up to the horizon, a list of [start, end,
// parameters]; a bound is [picoseconds, slot, epoch], the parameters [slots of an
// epoch, milliseconds of a slot, safe zone, genesis window] (consensus:
// HardFork/History/Summary.hs and EraParams.hs).
func (s *stateQuery) interpreter() ([]byte, error) {
	spans, err := s.state.eras()
	if err != nil {
		return nil, err
	}
	bound := func(b []byte, slot chain.Slot, epoch uint64) []byte {
		pico := new(big.Int).Mul(big.NewInt(int64(slot)), big.NewInt(1e12)) // every slot lasts a second
		b = wire.Array(b, 3)
		if pico.IsUint64() {
			b = wire.Uint(b, pico.Uint64())
		} else {
			b = wire.Bytes(wire.Tag(b, 2), pico.Bytes())
		}
		return wire.Uint(wire.Uint(b, uint64(slot)), epoch)
	}
	b := []byte{wire.IndefArray}
	for _, e := range spans {
		b = bound(wire.Array(b, 3), e.Slot, e.Epoch)
		b = bound(b, e.endSlot, e.endEpoch)
		b = wire.Uint(wire.Uint(wire.Array(b, 4), e.EpochSlots), 1000)
		b = wire.Uint(wire.Uint(wire.Array(b, 3), 0), e.safe)
		b = wire.Uint(wire.Array(b, 1), 0)
		b = wire.Uint(b, e.safe)
	}
	return append(b, wire.Break), nil
}

// systemStart answers [year, day of the year, picoseconds of the day]
// (cardano-slotting, SystemStart).
func (s *stateQuery) systemStart() ([]byte, error) {
	t, err := s.state.systemStart()
	if err != nil {
		return nil, err
	}
	t = t.UTC()
	second := uint64(t.Hour())*3600 + uint64(t.Minute())*60 + uint64(t.Second())
	b := wire.Uint(wire.Array(nil, 3), uint64(t.Year()))
	b = wire.Uint(b, uint64(t.YearDay()))
	return wire.Uint(b, second*1e12), nil
}
