package devnode

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// Errors of Chain.
var (
	// ErrLink is wrapped when a block does not follow the one it is put on.
	ErrLink = errors.New("block does not follow its predecessor")
	// ErrNotOnChain is wrapped when a point is not on the selected chain.
	ErrNotOnChain = errors.New("point is not on the chain")
	// ErrSettled is wrapped when a switch would undo blocks of a folder.
	ErrSettled = errors.New("blocks of the immutable part cannot be undone")
	// ErrNotGenerated is returned by Extend and Fork of a chain without a
	// generator.
	ErrNotGenerated = errors.New("this chain is not generated: it cannot grow")
)

// Block is a block with its place in the chain. Raw is the storage form,
// [era tag, block], and is never written to.
type Block struct {
	chain.Link
	Raw []byte
}

// Chain is the selected chain of a node: an optional immutable part on disk,
// and blocks above it that may be switched. It is safe for concurrent use, and
// any number of followers read it.
type Chain struct {
	mu        sync.Mutex
	base      *immutable.DB
	baseLen   int
	blocks    []Block
	visible   int // how many blocks are shown; -1 is all
	followers map[*follower]struct{}
	changed   chan struct{}     // closed and replaced at each change
	gen       *generator        // nil unless generated
	settled   *immutable.Writer // of base, if blocks move there
	keep      int               // how many newest blocks do not
	pool      mempool
}

// NewChain returns an empty chain that holds only what is put into it.
func NewChain() *Chain {
	return &Chain{visible: -1, followers: map[*follower]struct{}{}, changed: make(chan struct{}), pool: mempool{changed: make(chan struct{})}}
}

// OpenImmutable returns a chain that starts with the blocks of an ImmutableDB
// folder. Blocks may be appended above them.
func OpenImmutable(dir string, opts immutable.Options) (*Chain, error) {
	db, err := immutable.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	return FromImmutable(db), nil
}

// FromImmutable returns a chain that starts with the blocks of db.
func FromImmutable(db *immutable.DB) *Chain {
	c := NewChain()
	c.base, c.baseLen = db, db.Len()
	return c
}

// Len returns the number of blocks shown, boundary blocks included.
func (c *Chain) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lenLocked()
}

func (c *Chain) lenLocked() int {
	n := c.baseLen + len(c.blocks)
	if c.visible >= 0 {
		n = min(n, c.visible)
	}
	return n
}

// Tip returns the newest block's point and height, or chain.Origin.
func (c *Chain) Tip() chain.Tip {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.atLocked(c.lenLocked() - 1)
}

// At returns the point and height of the i-th block; -1 is origin.
func (c *Chain) At(i int) chain.At {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.atLocked(i)
}

func (c *Chain) atLocked(i int) chain.At {
	switch {
	case i < 0:
		return chain.Origin
	case i < c.baseLen:
		return chain.At{Point: c.base.Entry(i).Point, Height: c.base.Height(i)}
	}
	return c.blocks[i-c.baseLen].At()
}

// Find returns the index of a point on the shown chain; -1 for origin.
func (c *Chain) Find(p chain.Point) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.findLocked(p)
}

func (c *Chain) findLocked(p chain.Point) (int, bool) {
	if p.IsOrigin() {
		return -1, true
	}
	n := c.lenLocked()
	if c.base != nil {
		if i, ok := c.base.Find(p); ok {
			return i, i < n
		}
	}
	i, _ := slices.BinarySearchFunc(c.blocks, p.Slot, func(b Block, s chain.Slot) int {
		switch {
		case b.Point.Slot < s:
			return -1
		case b.Point.Slot > s:
			return 1
		}
		return 0
	})
	for ; i < len(c.blocks) && c.blocks[i].Point.Slot == p.Slot; i++ {
		if c.blocks[i].Point.Hash == p.Hash {
			return c.baseLen + i, c.baseLen+i < n
		}
	}
	return 0, false
}

// Raw returns the bytes of the i-th block.
func (c *Chain) Raw(i int) ([]byte, error) {
	c.mu.Lock()
	if i >= c.baseLen {
		defer c.mu.Unlock()
		return c.blocks[i-c.baseLen].Raw, nil
	}
	c.mu.Unlock()
	cur := c.base.Cursor()
	defer cur.Close()
	return cur.Block(i)
}

// Append puts blocks on the tip. Errors wrap ErrLink; nothing is appended then.
func (c *Chain) Append(blocks ...Block) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.switchLocked(c.baseLen+len(c.blocks)-1, blocks)
}

