package chainsync

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// askLocked tells how many requests to send now, and counts them as sent.
func (c *Conn) askLocked() int {
	if c.state != stateFollowing || c.err != nil {
		return 0
	}
	n := c.window.ask(c.queued)
	if n > 0 {
		c.armLocked()
	}
	return n
}

// request sends n times RequestNext in one segment. A failure ends the
// connection, which whoever waits learns by that.
func (c *Conn) request(n int) {
	if n == 0 {
		return
	}
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.wbuf = appendSegmentHeader(c.wbuf[:0], c.timestamp(), protoSync, n*len(requestNext))
	for range n {
		c.wbuf = append(c.wbuf, requestNext[:]...)
	}
	_ = c.writeLocked(c.wbuf)
}

// write sends whole segments.
func (c *Conn) write(p []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.writeLocked(p)
}

func (c *Conn) writeLocked(p []byte) error {
	err := c.sock.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout))
	if err == nil {
		_, err = c.sock.Write(p)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: it took none of our bytes for %s", ErrSilent, c.cfg.WriteTimeout)
	} else {
		err = fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	c.fail(c.peerProblem(err))
	return c.cause()
}

// timestamp is a segment's: microseconds, wrapping.
func (c *Conn) timestamp() uint32 { return uint32(time.Since(c.began).Microseconds()) }
