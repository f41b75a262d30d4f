package chain

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Slot counts the network's slots from its start.
type Slot uint64

// Height is a block number. It is signed so that "tip minus depth" is plain
// arithmetic: origin stands at OriginHeight, below the block at height 0.
type Height int64

// OriginHeight is the height of origin, one below the first possible block.
const OriginHeight Height = -1

// Point names a block by slot and header hash. The zero Point is origin, the
// state before the first block; a real block at slot 0 (preview has one)
// differs from it by its hash.
type Point struct {
	Slot Slot
	Hash Hash
}

// ErrPoint is wrapped by every error of ParsePoint.
var ErrPoint = errors.New("not a point (want SLOT.HEADERHASH or origin)")

// IsOrigin tells whether the point is the state before the first block.
func (p Point) IsOrigin() bool { return p.Hash.IsZero() }

// String returns "slot.headerhash" or "origin".
func (p Point) String() string {
	if p.IsOrigin() {
		return "origin"
	}
	return strconv.FormatUint(uint64(p.Slot), 10) + "." + p.Hash.String()
}

// ParsePoint reads the form that String writes.
func ParsePoint(s string) (Point, error) {
	if s == "origin" {
		return Point{}, nil
	}
	slot, hash, ok := strings.Cut(s, ".")
	if !ok {
		return Point{}, fmt.Errorf("%w: %q", ErrPoint, s)
	}
	n, err := strconv.ParseUint(slot, 10, 64)
	if err != nil {
		return Point{}, fmt.Errorf("%w: %q: slot: %w", ErrPoint, s, err)
	}
	h, err := ParseHash(hash)
	if err != nil {
		return Point{}, fmt.Errorf("%w: %w", ErrPoint, err)
	}
	if h.IsZero() {
		return Point{}, fmt.Errorf("%w: %q: no block has an all-zero hash", ErrPoint, s)
	}
	return Point{Slot: Slot(n), Hash: h}, nil
}

// MarshalText implements encoding.TextMarshaler with the form of String.
func (p Point) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParsePoint.
func (p *Point) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePoint(string(text))
	return err
}

// At is a point together with its height: where an event happened, where a
// reader stands, what a node calls its tip.
type At struct {
	Point  Point
	Height Height
}

// Tip is the newest point and height of whoever names it.
type Tip = At

// Origin is the At below every block. The zero At is not it: its height is 0.
var Origin = At{Height: OriginHeight}

// IsOrigin tells whether the point is origin, whatever the height says.
func (a At) IsOrigin() bool { return a.Point.IsOrigin() }

// String returns "slot.headerhash@height" or "origin".
func (a At) String() string {
	if a.IsOrigin() {
		return "origin"
	}
	return a.Point.String() + "@" + strconv.FormatInt(int64(a.Height), 10)
}

// Position orders the blocks of one chain: by height, and at one height the
// main block before the boundary block that repeats its height (pitfall: a
// store keyed by height alone loses one of them).
type Position struct {
	Height   Height
	Boundary bool
}

// Compare returns -1, 0 or +1 as p comes before, at or after q.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Height, q.Height); c != 0 || p.Boundary == q.Boundary {
		return c
	}
	if q.Boundary {
		return -1
	}
	return 1
}

// Link is a block's place in its chain.
type Link struct {
	Point    Point
	Parent   Hash // header hash of the block below; of the genesis for the first block, or zero
	Height   Height
	Era      Era
	Boundary bool // a Byron epoch-boundary block: repeats its predecessor's height, carries no transactions
}

// At returns the block's point and height.
func (l Link) At() At { return At{Point: l.Point, Height: l.Height} }

// Position returns the block's place in the order of its chain.
func (l Link) Position() Position { return Position{Height: l.Height, Boundary: l.Boundary} }