// Switch takes the chain back to a point and puts blocks on it, in one step:
// no follower sees the state between. Errors wrap ErrNotOnChain, ErrSettled or
// ErrLink; the chain is as before then.
func (c *Chain) Switch(to chain.Point, blocks ...Block) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.findLocked(to)
	if !ok {
		return fmt.Errorf("switch to %v: %w", to, ErrNotOnChain)
	}
	return c.switchLocked(i, blocks)
}

func (c *Chain) switchLocked(to int, blocks []Block) error {
	if to < c.baseLen-1 {
		return fmt.Errorf("switch to %v: %w", c.atLocked(to), ErrSettled)
	}
	at := c.atLocked(to)
	first := to < 0
	for _, b := range blocks {
		if !first && b.Parent != at.Point.Hash {
			return fmt.Errorf("%v on %v: %w", b.At(), at, ErrLink)
		}
		at, first = b.At(), false
	}
	clear(c.blocks[to+1-c.baseLen:]) // undone blocks are not kept alive
	c.blocks = append(c.blocks[:to+1-c.baseLen], blocks...)
	c.cutFollowersLocked(to)
	c.wakeLocked()
	if c.settled != nil && len(c.blocks) > 2*c.keep {
		return c.settleLocked(len(c.blocks) - c.keep)
	}
	return nil
}

// Show limits what followers are shown to the first n blocks, as if the node
// had not got further; a negative n shows all. It is how a node that resyncs
// from behind is played.
func (c *Chain) Show(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.visible = n
	c.cutFollowersLocked(c.lenLocked() - 1)
	c.wakeLocked()
}

func (c *Chain) wakeLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of the chain.
func (c *Chain) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// follower is one client's read pointer.
type follower struct {
	at       int  // index of the block the client stands at; -1 is origin
	rollback bool // the client has yet to be told that it stands there
	cursor   *immutable.Cursor
}

// follow registers a new follower: it starts with a roll backward to origin
// (consensus: newFollower).
func (c *Chain) follow() *follower {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &follower{at: -1, rollback: true}
	if c.base != nil {
		f.cursor = c.base.Cursor()
	}
	c.followers[f] = struct{}{}
	return f
}

func (c *Chain) unfollow(f *follower) {
	c.mu.Lock()
	delete(c.followers, f)
	c.mu.Unlock()
	if f.cursor != nil {
		_ = f.cursor.Close() // a file opened for reading: nothing can be lost
	}
}

// cutFollowersLocked takes followers above index to back to it.
func (c *Chain) cutFollowersLocked(to int) {
	for f := range c.followers {
		if f.at > to {
			f.at, f.rollback = to, true
		}
	}
}

// intersect moves the follower to the first of the points that is on the
// chain. Without one it stays where it is.
func (c *Chain) intersect(f *follower, points []chain.Point) (chain.Point, chain.Tip, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tip := c.atLocked(c.lenLocked() - 1)
	for _, p := range points {
		if i, ok := c.findLocked(p); ok {
			f.at, f.rollback = i, true
			return p, tip, true
		}
	}
	return chain.Point{}, tip, false
}

// step is what a follower is told next.
type step struct {
	backward bool
	at       chain.At
	index    int
	raw      []byte // of a roll forward
	tip      chain.Tip
	wait     <-chan struct{} // not nil: nothing to tell before it is closed
}

// next advances the follower by one step. The raw bytes are valid until its
// next call.
func (c *Chain) next(f *follower) (s step, err error) {
	c.mu.Lock()
	n := c.lenLocked()
	s.tip = c.atLocked(n - 1)
	switch {
	case f.rollback:
		f.rollback = false
		s.backward = true
	case f.at+1 < n:
		f.at++
	default:
		s.wait = c.changed
		c.mu.Unlock()
		return s, nil
	}
	s.at, s.index = c.atLocked(f.at), f.at
	if !s.backward && f.at >= c.baseLen {
		s.raw = c.blocks[f.at-c.baseLen].Raw
	}
	c.mu.Unlock()
	if !s.backward && s.raw == nil {
		s.raw, err = f.cursor.Block(s.index)
	}
	return s, err
}

// back puts a follower that stands at a block before it, so that the block
// comes again.
func (c *Chain) back(f *follower, index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.at == index && !f.rollback {
		f.at--
	}
}
