package chainsync

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The multiplexer's segments (network specification, Multiplexing): a header
// of 8 bytes, big endian: 32 bits of timestamp, 1 bit mode (set: from the
// responder), 15 bits protocol number, 16 bits payload length.
const (
	headerSize   = 8
	responderBit = 0x8000
	maxSegment   = 12288 // payload that a node itself sends at most over a local socket
	protoShake   = 0
	protoSync    = 5
	protoSubmit  = 6
	protoQuery   = 7
	protoMonitor = 9
	minRead      = 64 << 10 // free space below which a slab is not read into
	maxHandshake = 8 << 10  // longest handshake message; the protocol says 5,760 bytes
)

func appendSegmentHeader(b []byte, timestamp uint32, proto uint16, length int) []byte {
	b = binary.BigEndian.AppendUint32(b, timestamp)
	b = binary.BigEndian.AppendUint16(b, proto)
	return binary.BigEndian.AppendUint16(b, uint16(length))
}

// splitter takes what the node sent apart. Its buffer is a slab:
//
//	[ ... done ... | start: a message's bytes :end | ... | raw: as read :limit | free ]
//
// The payloads of chain-sync segments are moved together between start and
// end; that moves a byte at most once and does nothing for a message that lies
// in one segment, because end simply jumps over the header when no message is
// open. It knows nothing of goroutines or sockets.
type splitter struct {
	slab       *slab
	start, end int
	raw, limit int
	need       int    // length that the open message has at least
	left       int    // payload bytes of the current segment still to come
	proto      uint16 // of the current segment
	pool       *slabPool
	maxMessage int
	other      func(proto uint16, payload []byte, left int) error // see pass
	answers    []answer
}

func newSplitter(pool *slabPool, maxMessage int, other func(uint16, []byte, int) error) *splitter {
	return &splitter{slab: pool.get(slabSize), pool: pool, maxMessage: maxMessage, other: other}
}

// room returns free space to read into, at least minRead bytes. It may move to
// a new slab, taking an open message along.
func (s *splitter) room() []byte {
	if len(s.slab.buf)-s.limit < minRead {
		open, rest := s.end-s.start, s.limit-s.raw
		size := slabSize
		if open+rest+minRead > slabSize/2 {
			// Room in proportion to what has really come, not to what the
			// message claims: copying stays linear and a liar gets nothing.
			size = 2*(open+rest) + minRead
		}
		next := s.pool.get(size)
		n := copy(next.buf, s.slab.buf[s.start:s.end])
		m := copy(next.buf[n:], s.slab.buf[s.raw:s.limit])
		s.slab.drop()
		s.slab, s.start, s.end, s.raw, s.limit = next, 0, n, n, n+m
	}
	return s.slab.buf[s.limit:]
}

// took tells that n bytes were read into room, and appends every message that
// is complete now to answers. They alias the slab that was current at the
// call.
func (s *splitter) took(n int) error {
	s.limit += n
	for {
		if s.left == 0 {
			if s.limit-s.raw < headerSize {
				return nil
			}
			h := s.slab.buf[s.raw : s.raw+headerSize]
			s.raw += headerSize
			s.proto = binary.BigEndian.Uint16(h[4:])
			s.left = int(binary.BigEndian.Uint16(h[6:]))
			if s.proto&responderBit == 0 {
				return fmt.Errorf("%w: segment of protocol %d in the direction from us to the node", ErrProtocol, s.proto)
			}
			if s.left == 0 {
				continue // carries nothing; no specification forbids it
			}
			if s.proto != protoSync|responderBit {
				// The first piece of a segment, which may be empty, tells its length.
				if err := s.other(s.proto, nil, s.left); err != nil {
					return err
				}
			}
		}
		n := min(s.left, s.limit-s.raw)
		if n == 0 {
			return nil
		}
		piece := s.slab.buf[s.raw : s.raw+n]
		s.left -= n
		if s.proto != protoSync|responderBit {
			s.raw += n
			if err := s.other(s.proto, piece, s.left); err != nil {
				return err
			}
			continue
		}
		if s.start == s.end {
			s.start, s.end = s.raw, s.raw+n
		} else {
			s.end += copy(s.slab.buf[s.end:], piece)
		}
		s.raw += n
		if err := s.messages(); err != nil {
			return err
		}
	}
}

// messages takes every complete message out of start..end.
func (s *splitter) messages() error {
	for s.end-s.start > 0 && s.end-s.start >= s.need {
		a, n, err := parseAnswer(s.slab.buf[s.start:s.end:s.end], s.maxMessage)
		if errors.Is(err, errShort) {
			s.need = n
			return nil
		}
		if err != nil {
			return err
		}
		s.start += n
		s.need = 0
		s.answers = append(s.answers, a)
	}
	return nil
}

// open tells whether bytes of an unfinished segment or message are held.
func (s *splitter) open() bool { return s.left > 0 || s.start != s.end || s.raw != s.limit }
