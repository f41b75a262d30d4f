package chainsync

import (
	"context"
	"errors"
	"fmt"

	"github.com/blinklabs-io/gouroboros/protocol"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"
	"github.com/blinklabs-io/gouroboros/protocol/localstatequery"

	"github.com/ourotail/ourotail/chain"
)

// What a node may say to a state query besides an answer. They leave the
// connection as it was.
var (
	ErrPointTooOld     = errors.New("the node no longer has the ledger at this point")
	ErrPointNotOnChain = errors.New("the point is not on the node's chain")
	ErrEra             = errors.New("the node's ledger is in another era")
	ErrNoQuery         = errors.New("the node's ledger answers no such query in this era")
)

// MaxRefs is how many references UTxOByTxIn puts into one query. Outputs are a
// few hundred bytes each as a rule and 16 kB at most, so that an answer stays
// far below what a message may hold.
const MaxRefs = 200

// LedgerState is the node's ledger at a point, whatever becomes of the chain,
// until it is released. It is used by one goroutine at a time.
type LedgerState struct {
	c   *Conn
	q   *dialogue
	at  chain.Point
	era chain.Era
}

// Acquire asks the node for the ledger at a point: one of its newest k blocks
// or the one below them. It returns an *Error of kind ErrPointTooOld or
// ErrPointNotOnChain if the node has not got that; a node that is behind the point says the
// latter. A connection has one state at a time: while another is held the error
// is an ErrUsage. Next may go on meanwhile. Once a ctx has ended while the node
// owed an answer, the connection is over.
func (c *Conn) Acquire(ctx context.Context, at chain.Point) (*LedgerState, error) {
	p := pcommon.NewPointOrigin()
	if !at.IsOrigin() {
		p = pcommon.NewPoint(uint64(at.Slot), at.Hash[:])
	}
	return c.acquire(ctx, localstatequery.NewMsgAcquire(p), &at)
}

// AcquireTip is Acquire for the node's newest block, whatever it is.
func (c *Conn) AcquireTip(ctx context.Context) (*LedgerState, error) {
	return c.acquire(ctx, localstatequery.NewMsgAcquireVolatileTip(), nil)
}

// acquire takes the connection's state for itself and keeps it if all goes well.
// With no point the node is asked for it.
func (c *Conn) acquire(ctx context.Context, target protocol.Message, at *chain.Point) (*LedgerState, error) {
	q, err := c.dialogue(talkQuery)
	if err != nil {
		return nil, err
	}
	select {
	case q.busy <- struct{}{}:
	default:
		return nil, c.problem(q.op, ErrUsage, errors.New("another ledger state is held on this connection"), "")
	}
	s, err := c.acquired(ctx, q, target, at)
	if err != nil {
		<-q.busy
		return nil, err
	}
	return s, nil
}

func (c *Conn) acquired(ctx context.Context, q *dialogue, target protocol.Message, at *chain.Point) (*LedgerState, error) {
	msg, err := c.ask(ctx, q, target)
	if err != nil {
		return nil, err
	}
	if f, ok := msg.(*localstatequery.MsgFailure); ok {
		cause := errors.New("the tip")
		if at != nil {
			cause = errors.New(at.String())
		}
		switch f.Failure {
		case localstatequery.AcquireFailurePointTooOld:
			return nil, c.problem(q.op, ErrPointTooOld, cause, "")
		case localstatequery.AcquireFailurePointNotOnChain:
			return nil, c.problem(q.op, ErrPointNotOnChain, cause, "")
		}
		return nil, c.broken(fmt.Errorf("%w: refusal %d of a point", ErrMalformed, f.Failure))
	}
	s := &LedgerState{c: c, q: q}
	if at != nil {
		s.at = *at
	} else if s.at, err = s.point(ctx); err != nil {
		return nil, err
	}
	// [0, [2, [1]]]: a query about the block's ledger, about eras, the present
	// one (consensus: HardFork, SerialiseNodeToClient).
	answer, err := s.query(ctx, []any{0, []any{2, []any{1}}})
	if err != nil {
		return nil, err
	}
	d := decoder{b: answer}
	index := d.uint("era")
	if d.err == nil && index > uint64(chain.Dijkstra-chain.Byron) {
		d.fail("era number %d, which is not known", index)
	}
	if d.err != nil {
		return nil, c.broken(whole(d.err))
	}
	s.era = chain.Byron + chain.Era(index)
	return s, nil
}

// At returns the point.
func (s *LedgerState) At() chain.Point { return s.at }

// Era returns the era of the ledger, after whose rules it writes its answers.
func (s *LedgerState) Era() chain.Era { return s.era }

// Release gives the state up, also if the connection is over.
func (s *LedgerState) Release() {
	_ = s.q.proto.SendMessage(localstatequery.NewMsgRelease()) // fails only if the connection is over
	<-s.q.busy
}

// UTxOByTxIn asks which of the references are unspent, and returns the outputs
// as the ledger of the state's era writes them: not the bytes of the chain. They
// are the caller's. In Byron the error is of kind ErrNoQuery. It asks in steps of
// MaxRefs references, and as often as there are such.
func (s *LedgerState) UTxOByTxIn(ctx context.Context, refs []chain.TxIn) (map[chain.TxIn][]byte, error) {
	if s.era == chain.Byron {
		return nil, s.c.problem(s.q.op, ErrNoQuery, errors.New("outputs by reference, in byron"), "")
	}
	out := make(map[chain.TxIn][]byte, len(refs))
	for len(refs) > 0 {
		n := min(MaxRefs, len(refs))
		asked := make(map[chain.TxIn]struct{}, n)
		set := make([]any, 0, n)
		for _, r := range refs[:n] {
			if _, twice := asked[r]; !twice {
				asked[r] = struct{}{}
				set = append(set, []any{r.ID[:], r.Index})
			}
		}
		// A set without a tag is what ledgers of all eras read.
		answer, err := s.query(ctx, []any{0, []any{0, []any{int(s.era - chain.Byron), []any{queryUTxOByTxIn, set}}}})
		if err != nil {
			return nil, err
		}
		err = parseUTxO(answer, asked, out)
		switch {
		case errors.Is(err, ErrEra):
			return nil, s.c.problem(s.q.op, ErrEra, strip(err, ErrEra), "")
		case err != nil:
			return nil, s.c.broken(err)
		}
		refs = refs[n:]
	}
	return out, nil
}

// queryUTxOByTxIn is the query's number (consensus: Shelley/Ledger/Query.hs,
// GetUTxOByTxIn).
const queryUTxOByTxIn = 15

// query returns the bytes of the answer.
func (s *LedgerState) query(ctx context.Context, q any) ([]byte, error) {
	msg, err := s.c.ask(ctx, s.q, localstatequery.NewMsgQuery(q))
	if err != nil {
		return nil, err
	}
	return msg.(*localstatequery.MsgResult).Result, nil // the state machine lets nothing else through
}
