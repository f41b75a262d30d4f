package model

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
)

// node is a list of blocks that is served as a node would, or as it should not.
type node struct {
	mu     sync.Mutex
	blocks []forge.Block
	shown  int // how many of them, -1 for all: it is still synchronising
	wake   chan struct{}
	held   bool // changes wake nobody
	conns  map[*conn]struct{}
	serial uint64 // of connections, for their choices
	seed   uint64

	down    bool        // nobody listens
	refuses error       // what a dial ends with, if it listens
	mute    bool        // connections are open and nothing is said
	deaf    bool        // nor is a question for the tip answered
	broken  chain.Point // a block that is always cut short
	foreign []byte      // a block of another chain
	k       chain.Height
	lies    []lie
	group   int           // messages in one run at most
	latency time.Duration // before an answer at most
	cut     int           // messages after which a new connection breaks, 0 for never

	highest  chain.Height // of any tip it ever had
	lastTip  chain.Tip
	tipSince time.Time
	told     map[lie]int  // lies told
	deep     chain.Height // how far back the deepest roll backward went that was a lie
	lastDial time.Time
	burst    int // dials at one instant
	dials    int
}

// lie is what a node says once that no honest node says.
type lie uint8

const (
	lieSkip      lie = iota // a block left out
	lieRepeat               // a block twice
	lieSwap                 // two blocks in the wrong order
	lieForeign              // a block of another chain
	lieParent               // a block whose header names another parent
	lieTruncated            // a block that ends early
	lieBody                 // a block with a flipped bit in its body
	lieOrigin               // back to origin, unasked
	lieUnknown              // back to a point that never was
	lieDeep                 // back further than the security parameter allows
	lieBackForth            // back and forth again on the same blocks: rare, but no lie
	lieKind                 // a message of no kind
	lieMalformed            // bytes that are no message
	lieHangUp               // the connection ends
	lieEnd
)

var lieNames = [...]string{"skip", "repeat", "swap", "foreign", "parent", "truncated", "body", "origin", "unknown", "deep", "back and forth", "kind", "malformed", "hang up"}

func (l lie) String() string { return lieNames[l] }

func newNode(seed uint64, k chain.Height, foreign []byte) *node {
	return &node{k: k, foreign: foreign, shown: -1, wake: make(chan struct{}), conns: map[*conn]struct{}{}, seed: seed, group: 3, highest: chain.OriginHeight, told: map[lie]int{}, deep: 1 << 40}
}

// change runs f with the node locked and wakes whoever waits.
func (n *node) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	if n.down || n.refuses != nil {
		for c := range n.conns {
			c.closeLocked()
		}
	}
	if tip := n.tipLocked(); tip != n.lastTip {
		n.lastTip, n.tipSince, n.highest = tip, time.Now(), max(n.highest, tip.Height)
	}
	n.wakeLocked()
}

// wakeLocked lets whoever waits look again, unless the driver has not finished.
func (n *node) wakeLocked() {
	if n.held {
		return
	}
	close(n.wake)
	n.wake = make(chan struct{})
}

// hold makes all changes until letGo one change: nobody sees what is between.
func (n *node) hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = true
}

func (n *node) letGo() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = false
	n.wakeLocked()
}

// turn gives the node another chain; connections go back to what both have.
func (n *node) turn(blocks []forge.Block, shown int) {
	n.change(func() {
		same := 0
		for same < min(len(blocks), len(n.blocks)) && blocks[same].Point == n.blocks[same].Point {
			same++
		}
		n.blocks, n.shown = blocks, shown
		same = min(same, n.lenLocked())
		for c := range n.conns {
			if c.at > same {
				c.at, c.back = same, true
			}
		}
	})
}

// hangUp ends every connection, as a restart of the node does.
func (n *node) hangUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.closeLocked()
	}
}

func (n *node) lenLocked() int {
	if n.shown >= 0 {
		return min(n.shown, len(n.blocks))
	}
	return len(n.blocks)
}

func (n *node) tipLocked() chain.Tip {
	if i := n.lenLocked(); i > 0 {
		return n.blocks[i-1].At()
	}
	return chain.Origin
}

// Tip returns what the node has come to.
func (n *node) Tip() chain.Tip {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tipLocked()
}

func (n *node) findLocked(p chain.Point) int { // blocks up to and with p, or -1
	if p.IsOrigin() {
		return 0
	}
	i := slices.IndexFunc(n.blocks[:n.lenLocked()], func(b forge.Block) bool { return b.Point == p })
	if i < 0 {
		return -1
	}
	return i + 1
}

func problem(op string, kind error) error {
	return &chainsync.Error{Op: op, Path: "list", Kind: kind}
}

// Handshake and answer are how long a follower waits for a node, as chainsync
// does.
const (
	handshakePatience = 10 * time.Second
	answerPatience    = 60 * time.Second
)

