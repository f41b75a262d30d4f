package chainsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	ouroboros "github.com/blinklabs-io/gouroboros"

	"github.com/ourotail/ourotail/chain"
)

// Conn is a connection to a node on which a version has been agreed. Intersect
// and Next are called by one goroutine at a time; Close by any, at any time.
type Conn struct {
	cfg   Config
	sock  net.Conn
	pool  *slabPool
	inbox *inbox
	node  *ouroboros.Connection // set by the handshake, then constant
	shake shake                 // touched by the reader only
	began time.Time

	wake    chan struct{} // holds one token if there may be news for Next
	replied chan answer   // the answer to an intersection
	down    chan struct{} // closed when err is set
	wait    sync.WaitGroup

	wmu  sync.Mutex // serialises segments
	wbuf []byte     // guarded by wmu

	mu       sync.Mutex
	err      error             // why the connection is over; guarded by mu
	op       string            // what is being done, for errors; guarded by mu
	state    state             // guarded by mu
	offered  []chain.Point     // to the intersection under way; guarded by mu
	window   window            // guarded by mu
	deadline time.Time         // of the socket's reads, zero if none; guarded by mu
	queue    []chain.Message   // for Next; guarded by mu
	queued   int               // bytes in queue; guarded by mu
	slabs    []*slab           // that queue aliases, each held once; guarded by mu
	spare    [][]chain.Message // empty queues to use again; guarded by mu
}

// state is where the chain-sync protocol stands.
type state uint8

const (
	stateFresh        state = iota // nothing found yet
	stateIntersecting              // an answer to FindIntersect is owed
	stateFound                     // an intersection was found, nothing requested
	stateFollowing                 // requests go out
)

func newConn(sock net.Conn, cfg Config) *Conn {
	c := &Conn{
		cfg:     cfg,
		sock:    sock,
		pool:    &slabPool{max: cfg.QueueBytes/slabSize + 4},
		began:   time.Now(),
		op:      "handshake",
		wake:    make(chan struct{}, 1),
		replied: make(chan answer, 1),
		down:    make(chan struct{}),
		window:  newWindow(cfg),
	}
	c.inbox = newInbox(c)
	return c
}

// Version is the node-to-client version agreed on, without its bit 15.
func (c *Conn) Version() int {
	v, _ := c.node.ProtocolVersion()
	return int(v &^ responderBit)
}

// Intersect offers points, which the node tries in order, so newest first, and
// tells whether one of them is on its chain. If so, Next begins there; its
// first message is a roll backward to that point, or to an earlier one if the
// node switches forks in between. With no point it only asks for the tip, and
// nothing is found.
//
// It is called before the first Next. Once a ctx has ended while the node owed
// the answer, the connection is over.
func (c *Conn) Intersect(ctx context.Context, points []chain.Point) (found chain.Point, ok bool, tip chain.Tip, err error) {
	c.mu.Lock()
	switch {
	case c.err != nil:
		err = c.err
	case c.state == stateFollowing || c.state == stateIntersecting:
		err = c.problem("intersect", ErrUsage, errors.New("requests are outstanding on this connection"), "")
	case len(points) > MaxPoints:
		err = c.problem("intersect", ErrUsage, fmt.Errorf("%d points, at most %d may be offered", len(points), MaxPoints), "")
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	if err != nil {
		c.mu.Unlock()
		return chain.Point{}, false, chain.Tip{}, err
	}
	c.state, c.offered, c.op = stateIntersecting, points, "intersect"
	c.armLocked()
	c.mu.Unlock()

	msg := appendFindIntersect(nil, points)
	if err := c.write(append(appendSegmentHeader(nil, c.timestamp(), protoSync, len(msg)), msg...)); err != nil {
		return chain.Point{}, false, chain.Tip{}, err
	}
	select {
	case a := <-c.replied:
		return a.msg.Point, a.tag == tagIntersectFound, a.msg.Tip, nil
	case <-c.down:
		return chain.Point{}, false, chain.Tip{}, c.cause()
	case <-ctx.Done():
		c.fail(c.problem("intersect", ErrClosed, ctx.Err(), ""))
		return chain.Point{}, false, chain.Tip{}, ctx.Err()
	}
}

// Next returns all messages that have arrived and were not returned before, in
// order, and waits if there are none. It keeps requests under way. The bytes
// of the blocks are valid until Release; every batch is released once.
//
// What arrived before the connection ended is returned before its error. A ctx
// that ends loses nothing: Next may be called again.
func (c *Conn) Next(ctx context.Context) (chain.Messages, error) {
	for {
		if err := ctx.Err(); err != nil {
			return chain.Messages{}, err
		}
		c.mu.Lock()
		if c.state == stateFound {
			c.state, c.op = stateFollowing, "follow"
		}
		if len(c.queue) > 0 {
			b := c.takeLocked()
			ask := c.askLocked()
			c.mu.Unlock()
			c.request(ask)
			return b, nil
		}
		if c.err == nil && c.state != stateFollowing {
			c.mu.Unlock()
			return chain.Messages{}, c.problem("follow", ErrUsage, errors.New("no intersection has been found on this connection"), "")
		}
		if err := c.err; err != nil {
			c.mu.Unlock()
			return chain.Messages{}, err
		}
		ask := c.askLocked()
		c.mu.Unlock()
		c.request(ask)
		select {
		case <-c.wake:
		case <-c.down:
		case <-ctx.Done():
		}
	}
}

// Close ends the connection and waits until every goroutine of it has ended.
// The batches that Next returned stay valid until they are released.
func (c *Conn) Close() error {
	c.fail(c.problem("close", ErrClosed, nil, ""))
	c.wait.Wait()
	return closeNode(c.node)
}

// maxSpare is how many empty queues are kept.
const maxSpare = 16

// batch is what Next returned: the slabs it holds and the list to use again.
type batch struct {
	c     *Conn
	list  []chain.Message
	slabs []*slab
	done  atomic.Bool
}

func (c *Conn) takeLocked() chain.Messages {
	b := &batch{c: c, list: c.queue, slabs: c.slabs}
	c.queue, c.slabs, c.queued = nil, nil, 0
	if n := len(c.spare); n > 0 {
		c.queue, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	return chain.Messages{List: b.list, Release: b.release}
}

func (b *batch) release() {
	if b.done.Swap(true) {
		return
	}
	for _, s := range b.slabs {
		s.drop()
	}
	clear(b.list)
	b.c.mu.Lock()
	if len(b.c.spare) < maxSpare {
		b.c.spare = append(b.c.spare, b.list[:0])
	}
	b.c.mu.Unlock()
}

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
		case errors.Is(err, io.EOF) && s.open():
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
			if !contains(c.offered, a.msg.Point) {
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

func contains(points []chain.Point, p chain.Point) bool {
	for _, q := range points {
		if p == q {
			return true
		}
	}
	return false
}

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

// fail ends the connection; only the first cause counts.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
		close(c.down)
	}
	c.mu.Unlock()
	c.sock.Close()
	c.inbox.close()
}

func (c *Conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
