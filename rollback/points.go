package rollback

import (
	"errors"
	"fmt"
	"sort"

	"github.com/ourotail/ourotail/chain"
)

var (
	// ErrParent is returned by Extend for a block whose parent is not the head.
	ErrParent = errors.New("the block's parent is not our head")
	// ErrHeight is returned by Extend for a block that has the right parent but
	// not the height that follows from it.
	ErrHeight = errors.New("the block's height does not follow our head's")
	// ErrSlot is returned by Extend for a block that does not lie after the head.
	ErrSlot = errors.New("the block's slot does not follow our head's")
	// ErrUnknown is returned by CutTo for a point that is not among those held.
	ErrUnknown = errors.New("the point is not on our chain, or older than the points held")
)

// Points is the newest part of our chain, oldest first.
type Points struct {
	links  []chain.Link       // links[start:] are held
	index  map[chain.Hash]int // header hash to its place in links, shifted by gone
	start  int
	gone   int  // how many links were dropped from the front of the slice so far
	origin bool // nothing lies below the oldest link but origin
	keep   int
}

// New returns the points of an empty chain, holding at least the keep newest
// once there are that many.
func New(keep int) *Points {
	return &Points{index: map[chain.Hash]int{}, origin: true, keep: max(keep, 1)}
}

// Load replaces everything held by links, oldest first, each the child of the
// one before. whole tells that nothing but origin lies below the first.
func (p *Points) Load(links []chain.Link, whole bool) error {
	*p = *New(p.keep)
	for i, l := range links {
		if i > 0 {
			if err := follows(links[i-1], l); err != nil {
				return err
			}
		}
		p.push(l)
	}
	p.origin = whole && len(links) == p.Len()
	return nil
}

// Len returns how many points are held.
func (p *Points) Len() int { return len(p.links) - p.start }

// Head returns the newest block; false if the chain is empty.
func (p *Points) Head() (chain.Link, bool) {
	if p.Len() == 0 {
		return chain.Link{Height: chain.OriginHeight}, false
	}
	return p.links[len(p.links)-1], true
}

// Oldest returns the oldest block held; false if none is.
func (p *Points) Oldest() (chain.Link, bool) {
	if p.Len() == 0 {
		return chain.Link{Height: chain.OriginHeight}, false
	}
	return p.links[p.start], true
}

// Whole tells whether nothing but origin lies below the oldest block held.
func (p *Points) Whole() bool { return p.origin }

// Check tells whether the block may follow the head: its parent must be the
// head's hash (slot and height are not enough: a boundary block repeats its
// predecessor's height and may share its slot with the next block). On an empty
// chain any first block is taken, at height 0 or, behind no boundary block, 1.
func (p *Points) Check(l chain.Link) error {
	head, ok := p.Head()
	if !ok {
		if l.Height != 0 && l.Height != 1 {
			return fmt.Errorf("%w: the first block %s has height %d", ErrHeight, l.Point, l.Height)
		}
		return nil
	}
	return follows(head, l)
}

func follows(head, l chain.Link) error {
	switch want := next(head, l); {
	case l.Parent != head.Point.Hash:
		return fmt.Errorf("%w: block %s names the parent %s, our head is %s", ErrParent, l.At(), l.Parent, head.At())
	case l.Height != want:
		return fmt.Errorf("%w: block %s after %s, want height %d", ErrHeight, l.At(), head.At(), want)
	case l.Point.Slot < head.Point.Slot, l.Point.Slot == head.Point.Slot && !head.Boundary:
		return fmt.Errorf("%w: block %s after %s", ErrSlot, l.At(), head.At())
	}
	return nil
}

// next is the height that l must have behind head. The genesis boundary block
// has height 0, as a later one repeats its predecessor's; the first main block
// behind it has height 1 (consensus golden blocks).
func next(head, l chain.Link) chain.Height {
	if l.Boundary {
		return head.Height
	}
	return head.Height + 1
}

