package devnode

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Numbers of the mini-protocols on a node's local socket (cardano-diffusion,
// NodeToClient).
const (
	ProtocolHandshake    uint16 = 0
	ProtocolChainSync    uint16 = 5
	ProtocolTxSubmission uint16 = 6
	ProtocolStateQuery   uint16 = 7
	ProtocolTxMonitor    uint16 = 9
)

const (
	segmentHeader = 8
	responderBit  = 1 << 15

	// DefaultSegmentSize is the payload a node puts into one segment on a
	// local socket (network-mux, Bearer.hs).
	DefaultSegmentSize = 12288
	maxSegmentSize     = 65535

	handshakeTimeout = 10 * time.Second // a segment must arrive whole within this
	segmentTimeout   = 30 * time.Second // the same after the handshake

	// DefaultWriteTimeout is how long a client may read nothing before the
	// node drops it (network-mux, MuxSDUWriteTimeout).
	DefaultWriteTimeout = 30 * time.Second

	// maxIngress bounds what one protocol of one client may have unanswered.
	// The node's own limit is 4 GiB.
	maxIngress = 32 << 20
)

// errClosed is what a stream returns when its connection has ended.
var errClosed = errors.New("connection closed")

// conn is one client's connection: segments in, segments out.
type conn struct {
	id      int
	net     net.Conn
	version uint16 // agreed on; set before a protocol but the handshake runs
	srv     *Server
	start   time.Time
	done    chan struct{} // closed when the connection ends
	once    sync.Once
	cause   error // why it ended; set before done is closed
	gone    chan struct{}
	writes  sync.Mutex
	out     []byte // under writes
}

func (c *conn) close(cause error) {
	c.once.Do(func() {
		c.cause = cause
		close(c.done)
		_ = c.net.Close() // nothing is pending that could be lost
	})
}

// readLoop takes segments apart until the connection ends and hands their
// payloads to the streams.
func (c *conn) readLoop(streams map[uint16]*stream) error {
	r := bufio.NewReaderSize(c.net, 64<<10)
	timeout := handshakeTimeout
	for {
		if r.Buffered() == 0 {
			if _, err := r.Peek(1); err != nil { // a quiet client is welcome to stay
				return err
			}
		}
		if err := c.net.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		var h [segmentHeader]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return err
		}
		number := binary.BigEndian.Uint16(h[4:])
		length := int(binary.BigEndian.Uint16(h[6:]))
		if number&responderBit != 0 {
			return fmt.Errorf("%w: segment of a responder for protocol %d", ErrProtocol, number&^responderBit)
		}
		s, ok := streams[number]
		if !ok {
			return fmt.Errorf("%w: segment for unknown protocol %d", ErrProtocol, number)
		}
		if err := s.fill(r, length); err != nil {
			return err
		}
		if err := c.net.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if number != ProtocolHandshake {
			timeout = segmentTimeout
		}
	}
}

// stream is the incoming side of one mini-protocol: bytes that become
// messages. One goroutine fills it, one takes from it.
type stream struct {
	mu   sync.Mutex
	buf  []byte
	off  int
	part []byte        // the filler's: a segment being read
	wake chan struct{} // holds one token when bytes were added
	done <-chan struct{}
}

func newStream(done <-chan struct{}) *stream {
	return &stream{wake: make(chan struct{}, 1), done: done}
}

// fill reads n bytes of a segment's payload from r.
func (s *stream) fill(r io.Reader, n int) error {
	s.mu.Lock()
	if s.off > 0 && s.off == len(s.buf) {
		s.buf, s.off = s.buf[:0], 0
	}
	if len(s.buf)-s.off+n > maxIngress {
		s.mu.Unlock()
		return fmt.Errorf("%w: more than %d bytes unanswered", ErrProtocol, maxIngress)
	}
	if s.off > 0 && len(s.buf)+n > cap(s.buf) {
		s.buf, s.off = append(s.buf[:0], s.buf[s.off:]...), 0
	}
	s.mu.Unlock()
	// Reading may block; what is taken meanwhile must not move.
	s.part = slices.Grow(s.part[:0], n)[:n]
	if _, err := io.ReadFull(r, s.part); err != nil {
		return err
	}
	s.mu.Lock()
	s.buf = append(s.buf, s.part...)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// try takes a message if a whole one has arrived. The bytes are the caller's.
func (s *stream) try() (msg []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off == len(s.buf) {
		return nil, false, nil
	}
	if isRequestNext(s.buf[s.off:]) {
		s.off += len(requestNext)
		return requestNext[:], true, nil
	}
	end, err := wire.Skip(s.buf, s.off)
	if errors.Is(err, wire.ErrShort) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	msg = append([]byte(nil), s.buf[s.off:end]...)
	s.off = end
	return msg, true, nil
}

// wait takes a message, waiting for one to arrive.
func (s *stream) wait() ([]byte, error) {
	for {
		msg, ok, err := s.try()
		if ok || err != nil {
			return msg, err
		}
		select {
		case <-s.wake:
		case <-s.done:
			return nil, errClosed
		}
	}
}

// serve hands each message to handle until that says that the client is done, or the
// connection ends.
func (s *stream) serve(handle func(msg []byte) (done bool, err error)) error {
	for {
		msg, err := s.wait()
		if err != nil {
			return err
		}
		done, err := handle(msg)
		if done || err != nil {
			return err
		}
	}
}

// readTag reads the beginning of a message: an array of n items, of which the first
// is a tag; off is where the second begins.
func readTag(msg []byte, protocol string) (tag uint64, n, off int, err error) {
	if n, off, err = wire.ReadArray(msg, 0); err == nil {
		tag, off, err = wire.ReadUint(msg, off)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrProtocol, protocol, err)
	}
	return tag, n, off, err
}

// send writes payload as segments of one protocol. sizes are the payload sizes
// of the segments, the last one repeating; nil means the server's.
func (c *conn) send(protocol uint16, payload []byte, sizes []int) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	if len(sizes) == 0 {
		sizes = []int{c.srv.cfg.SegmentSize}
	}
	c.out = c.out[:0]
	for len(payload) > 0 {
		n := min(max(sizes[0], 1), maxSegmentSize, len(payload))
		if len(sizes) > 1 {
			sizes = sizes[1:]
		}
		c.out = binary.BigEndian.AppendUint32(c.out, uint32(time.Since(c.start).Microseconds()))
		c.out = binary.BigEndian.AppendUint16(c.out, protocol|responderBit)
		c.out = binary.BigEndian.AppendUint16(c.out, uint16(n))
		c.out = append(c.out, payload[:n]...)
		payload = payload[n:]
	}
	return c.writeLocked(c.out)
}

// write writes bytes that are no segment, or one that was made elsewhere.
func (c *conn) write(b []byte) error {
	c.writes.Lock()
	defer c.writes.Unlock()
	return c.writeLocked(b)
}

// writeStep is how much is written under one deadline.
const writeStep = 128 << 10

func (c *conn) writeLocked(b []byte) error {
	for len(b) > 0 {
		if err := c.srv.gate.pass(c.done); err != nil {
			return err
		}
		n := min(len(b), writeStep)
		if err := c.net.SetWriteDeadline(time.Now().Add(c.srv.cfg.WriteTimeout)); err != nil {
			return err
		}
		if _, err := c.net.Write(b[:n]); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// sleep waits unless the connection ends first.
func (c *conn) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.done:
		return errClosed
	}
}

// gate holds back writers while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil when open; closed to let waiters pass
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) pass(done <-chan struct{}) error {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return nil
		}
		select {
		case <-shut:
		case <-done:
			return errClosed
		}
	}
}
