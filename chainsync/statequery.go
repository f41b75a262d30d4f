package chainsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

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

// stateQuery is the client's side of local-state-query: gouroboros' messages,
// state machine and multiplexing. Its own client is not used because it decodes
// outputs, after the rules of one era, and keeps no bytes.
type stateQuery struct {
	proto   *protocol.Protocol
	answers chan protocol.Message // holds one: there is one question at a time
	busy    chan struct{}         // holds a token while something is acquired
}

// LedgerState is the node's ledger at a point, whatever becomes of the chain,
// until it is released. It is used by one goroutine at a time.
type LedgerState struct {
	c   *Conn
	q   *stateQuery
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
	q, err := c.stateQuery()
	if err != nil {
		return nil, err
	}
	select {
	case q.busy <- struct{}{}:
	default:
		return nil, c.problem("query", ErrUsage, errors.New("another ledger state is held on this connection"), "")
	}
	s, err := c.acquire(ctx, q, at)
	if err != nil {
		<-q.busy
		return nil, err
	}
	return s, nil
}

func (c *Conn) acquire(ctx context.Context, q *stateQuery, at chain.Point) (*LedgerState, error) {
	p := pcommon.NewPointOrigin()
	if !at.IsOrigin() {
		p = pcommon.NewPoint(uint64(at.Slot), at.Hash[:])
	}
	msg, err := c.ask(ctx, q, localstatequery.NewMsgAcquire(p))
	if err != nil {
		return nil, err
	}
	if f, ok := msg.(*localstatequery.MsgFailure); ok {
		cause := errors.New(at.String())
		switch f.Failure {
		case localstatequery.AcquireFailurePointTooOld:
			return nil, c.problem("query", ErrPointTooOld, cause, "")
		case localstatequery.AcquireFailurePointNotOnChain:
			return nil, c.problem("query", ErrPointNotOnChain, cause, "")
		}
		return nil, c.broken(fmt.Errorf("%w: refusal %d of a point", ErrMalformed, f.Failure))
	}
	s := &LedgerState{c: c, q: q, at: at}
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
		return nil, s.c.problem("query", ErrNoQuery, errors.New("outputs by reference, in byron"), "")
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
			return nil, s.c.problem("query", ErrEra, strip(err, ErrEra), "")
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

// stateQuery starts the protocol once per connection.
func (c *Conn) stateQuery() (*stateQuery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if c.state != stateFollowing {
		c.op = "query"
	}
	if c.query != nil {
		return c.query, nil
	}
	states := localstatequery.StateMap.Copy()
	q := &stateQuery{answers: make(chan protocol.Message, 1), busy: make(chan struct{}, 1)}
	var idle protocol.State
	for s := range states {
		if s.Name == "Idle" {
			idle = s
		}
	}
	errs := make(chan error, 1)
	q.proto = protocol.New(protocol.ProtocolConfig{
		Name:       localstatequery.ProtocolName,
		ProtocolId: localstatequery.ProtocolId,
		Muxer:      c.node.Muxer(),
		Logger:     slog.New(slog.DiscardHandler),
		ErrorChan:  errs,
		Mode:       protocol.ProtocolModeNodeToClient,
		Role:       protocol.ProtocolRoleClient,
		MessageHandlerFunc: func(m protocol.Message) error {
			q.answers <- m // never full: every question takes its answer, or ends the connection
			return nil
		},
		MessageFromCborFunc: localstatequery.NewMsgFromCbor,
		StateMap:            states,
		InitialState:        idle,
		MaxReadBufferSize:   c.cfg.MaxMessage,
	})
	q.proto.Start()
	c.query = q
	// The reader runs while c.err is nil, so that nobody has waited in vain yet.
	c.wait.Go(func() {
		select {
		case err := <-errs:
			c.fail(c.peerProblem(fmt.Errorf("%w: %w", ErrProtocol, err)))
		case <-c.down:
		}
	})
	return q, nil
}

// ask sends a question and waits for its answer.
func (c *Conn) ask(ctx context.Context, q *stateQuery, m protocol.Message) (protocol.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	late := time.NewTimer(c.cfg.AnswerTimeout)
	defer late.Stop()
	// It fails when the connection ends, whose cause is told below.
	_ = q.proto.SendMessage(m)
	select {
	case a := <-q.answers:
		return a, nil
	case <-c.down:
		select {
		case a := <-q.answers: // it answered before it went
			return a, nil
		default:
		}
	case <-ctx.Done():
		c.fail(c.problem("query", ErrClosed, ctx.Err(), ""))
		return nil, ctx.Err()
	case <-late.C:
		c.fail(c.peerProblem(fmt.Errorf("%w: no answer to a state query within %s", ErrSilent, c.cfg.AnswerTimeout)))
	}
	return nil, c.cause()
}

// broken ends the connection because of what the node said.
func (c *Conn) broken(err error) error {
	c.fail(c.peerProblem(err))
	return c.cause()
}

// stop ends the protocol and waits for its goroutines.
func (q *stateQuery) stop() {
	if q != nil {
		q.proto.Stop()
		<-q.proto.DoneChan()
	}
}
