package chainsync

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ouroboros "github.com/blinklabs-io/gouroboros"

	"github.com/ourotail/ourotail/chain"
)

// Conn is a connection to a node on which a version has been agreed. Intersect
// and Next are called by one goroutine at a time; Acquire, Mempool, Submit and
// Close by any, at any time.
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
	err      error                // why the connection is over; guarded by mu
	op       string               // what is being done, for errors; guarded by mu
	state    state                // guarded by mu
	offered  []chain.Point        // to the intersection under way; guarded by mu
	window   window               // guarded by mu
	deadline time.Time            // of the socket's reads, zero if none; guarded by mu
	queue    []chain.Message      // for Next; guarded by mu
	queued   int                  // bytes in queue; guarded by mu
	slabs    []*slab              // that queue aliases, each held once; guarded by mu
	spare    [][]chain.Message    // empty queues to use again; guarded by mu
	talks    map[uint16]*dialogue // by protocol, those that have begun; guarded by mu
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
		pool:    &slabPool{max: 2 * (cfg.QueueBytes/slabSize + 4)},
		began:   time.Now(),
		op:      opHandshake,
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
	c.state, c.offered, c.op = stateIntersecting, slices.Clone(points), "intersect"
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
		select {
		case a := <-c.replied: // it answered before it went
			return a.msg.Point, a.tag == tagIntersectFound, a.msg.Tip, nil
		default:
		}
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
	c.mu.Lock()
	talks := c.talks // there will be no others: the connection is over
	c.mu.Unlock()
	for _, q := range talks {
		q.stop()
	}
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
