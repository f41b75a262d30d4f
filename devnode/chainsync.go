package devnode

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Message tags of local chain-sync (chain-sync CDDL).
const (
	tagRequestNext       = 0
	tagAwaitReply        = 1
	tagRollForward       = 2
	tagRollBackward      = 3
	tagFindIntersect     = 4
	tagIntersectFound    = 5
	tagIntersectNotFound = 6
	tagDone              = 7
)

var requestNext = [2]byte{0x81, tagRequestNext}

func isRequestNext(b []byte) bool {
	return len(b) >= 2 && b[0] == requestNext[0] && b[1] == requestNext[1]
}

// batchSize is how many bytes of replies are gathered, while requests are
// waiting, before they are written.
const batchSize = 192 << 10

// chainSync is the server's side of one client's chain-sync.
type chainSync struct {
	c   *conn
	in  *stream
	f   *follower
	out []byte // replies not yet written
	n   int    // replies so far
}

// run answers until the client is done or the connection ends.
func (s *chainSync) run() error {
	chain := s.c.srv.cfg.Chain
	s.f = chain.follow()
	defer chain.unfollow(s.f)
	for {
		msg, ok, err := s.in.try()
		if err != nil {
			return err
		}
		if !ok {
			if err := s.flush(); err != nil {
				return err
			}
			if msg, err = s.in.wait(); err != nil {
				return err
			}
		}
		if isRequestNext(msg) {
			if err := s.requestNext(); err != nil {
				return err
			}
			continue
		}
		done, err := s.other(msg)
		if done || err != nil {
			return err
		}
	}
}

// requestNext answers one request, waiting for the chain to move if need be.
func (s *chainSync) requestNext() error {
	awaited := false
	for {
		step, err := s.c.srv.cfg.Chain.next(s.f)
		if err != nil {
			return err
		}
		if step.wait == nil {
			r := Reply{Kind: RollForward, At: step.at, Tip: step.tip, Block: step.raw, Index: step.index}
			if step.backward {
				r.Kind = RollBackward
			}
			answered, err := s.reply(r)
			if answered || err != nil {
				return err
			}
			continue
		}
		if !awaited {
			if _, err := s.reply(Reply{Kind: AwaitReply, Tip: step.tip}); err != nil {
				return err
			}
			awaited = true
		}
		if err := s.flush(); err != nil {
			return err
		}
		select {
		case <-step.wait:
		case <-s.c.done:
			return errClosed
		}
	}
}

// other handles what is not a request for the next block.
func (s *chainSync) other(msg []byte) (done bool, err error) {
	n, off, err := wire.ReadArray(msg, 0)
	if err != nil {
		return false, fmt.Errorf("%w: chain-sync: %w", ErrProtocol, err)
	}
	tag, off, err := wire.ReadUint(msg, off)
	if err != nil {
		return false, fmt.Errorf("%w: chain-sync: %w", ErrProtocol, err)
	}
	switch {
	case tag == tagRequestNext && (n == 1 || n == -1):
		return false, s.requestNext()
	case tag == tagFindIntersect && (n == 2 || n == -1):
		points, err := parsePoints(msg, off)
		if err != nil {
			return false, err
		}
		p, tip, ok := s.c.srv.cfg.Chain.intersect(s.f, points)
		r := Reply{Kind: IntersectNotFound, Tip: tip}
		if ok {
			r = Reply{Kind: IntersectFound, At: chain.At{Point: p}, Tip: tip}
		}
		_, err = s.reply(r)
		return false, err
	case tag == tagDone && (n == 1 || n == -1):
		return true, s.flush()
	}
	return false, fmt.Errorf("%w: chain-sync message %d of %d items", ErrProtocol, tag, n)
}

// parsePoints reads a list of points, definite or not, at off.
func parsePoints(b []byte, off int) ([]chain.Point, error) {
	n, off, err := wire.ReadArray(b, off)
	if err != nil {
		return nil, fmt.Errorf("%w: points: %w", ErrProtocol, err)
	}
	var out []chain.Point
	for i := 0; i != n; i++ {
		if n < 0 && off < len(b) && b[off] == wire.Break {
			break
		}
		var p chain.Point
		if p, off, err = parsePoint(b, off); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// parsePoint reads [] or [slot, hash].
func parsePoint(b []byte, off int) (p chain.Point, next int, err error) {
	n, off, err := wire.ReadArray(b, off)
	if err != nil {
		return p, 0, fmt.Errorf("%w: point: %w", ErrProtocol, err)
	}
	if n == 0 {
		return p, off, nil
	}
	slot, off, err := wire.ReadUint(b, off)
	if err != nil {
		return p, 0, fmt.Errorf("%w: point: %w", ErrProtocol, err)
	}
	hash, off, err := wire.ReadBytes(b, off)
	if err != nil {
		return p, 0, fmt.Errorf("%w: point: %w", ErrProtocol, err)
	}
	if n != 2 || len(hash) != len(p.Hash) {
		return p, 0, fmt.Errorf("%w: point of %d items with a hash of %d bytes", ErrProtocol, n, len(hash))
	}
	p.Slot = chain.Slot(slot)
	copy(p.Hash[:], hash)
	return p, off, nil
}

// flush writes what was gathered.
func (s *chainSync) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	err := s.c.send(ProtocolChainSync, s.out, nil)
	s.out = s.out[:0]
	return err
}

// AppendPoint appends a point as chain-sync encodes it, [] for origin.
func AppendPoint(b []byte, p chain.Point) []byte {
	if p.IsOrigin() {
		return wire.Array(b, 0)
	}
	b = wire.Array(b, 2)
	b = wire.Uint(b, uint64(p.Slot))
	return wire.Bytes(b, p.Hash[:])
}

// AppendTip appends a tip, [point, block number]; [[], 0] for an empty chain.
func AppendTip(b []byte, t chain.Tip) []byte {
	b = wire.Array(b, 2)
	b = AppendPoint(b, t.Point)
	if t.IsOrigin() {
		return wire.Uint(b, 0)
	}
	return wire.Uint(b, uint64(t.Height))
}