// Extend adds a block to the head; see Check for what is refused.
func (p *Points) Extend(l chain.Link) error {
	if err := p.Check(l); err != nil {
		return err
	}
	p.push(l)
	return nil
}

func (p *Points) push(l chain.Link) {
	p.links = append(p.links, l)
	p.index[l.Point.Hash] = len(p.links) - 1 + p.gone
	for p.Len() > p.keep && l.Height-p.links[p.start].Height >= chain.Height(p.keep) {
		delete(p.index, p.links[p.start].Point.Hash)
		p.start++
		p.origin = false
	}
	if p.start > 1024 && p.start > len(p.links)/2 { // amortised: each link moves once
		p.links = append(p.links[:0], p.links[p.start:]...)
		p.gone += p.start
		p.start = 0
	}
}

// Find returns the block of a point held: slot and hash must both be right.
func (p *Points) Find(point chain.Point) (chain.Link, bool) {
	i, ok := p.index[point.Hash]
	if !ok || p.links[i-p.gone].Point != point {
		return chain.Link{Height: chain.OriginHeight}, false
	}
	return p.links[i-p.gone], true
}

// At returns the main block at a height, if it is among those held.
func (p *Points) At(height chain.Height) (chain.Link, bool) {
	held := p.links[p.start:]
	i := sort.Search(len(held), func(i int) bool { return held[i].Height >= height })
	if i < len(held) && held[i].Height == height && held[i].Boundary {
		i++ // the genesis boundary block stands alone at its height, or before the main block that was cut off
	}
	if i == len(held) || held[i].Height != height || held[i].Boundary {
		return chain.Link{Height: chain.OriginHeight}, false
	}
	return held[i], true
}

// CutTo makes the point the head and returns the blocks above it, newest first.
// Origin may be named while Whole.
func (p *Points) CutTo(point chain.Point) ([]chain.Link, error) {
	keep := p.start
	if point.IsOrigin() {
		if !p.origin {
			return nil, fmt.Errorf("%w: origin", ErrUnknown)
		}
	} else {
		if _, ok := p.Find(point); !ok {
			return nil, fmt.Errorf("%w: %s", ErrUnknown, point)
		}
		keep = p.index[point.Hash] - p.gone + 1
	}
	gone := make([]chain.Link, 0, len(p.links)-keep)
	for i := len(p.links) - 1; i >= keep; i-- {
		gone = append(gone, p.links[i])
		delete(p.index, p.links[i].Point.Hash)
	}
	p.links = p.links[:keep]
	return gone, nil
}

// Ladder returns the points to offer a node, newest first: the head, then steps
// back doubling through everything held, the oldest last. Origin is offered only
// where nothing else lies below: silently starting over is never right.
func (p *Points) Ladder() []chain.Point {
	var out []chain.Point
	last := len(p.links) - 1
	for i, step := last, 1; i >= p.start; i, step = i-step, step*2 {
		out = append(out, p.links[i].Point)
	}
	if n := len(out); n > 0 && out[n-1] != p.links[p.start].Point {
		out = append(out, p.links[p.start].Point)
	}
	if p.origin {
		out = append(out, chain.Point{})
	}
	return out
}

// Between returns at most n points that lie above low and below high, newest
// first and evenly spread; all of them if there are no more than n. Origin may
// be low while Whole. It refines an intersection that the ladder has found: the
// ladder's steps are wide, and rolling back further than the fork would tell
// readers that blocks left the chain which did not.
func (p *Points) Between(low, high chain.Point, n int) []chain.Point {
	from, to := p.start, len(p.links)
	if i, ok := p.index[low.Hash]; ok {
		from = i - p.gone + 1
	}
	if i, ok := p.index[high.Hash]; ok {
		to = i - p.gone
	}
	count := min(to-from, n)
	if count <= 0 {
		return nil
	}
	out := make([]chain.Point, count)
	for j := range out {
		out[j] = p.links[to-1-j*(to-from)/count].Point
	}
	return out
}
