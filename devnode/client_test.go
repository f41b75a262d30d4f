package devnode_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// client speaks the protocol byte by byte, so that tests see what is sent.
type client struct {
	t        testing.TB
	conn     net.Conn
	buf      map[uint16][]byte
	segments []int // payload sizes of all segments seen
}

// gone tells whether an error is how a connection that the server closed ends:
// with a reset if there was something the server had not read.
func gone(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

func dial(t testing.TB, socket string) *client {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, conn: conn, buf: map[uint16][]byte{}}
}

// connect dials and shakes hands.
func connect(t testing.TB, srv *devnode.Server, magic uint32) *client {
	t.Helper()
	c := dial(t, srv.Socket())
	c.send(devnode.ProtocolHandshake, propose(magic, false, 16, 20, 23))
	got := c.message(devnode.ProtocolHandshake)
	if len(got) < 2 || got[1] != 1 {
		t.Fatalf("handshake answer %x", got)
	}
	return c
}

func propose(magic uint32, query bool, versions ...int) []byte {
	b := wire.Map(wire.Uint(wire.Array(nil, 2), 0), len(versions))
	for _, v := range versions {
		b = wire.Array(wire.Uint(b, uint64(v)|1<<15), 2)
		b = wire.Uint(b, uint64(magic))
		if query {
			b = append(b, wire.True)
		} else {
			b = append(b, wire.False)
		}
	}
	return b
}

func (c *client) send(protocol uint16, payload []byte) {
	c.t.Helper()
	h := binary.BigEndian.AppendUint32(nil, 0)
	h = binary.BigEndian.AppendUint16(h, protocol)
	h = binary.BigEndian.AppendUint16(h, uint16(len(payload)))
	if _, err := c.conn.Write(append(h, payload...)); err != nil {
		c.t.Fatal(err)
	}
}

// segment reads one segment.
func (c *client) segment() (protocol uint16, payload []byte, err error) {
	var h [8]byte
	if _, err := io.ReadFull(c.conn, h[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint16(h[6:]))
	if _, err := io.ReadFull(c.conn, payload); err != nil {
		return 0, nil, err
	}
	c.segments = append(c.segments, len(payload))
	return binary.BigEndian.Uint16(h[4:]), payload, nil
}

// read returns the next message of a protocol, or the error that ended the
// connection.
func (c *client) read(protocol uint16) ([]byte, error) {
	for {
		if b := c.buf[protocol]; len(b) > 0 {
			end, err := wire.Skip(b, 0)
			if err == nil {
				c.buf[protocol] = b[end:]
				return b[:end], nil
			}
			if !errors.Is(err, wire.ErrShort) {
				return nil, err
			}
		}
		p, payload, err := c.segment()
		if err != nil {
			return nil, err
		}
		if p&(1<<15) == 0 {
			c.t.Fatalf("segment of protocol %d without the responder's bit", p)
		}
		c.buf[p&^(1<<15)] = append(c.buf[p&^(1<<15)], payload...)
	}
}

func (c *client) message(protocol uint16) []byte {
	c.t.Helper()
	b, err := c.read(protocol)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// reply is a chain-sync message as a client understands it.
type reply struct {
	kind  uint64
	point chain.Point
	block []byte
	tip   chain.Tip
}

const (
	await       = 1
	forward     = 2
	backward    = 3
	found       = 5
	notFound    = 6
	requestNext = "\x81\x00"
)

func (c *client) request(n int) {
	c.t.Helper()
	var b []byte
	for range n {
		b = append(b, requestNext...)
	}
	c.send(devnode.ProtocolChainSync, b)
}

func (c *client) find(points ...chain.Point) reply {
	c.t.Helper()
	b := wire.Uint(wire.Array(nil, 2), 4)
	b = append(b, wire.IndefArray)
	for _, p := range points {
		b = devnode.AppendPoint(b, p)
	}
	c.send(devnode.ProtocolChainSync, append(b, wire.Break))
	return c.next()
}

func (c *client) next() reply {
	c.t.Helper()
	r, err := parseReply(c.message(devnode.ProtocolChainSync))
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func parseReply(b []byte) (r reply, err error) {
	_, off, err := wire.ReadArray(b, 0)
	if err != nil {
		return r, err
	}
	if r.kind, off, err = wire.ReadUint(b, off); err != nil {
		return r, err
	}
	switch r.kind {
	case await:
		return r, nil
	case forward:
		t, err := wire.Read(b, off)
		if err != nil {
			return r, err
		}
		if r.block, off, err = wire.ReadBytes(b, t.Next); err != nil {
			return r, err
		}
		h, err := immutable.ReadHeader(r.block, 4320)
		if err != nil {
			return r, err
		}
		r.point = h.Point
	case backward, found:
		if r.point, off, err = readPoint(b, off); err != nil {
			return r, err
		}
	}
	_, off, err = wire.ReadArray(b, off)
	if err != nil {
		return r, err
	}
	if r.tip.Point, off, err = readPoint(b, off); err != nil {
		return r, err
	}
	n, _, err := wire.ReadUint(b, off)
	r.tip.Height = chain.Height(n)
	if r.tip.Point.IsOrigin() {
		r.tip.Height = chain.OriginHeight
	}
	return r, err
}

func readPoint(b []byte, off int) (p chain.Point, next int, err error) {
	n, off, err := wire.ReadArray(b, off)
	if err != nil || n == 0 {
		return p, off, err
	}
	slot, off, err := wire.ReadUint(b, off)
	if err != nil {
		return p, 0, err
	}
	h, off, err := wire.ReadBytes(b, off)
	copy(p.Hash[:], h)
	p.Slot = chain.Slot(slot)
	return p, off, err
}

// follow requests until the client has every block of the chain it should.
func (c *client) follow(n int) []reply {
	c.t.Helper()
	var out []reply
	for range n {
		c.request(1)
		out = append(out, c.next())
	}
	return out
}
