package chainsync

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// read is the reader of the socket. It ends with the connection.
func (c *Conn) read() {
	s := newSplitter(c.pool, c.cfg.MaxMessage, c.pass)
	defer s.slab.drop()
	for {
		n, err := c.sock.Read(s.room())
		if n > 0 {
			bad := s.took(n)
			if len(s.answers) > 0 || bad == nil {
				if e := c.deliver(s); bad == nil {
					bad = e
				}
			}
			if errors.Is(bad, errInboxShut) {
				return
			}
			if bad != nil {
				c.fail(c.peerProblem(bad))
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			if c.overdue() {
				c.fail(c.peerProblem(fmt.Errorf("%w: nothing for %s", ErrSilent, c.cfg.AnswerTimeout)))
				return
			}
		case errors.Is(err, io.EOF) && (s.open() || len(c.shake.answer) > 0):
			c.fail(c.peerProblem(fmt.Errorf("%w in the middle of a message", ErrDisconnected)))
			return
		default:
			c.fail(c.peerProblem(fmt.Errorf("%w: %w", ErrDisconnected, err)))
			return
		}
	}
}

// deliver hands the splitter's messages on: to the queue or to Intersect.
func (c *Conn) deliver(s *splitter) error {
	c.mu.Lock()
	var bad error
	had := len(c.queue)
	var newest []byte
	for i := range s.answers {
		a := &s.answers[i]
		if bad = c.acceptLocked(a); bad != nil {
			break
		}
		if a.tag > tagRollBackward {
			continue
		}
		c.queue = append(c.queue, a.msg)
		if a.tag == tagRollForward {
			newest = a.msg.Raw
			c.queued += len(newest)
		}
	}
	s.answers = s.answers[:0]
	if c.window.awaits {
		c.pool.trim() // at the tip little is needed
	}
	if len(c.queue) > had {
		if n := len(c.slabs); n == 0 || c.slabs[n-1] != s.slab {
			s.slab.hold()
			c.slabs = append(c.slabs, s.slab)
		}
		if newest != nil {
			c.window.at(newest, c.queue[len(c.queue)-1].Tip)
		}
	}
	news := len(c.queue) > 0
	ask := 0
	if bad == nil {
		ask = c.askLocked()
		c.armLocked()
	}
	c.mu.Unlock()
	if news {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	c.request(ask)
	return bad
}

// acceptLocked checks that the node may say this now.
func (c *Conn) acceptLocked(a *answer) error {
	switch a.tag {
	case tagIntersectFound, tagIntersectNotFound:
		if c.state != stateIntersecting {
			return fmt.Errorf("%w: %s unasked", ErrProtocol, answerName(a.tag))
		}
		c.state = stateFresh
		if a.tag == tagIntersectFound {
			if !slices.Contains(c.offered, a.msg.Point) {
				return fmt.Errorf("%w: intersection at %s, which was not offered", ErrProtocol, a.msg.Point)
			}
			c.state = stateFound
		}
		c.offered = nil
		c.replied <- *a
		return nil
	}
	if c.state != stateFollowing {
		return fmt.Errorf("%w: %s unasked", ErrProtocol, answerName(a.tag))
	}
	return c.window.answered(a)
}