// dial is the follower's.
func (n *node) dial(ctx context.Context) (follow.Conn, error) {
	n.mu.Lock()
	n.dials++
	if now := time.Now(); now.Equal(n.lastDial) {
		n.burst++
	} else {
		n.lastDial, n.burst = now, 0
	}
	n.serial++
	c := &conn{n: n, rnd: rand.New(rand.NewPCG(n.seed, n.serial)), back: true, left: n.cut, done: make(chan struct{})}
	n.mu.Unlock()
	if err := c.sleep(ctx, c.pause()); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.down:
		return nil, problem("connect", chainsync.ErrNoSocket)
	case n.refuses != nil:
		return nil, problem("handshake", n.refuses)
	case n.mute && n.deaf:
		n.mu.Unlock()
		err := c.sleep(ctx, handshakePatience)
		n.mu.Lock()
		if err == nil {
			err = problem("handshake", chainsync.ErrSilent)
		}
		return nil, err
	}
	n.conns[c] = struct{}{}
	return c, nil
}

// tip answers the question for the tip over another connection.
func (n *node) tip(ctx context.Context) (chain.Tip, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.down:
		return chain.Tip{}, problem("connect", chainsync.ErrNoSocket)
	case n.refuses != nil:
		return chain.Tip{}, problem("handshake", n.refuses)
	case n.deaf:
		n.mu.Unlock()
		defer n.mu.Lock()
		select {
		case <-ctx.Done():
			return chain.Tip{}, ctx.Err()
		case <-time.After(handshakePatience):
			return chain.Tip{}, problem("handshake", chainsync.ErrSilent)
		}
	}
	return n.tipLocked(), nil
}

// conn is one connection; the node's lock guards it.
type conn struct {
	n      *node
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
		return nil
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

// lieLocked tells the next lie, if there is one that can be told here.
func (c *conn) lieLocked(tip chain.Tip) (list []chain.Message, told bool) {
	n := c.n
	if len(n.lies) == 0 || c.at == 0 {
		return nil, false
	}
	if n.lenLocked()-c.at > 20 && c.rnd.IntN(30) > 0 {
		return nil, false // somewhere on the way
	}
	l := n.lies[0]
	next := n.blocks[c.at]
	forward := func(raw []byte) chain.Message { return chain.Message{Raw: raw, Tip: tip} }
	backward := func(p chain.Point) chain.Message {
		return chain.Message{Kind: chain.RollBackward, Point: p, Tip: tip}
	}
	goBack := func(to int) {
		c.at = to
		p := chain.Point{}
		if to > 0 {
			p = n.blocks[to-1].Point
		}
		list = append(list, backward(p))
	}
	switch l {
	case lieSkip, lieSwap:
		if c.at+1 >= n.lenLocked() {
			return nil, false
		}
		list = append(list, forward(n.blocks[c.at+1].Raw))
		if l == lieSwap {
			list = append(list, forward(next.Raw))
		}
		c.at += 2
	case lieRepeat:
		list = append(list, forward(n.blocks[c.at-1].Raw))
	case lieForeign:
		list = append(list, forward(n.foreign))
	case lieParent:
		raw := slices.Clone(next.Raw)
		i := bytes.Index(raw, next.Parent[:])
		if i < 0 {
			return nil, false
		}
		raw[i] ^= 1
		list = append(list, forward(raw))
		c.at++
	case lieTruncated:
		list = append(list, forward(next.Raw[:len(next.Raw)-1-c.rnd.IntN(len(next.Raw)/2)]))
		c.at++
	case lieBody:
		if next.Era == chain.Byron { // whose proofs of what is not about outputs nobody checks
			return nil, false
		}
		raw := slices.Clone(next.Raw)
		// Nobody can tell a changed signature in the header: another hash is another
		// block, on trust. The header ends within the first 1,500 bytes.
		at := len(raw) - 1 - c.rnd.IntN(2)
		if len(raw) > 2000 {
			at = 1500 + c.rnd.IntN(len(raw)-1500)
		}
		raw[at] ^= 0x15
		list = append(list, forward(raw))
		c.at++
	case lieOrigin:
		goBack(0)
	case lieUnknown:
		list = append(list, backward(chain.Point{Slot: next.Point.Slot, Hash: chain.Hash{0xbd, byte(c.rnd.Uint32())}}))
	case lieDeep:
		to := c.rnd.IntN(c.at)
		goBack(to)
		n.deep = chain.OriginHeight
		if to > 0 {
			n.deep = n.blocks[to-1].Height
		}
	case lieBackForth:
		// As deep as an honest node may go: it has changed its mind twice.
		to := c.at
		for to > 1 && n.blocks[to-1].Height > n.highest-1-chain.Height(c.rnd.Int64N(int64(n.k))) {
			to--
		}
		goBack(to)
	case lieKind:
		list = append(list, chain.Message{Kind: 9, Tip: tip})
	case lieMalformed:
		c.end = chainsync.ErrMalformed
	case lieHangUp:
		c.end = chainsync.ErrDisconnected
	default:
		panic(fmt.Sprintf("lie %d", l))
	}
	n.lies = n.lies[1:]
	n.told[l]++
	return list, true
}
