package chainsync

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// inboxLimit is how many bytes may wait for gouroboros' muxer before the
// reader of the socket waits for it.
const inboxLimit = 1 << 20

// errInboxShut says that gouroboros has given up. Whoever started it or watches
// it knows why.
var errInboxShut = errors.New("gouroboros' half is closed")

// inbox is the connection as gouroboros sees it: it reads what the reader of
// the socket passes on and writes to the socket, one segment a call.
type inbox struct {
	c    *Conn
	mu   sync.Mutex
	cond sync.Cond
	buf  []byte // not yet read; guarded by mu
	off  int    // of the first byte not yet read; guarded by mu
	shut bool   // guarded by mu
}

func newInbox(c *Conn) *inbox {
	b := &inbox{c: c}
	b.cond.L = &b.mu
	return b
}

// put appends bytes of whole or partial segments. It waits while too many are
// unread, so a state query whose answer nobody takes stops the chain too; an
// owner of a query takes its answer.
func (b *inbox) put(p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.shut && len(b.buf)-b.off > inboxLimit {
		b.cond.Wait()
	}
	if b.shut {
		return errInboxShut
	}
	if b.off == len(b.buf) {
		b.buf, b.off = b.buf[:0], 0
	}
	b.buf = append(b.buf, p...)
	b.cond.Broadcast()
	return nil
}

func (b *inbox) close() {
	b.mu.Lock()
	b.shut = true
	b.cond.Broadcast()
	b.mu.Unlock()
}

// Read implements net.Conn.
func (b *inbox) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.off == len(b.buf) {
		if b.shut {
			return 0, io.EOF
		}
		b.cond.Wait()
	}
	n := copy(p, b.buf[b.off:])
	b.off += n
	b.cond.Broadcast()
	return n, nil
}

// Write implements net.Conn.
func (b *inbox) Write(p []byte) (int, error) {
	if err := b.c.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close implements net.Conn: gouroboros has given up. The socket is closed by
// whoever watches gouroboros' errors.
func (b *inbox) Close() error {
	b.close()
	return nil
}

// LocalAddr implements net.Conn.
func (b *inbox) LocalAddr() net.Addr { return b.c.sock.LocalAddr() }

// RemoteAddr implements net.Conn.
func (b *inbox) RemoteAddr() net.Addr { return b.c.sock.RemoteAddr() }

// SetDeadline implements net.Conn. Deadlines are our own: gouroboros' limits
// are for strangers on a network.
func (b *inbox) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn; see SetDeadline.
func (b *inbox) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn; see SetDeadline.
func (b *inbox) SetWriteDeadline(time.Time) error { return nil }
