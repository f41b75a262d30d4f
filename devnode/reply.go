package devnode

import (
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// ReplyKind is a message of the server's side of chain-sync.
type ReplyKind uint8

// The kinds of reply.
const (
	AwaitReply ReplyKind = iota
	RollForward
	RollBackward
	IntersectFound
	IntersectNotFound
)

// Reply is one chain-sync message about to be sent, and what a fault may do to
// it. The fields of the first group say what would be sent and may be changed;
// Block is not to be written to.
type Reply struct {
	Client int // number of the connection, from 1
	N      int // how many replies this client got before
	Kind   ReplyKind
	At     chain.At // the block sent, or the point kept; an intersection has no height
	Index  int      // of that block in the chain
	Tip    chain.Tip
	Block  []byte // of a RollForward

	Message  []byte        // sent instead of the encoded message
	Segments []int         // payload sizes of the segments, the last repeating; nil packs as usual
	Delay    time.Duration // waited before sending
	Before   [][]byte      // whole messages sent before it, request or not
	After    [][]byte      // the same behind it
	Raw      []byte        // written to the socket as it is, before everything else
	Drop     bool          // not sent at all: the request stays unanswered
	Skip     bool          // not sent; the next step of the chain answers the request
	Stay     bool          // sent, but the client does not move: the block comes again
	Close    bool          // the connection is closed after it
}

// Encode returns the message as it would be sent.
func (r *Reply) Encode(b []byte) []byte {
	switch r.Kind {
	case AwaitReply:
		return wire.Uint(wire.Array(b, 1), tagAwaitReply)
	case RollForward:
		b = wire.Uint(wire.Array(b, 3), tagRollForward)
		b = wire.Embedded(b, r.Block)
	case RollBackward:
		b = wire.Uint(wire.Array(b, 3), tagRollBackward)
		b = AppendPoint(b, r.At.Point)
	case IntersectFound:
		b = wire.Uint(wire.Array(b, 3), tagIntersectFound)
		b = AppendPoint(b, r.At.Point)
	case IntersectNotFound:
		b = wire.Uint(wire.Array(b, 2), tagIntersectNotFound)
	}
	return AppendTip(b, r.Tip)
}

// reply sends or gathers one reply. It returns false if a fault wants the
// request answered with what comes next.
func (s *chainSync) reply(r Reply) (answered bool, err error) {
	fault := s.c.srv.behaviour().OnReply
	if fault == nil {
		s.n++
		s.out = r.Encode(s.out)
		if len(s.out) >= batchSize {
			return true, s.flush()
		}
		return true, nil
	}
	r.Client, r.N = s.c.id, s.n
	forward := r.Kind == RollForward
	s.n++
	fault(&r)
	if r.Skip {
		return false, nil
	}
	if r.Stay && forward {
		s.c.srv.cfg.Chain.back(s.f, r.Index)
	}
	return true, s.faulty(&r)
}

// faulty sends a reply that a fault has seen.
func (s *chainSync) faulty(r *Reply) error {
	for _, m := range r.Before {
		s.out = append(s.out, m...)
	}
	if r.Delay > 0 || len(r.Segments) > 0 || r.Drop || r.Raw != nil {
		if err := s.flush(); err != nil {
			return err
		}
		if err := s.c.sleep(r.Delay); err != nil {
			return err
		}
	}
	if r.Raw != nil {
		if err := s.c.write(r.Raw); err != nil {
			return err
		}
	}
	if !r.Drop {
		msg := r.Message
		if msg == nil {
			msg = r.Encode(nil)
		}
		if len(r.Segments) > 0 {
			if err := s.c.send(ProtocolChainSync, msg, r.Segments); err != nil {
				return err
			}
		} else {
			s.out = append(s.out, msg...)
		}
	}
	for _, m := range r.After {
		s.out = append(s.out, m...)
	}
	if len(s.out) >= batchSize || r.Close {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if r.Close {
		return errScripted
	}
	return nil
}
