package model

import (
	"context"
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
	spoilt   [][]byte     // blocks that it made undecodable
	deep     chain.Height // how far back the deepest roll backward went that was a lie
	lastDial time.Time
	burst    int // dials at one instant
	dials    int
}

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
	c := &conn{n: n, serial: n.serial, rnd: rand.New(rand.NewPCG(n.seed, n.serial)), back: true, left: n.cut, done: make(chan struct{})}
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
