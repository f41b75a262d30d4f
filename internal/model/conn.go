package model

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
)

// conn is one connection; the node's lock guards it.
type conn struct {
	n      *node
	serial uint64
	rnd    *rand.Rand
	at     int  // blocks the client has
	back   bool // it has yet to be told that it stands there
	awaits bool // it was told that there is nothing more
	left   int  // messages before it breaks
	end    error
	done   chan struct{}
	closed bool
}

func (c *conn) closeLocked() {
	if !c.closed {
		c.closed = true
		close(c.done)
		delete(c.n.conns, c)
	}
}

// Close implements follow.Conn.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.closeLocked()
	return nil
}

// pause is how long the next answer takes: not a round number, so that no two
// things happen at one instant by chance.
func (c *conn) pause() time.Duration {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.n.latency == 0 {
		return time.Duration(1 + c.rnd.IntN(1000))
	}
	return time.Duration(1 + c.rnd.Int64N(int64(c.n.latency)))
}

func (c *conn) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return problem("follow", chainsync.ErrDisconnected)
	}
}

// wait waits for a change of the node, or until patience is at its end.
func (c *conn) wait(ctx context.Context, wake <-chan struct{}, patience <-chan time.Time) error {
	select {
	case <-wake:
		// All that wait are woken at one moment: each goes on at its own.
		return c.sleep(ctx, time.Duration(c.serial%1000+1))
	case <-patience:
		return problem("follow", chainsync.ErrSilent)
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return problem("follow", chainsync.ErrDisconnected)
	}
}

// Intersect implements follow.Conn.
func (c *conn) Intersect(ctx context.Context, points []chain.Point) (found chain.Point, ok bool, tip chain.Tip, err error) {
	if err := c.sleep(ctx, c.pause()); err != nil {
		return found, false, tip, err
	}
	patience := time.After(answerPatience)
	n := c.n
	for {
		n.mu.Lock()
		wake := n.wake
		if !n.mute {
			defer n.mu.Unlock()
			for _, p := range points {
				if i := n.findLocked(p); i >= 0 {
					c.at, c.back, c.awaits = i, true, false
					return p, true, n.tipLocked(), nil
				}
			}
			return found, false, n.tipLocked(), nil
		}
		n.mu.Unlock()
		if err := c.wait(ctx, wake, patience); err != nil {
			return found, false, tip, err
		}
	}
}

// Next implements follow.Conn.
func (c *conn) Next(ctx context.Context) (chain.Messages, error) {
	if err := c.sleep(ctx, c.pause()); err != nil {
		return chain.Messages{}, err
	}
	var patience <-chan time.Time
	n := c.n
	for {
		n.mu.Lock()
		if !c.awaits && patience == nil {
			patience = time.After(answerPatience)
		}
		var list []chain.Message
		if !n.mute && !c.closed {
			list = c.takeLocked()
		}
		wake, end := n.wake, c.end
		n.mu.Unlock()
		if len(list) > 0 {
			return slab(list), nil
		}
		if end != nil {
			return chain.Messages{}, problem("follow", end)
		}
		if err := c.wait(ctx, wake, patience); err != nil {
			return chain.Messages{}, err
		}
	}
}

// slab copies the messages' bytes into one buffer, which is spoilt when it is
// released.
func slab(list []chain.Message) chain.Messages {
	size := 0
	for i := range list {
		size += len(list[i].Raw)
	}
	buf := make([]byte, 0, size)
	for i := range list {
		from := len(buf)
		buf = append(buf, list[i].Raw...)
		list[i].Raw = buf[from:len(buf):len(buf)]
	}
	return chain.Messages{List: list, Release: func() {
		for i := range buf {
			buf[i] = 0xee
		}
	}}
}

// takeLocked makes the next run of messages. Where the connection ends, those that
// came before it still count.
func (c *conn) takeLocked() (list []chain.Message) {
	n := c.n
	for size := 1 + c.rnd.IntN(n.group); len(list) < size; {
		if c.left > 0 {
			if c.left--; c.left == 0 {
				c.end = chainsync.ErrDisconnected
			}
		}
		if c.end != nil {
			return list
		}
		m := chain.Message{Tip: n.tipLocked()}
		switch {
		case c.back:
			m.Kind, c.back = chain.RollBackward, false
			if c.at > 0 {
				m.Point = n.blocks[c.at-1].Point
			}
		case c.at < n.lenLocked():
			if more, told := c.lieLocked(m.Tip); told {
				list = append(list, more...)
				c.awaits = false
				continue
			}
			m.Raw = n.blocks[c.at].Raw
			if n.blocks[c.at].Point == n.broken {
				m.Raw = m.Raw[:len(m.Raw)-2]
			}
			c.at++
		case !c.awaits:
			m.Kind, c.awaits = chain.AwaitReply, true
			m.Tip = chain.Tip{}
			return append(list, m)
		default:
			return list
		}
		c.awaits = false
		list = append(list, m)
	}
	return list
}
