package chainsync

import "time"

// owesLocked tells whether the node has to say something soon.
func (c *Conn) owesLocked() bool { return c.state == stateIntersecting || c.window.owes() }

// armLocked sees to it that a node which owes an answer is given up after
// AnswerTimeout without a byte, at most a quarter later: the deadline moves
// rarely, since every read would have to move it.
func (c *Conn) armLocked() {
	if !c.owesLocked() {
		return // an old deadline is dealt with when it passes
	}
	limit := c.cfg.AnswerTimeout
	if now := time.Now(); c.deadline.Sub(now) < limit {
		c.deadline = now.Add(limit + limit/4)
		_ = c.sock.SetReadDeadline(c.deadline) // fails only if the socket is closed, which the reader sees
	}
}

// overdue tells whether the deadline that has passed still means something,
// and takes it away if not.
func (c *Conn) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.deadline.After(time.Now()):
		return false // it was moved
	case c.owesLocked():
		return true
	}
	c.deadline = time.Time{}
	_ = c.sock.SetReadDeadline(time.Time{})
	return false
}
