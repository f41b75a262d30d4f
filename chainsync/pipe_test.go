package chainsync

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// onPipe connects to a scripted node in memory, within a synctest bubble, so
// that hours of silence cost nothing.
func onPipe(t *testing.T, cfg Config, script func(*peer) error) *Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := script(&peer{conn: newBuffered(theirs)}); errors.Is(err, errPeer) {
			t.Error(err)
		}
		theirs.Close()
	}()
	t.Cleanup(func() { <-done })
	cfg.Magic = testMagic
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeout(t.Context(), cfg.HandshakeTimeout)
	defer cancel()
	c, err := handshake(ctx, t.Context(), ours, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// buffered is a net.Pipe's end that takes what the other end writes at once, as
// a socket does.
type buffered struct {
	net.Conn
	mu   sync.Mutex
	cond sync.Cond
	buf  []byte
	err  error
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{Conn: conn}
	b.cond.L = &b.mu
	go func() {
		for p := make([]byte, 4096); ; {
			n, err := conn.Read(p)
			b.mu.Lock()
			b.buf = append(b.buf, p[:n]...)
			b.err = err
			b.cond.Broadcast()
			b.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return b
}

// stop makes it take no more.
func (b *buffered) stop() { _ = b.Conn.SetReadDeadline(time.Unix(1, 0)) }

func (b *buffered) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.buf) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.cond.Wait()
	}
	n := copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

// begin shakes hands and answers an intersection at origin.
func (p *peer) begin(tip chain.Tip) error {
	if err := p.shake(); err != nil {
		return err
	}
	if _, err := p.find(); err != nil {
		return err
	}
	return p.send(5, intersectFound(chain.Point{}, tip))
}

func mustIntersect(t *testing.T, c *Conn) {
	t.Helper()
	if _, ok, _, err := c.Intersect(t.Context(), []chain.Point{{}}); err != nil || !ok {
		t.Fatalf("intersect: %v %v", ok, err)
	}
}
