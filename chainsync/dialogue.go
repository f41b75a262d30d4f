package chainsync

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/blinklabs-io/gouroboros/protocol"
	"github.com/blinklabs-io/gouroboros/protocol/localstatequery"
	"github.com/blinklabs-io/gouroboros/protocol/localtxmonitor"
	"github.com/blinklabs-io/gouroboros/protocol/localtxsubmission"
)

// talk says what one of the small mini-protocols is: those in which we ask and
// the node answers.
type talk struct {
	op      string // Error.Op
	number  uint16
	name    string
	states  func() protocol.StateMap
	initial string
	parse   func(tag uint, data []byte) (protocol.Message, error)
}

var (
	talkQuery = talk{op: "query", number: localstatequery.ProtocolId, name: localstatequery.ProtocolName,
		states: localstatequery.StateMap.Copy, initial: "Idle", parse: localstatequery.NewMsgFromCbor}
	talkMempool = talk{op: "mempool", number: localtxmonitor.ProtocolId, name: localtxmonitor.ProtocolName,
		states: monitorStates, initial: "Idle", parse: parseRaw}
	talkSubmit = talk{op: "submit", number: localtxsubmission.ProtocolId, name: localtxsubmission.ProtocolName,
		states: localtxsubmission.StateMap.Copy, initial: "Idle", parse: parseRaw}
)

// dialogue is the client's side of such a protocol: gouroboros' state machine
// and multiplexing. Its own clients are not used because they decode what they
// are told after the rules of one era, know no contexts, and keep no bytes.
type dialogue struct {
	talk
	proto   *protocol.Protocol
	answers chan protocol.Message // holds one: there is one question at a time
	busy    chan struct{}         // holds a token while somebody uses it
}

// rawMessage is a message whose bytes are taken apart by whoever asked.
type rawMessage struct{ protocol.MessageBase }

func parseRaw(tag uint, data []byte) (protocol.Message, error) {
	if tag > 0xff {
		return nil, fmt.Errorf("message tag %d", tag)
	}
	m := &rawMessage{protocol.MessageBase{MessageType: uint8(tag)}}
	m.SetCbor(data)
	return m, nil
}

// rawQuestion makes a message: [tag, rest...] with that many items in rest.
func rawQuestion(tag uint8, items int, rest []byte) protocol.Message {
	m := &rawMessage{protocol.MessageBase{MessageType: tag}}
	m.SetCbor(append([]byte{0x81 + byte(items), tag}, rest...))
	return m
}

// dialogue starts a protocol once per connection.
func (c *Conn) dialogue(t talk) (*dialogue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if c.state != stateFollowing {
		c.op = t.op
	}
	if q := c.talks[t.number]; q != nil {
		return q, nil
	}
	states := t.states()
	q := &dialogue{talk: t, answers: make(chan protocol.Message, 1), busy: make(chan struct{}, 1)}
	var initial protocol.State
	for s := range states {
		if s.Name == t.initial {
			initial = s
		}
	}
	errs := make(chan error, 1)
	q.proto = protocol.New(protocol.ProtocolConfig{
		Name:       t.name,
		ProtocolId: t.number,
		Muxer:      c.node.Muxer(),
		Logger:     slog.New(slog.DiscardHandler),
		ErrorChan:  errs,
		Mode:       protocol.ProtocolModeNodeToClient,
		Role:       protocol.ProtocolRoleClient,
		MessageHandlerFunc: func(m protocol.Message) error {
			q.answers <- m // never full: every question takes its answer, or ends the connection
			return nil
		},
		MessageFromCborFunc: t.parse,
		StateMap:            states,
		InitialState:        initial,
		MaxReadBufferSize:   c.cfg.MaxMessage,
	})
	q.proto.Start()
	if c.talks == nil {
		c.talks = map[uint16]*dialogue{}
	}
	c.talks[t.number] = q
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
func (c *Conn) ask(ctx context.Context, q *dialogue, m protocol.Message) (protocol.Message, error) {
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
		c.fail(c.problem(q.op, ErrClosed, ctx.Err(), ""))
		return nil, ctx.Err()
	case <-late.C:
		c.fail(c.peerProblem(fmt.Errorf("%w: no answer to a %s within %s", ErrSilent, q.name, c.cfg.AnswerTimeout)))
	}
	return nil, c.cause()
}

// broken ends the connection because of what the node said.
func (c *Conn) broken(err error) error {
	c.fail(c.peerProblem(err))
	return c.cause()
}

// stop ends the protocol and waits for its goroutines.
func (q *dialogue) stop() {
	q.proto.Stop()
	<-q.proto.DoneChan()
}
