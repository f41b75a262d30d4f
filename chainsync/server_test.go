package chainsync

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// peer is the node's side of a connection, scripted: raw bytes, written down
// here from the specifications, sharing no code with the client.
type peer struct {
	conn net.Conn
	cut  int    // payload bytes a segment at most; 0: as many as fit
	left string // hexadecimal of state queries read and not yet looked at
}

var errPeer = errors.New("scripted node")

// send writes payload as segments of a protocol.
func (p *peer) send(proto uint16, payload []byte) error {
	_, err := p.conn.Write(frame(proto, payload, p.cut))
	return err
}

func frame(proto uint16, payload []byte, cut int) (out []byte) {
	if cut == 0 {
		cut = 12288
	}
	for first := true; first || len(payload) > 0; first = false {
		n := min(cut, len(payload))
		out = binary.BigEndian.AppendUint32(out, 0xdeadbeef)
		out = binary.BigEndian.AppendUint16(out, 0x8000|proto)
		out = binary.BigEndian.AppendUint16(out, uint16(n))
		out = append(out, payload[:n]...)
		payload = payload[n:]
	}
	return out
}

// segment reads one segment from the client.
func (p *peer) segment() (proto uint16, payload []byte, err error) {
	var h [8]byte
	if _, err := io.ReadFull(p.conn, h[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint16(h[6:]))
	_, err = io.ReadFull(p.conn, payload)
	return binary.BigEndian.Uint16(h[4:]), payload, err
}

// proposal reads the client's proposal.
func (p *peer) proposal() ([]byte, error) {
	proto, b, err := p.segment()
	if err == nil && (proto != 0 || len(b) < 2 || b[0] != 0x82 || b[1] != 0) {
		err = fmt.Errorf("%w: got %x on protocol %d for a proposal", errPeer, b, proto)
	}
	return b, err
}

const testMagic = 42

// acceptance is [1, 32788 (20), [magic, false]].
func acceptance(magic byte) []byte {
	return []byte{0x83, 0x01, 0x19, 0x80, 20, 0x82, 0x18, magic, 0xf4}
}

func (p *peer) shake() error {
	if _, err := p.proposal(); err != nil {
		return err
	}
	return p.send(0, acceptance(testMagic))
}

// find reads FindIntersect and returns its raw points.
func (p *peer) find() ([]byte, error) {
	proto, b, err := p.segment()
	if err == nil && (proto != 5 || len(b) < 3 || b[0] != 0x82 || b[1] != 4) {
		err = fmt.Errorf("%w: got %x on protocol %d for FindIntersect", errPeer, b, proto)
	}
	if err != nil {
		return nil, err
	}
	return b[2:], nil
}

// requests reads one segment of RequestNext and returns their number.
func (p *peer) requests() (int, error) {
	proto, b, err := p.segment()
	if err != nil {
		return 0, err
	}
	if proto != 5 || len(b) == 0 || len(b)%2 != 0 {
		return 0, fmt.Errorf("%w: got %x on protocol %d for RequestNext", errPeer, b, proto)
	}
	for i := 0; i < len(b); i += 2 {
		if b[i] != 0x81 || b[i+1] != 0 {
			return 0, fmt.Errorf("%w: got %x for RequestNext", errPeer, b)
		}
	}
	return len(b) / 2, nil
}

// The messages of chain-sync as a node writes them.

func rawPoint(p chain.Point) []byte {
	if p.IsOrigin() {
		return []byte{0x80}
	}
	b := binary.BigEndian.AppendUint64([]byte{0x82, 0x1b}, uint64(p.Slot))
	return append(append(b, 0x58, 32), p.Hash[:]...)
}

func rawTip(t chain.Tip) []byte {
	b := append([]byte{0x82}, rawPoint(t.Point)...)
	if t.IsOrigin() {
		return append(b, 0)
	}
	return binary.BigEndian.AppendUint64(append(b, 0x1b), uint64(t.Height))
}

func rollForward(raw []byte, tip chain.Tip) []byte {
	b := []byte{0x83, 2, 0xd8, 24}
	if n := len(raw); n < 24 {
		b = append(b, 0x40|byte(n))
	} else {
		b = binary.BigEndian.AppendUint32(append(b, 0x5a), uint32(n))
	}
	return append(append(b, raw...), rawTip(tip)...)
}

func rollBackward(p chain.Point, tip chain.Tip) []byte {
	return append(append([]byte{0x83, 3}, rawPoint(p)...), rawTip(tip)...)
}

func intersectFound(p chain.Point, tip chain.Tip) []byte {
	return append(append([]byte{0x83, 5}, rawPoint(p)...), rawTip(tip)...)
}

func intersectNotFound(tip chain.Tip) []byte { return append([]byte{0x82, 6}, rawTip(tip)...) }

var awaitReply = []byte{0x81, 1}

// block is a block of about size bytes in a Babbage block's outline, which is
// well-formed: a client that looks inside finds nothing to complain about.
func block(height, slot uint64, size int) []byte {
	b := []byte{0x82, 6, 0x85, 0x82, 0x8a}
	b = binary.BigEndian.AppendUint64(append(b, 0x1b), height)
	b = binary.BigEndian.AppendUint64(append(b, 0x1b), slot)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x80, 0x80, 0xa0)
	n := max(0, size-len(b)-5)
	b = binary.BigEndian.AppendUint32(append(b, 0x5a), uint32(n))
	for range n {
		b = append(b, byte(len(b)*7)^byte(height))
	}
	return b
}

func pointAt(n uint64) chain.Point {
	var p chain.Point
	p.Slot = chain.Slot(n * 20)
	binary.BigEndian.PutUint64(p.Hash[:], n+1)
	return p
}

func tipAt(n uint64) chain.Tip { return chain.Tip{Point: pointAt(n), Height: chain.Height(n)} }

// serve listens on a socket and plays script once for every connection, then
// closes it. Errors of a script that the client's end explains are ignored.
func serve(t testing.TB, script func(*peer) error) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var conns []net.Conn
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn)
			if err := script(&peer{conn: conn}); errors.Is(err, errPeer) {
				t.Error(err)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return path
}

func testConfig(path string) Config {
	return Config{SocketPath: path, Magic: testMagic, HandshakeTimeout: 5 * time.Second}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// hold waits until the client has gone.
func (p *peer) hold() error {
	_, _ = io.Copy(io.Discard, p.conn)
	return nil
}

func hashOf(p chain.Point) []byte { return p.Hash[:] }
