package chain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// WholeBlock is the place of a cursor that stands behind a whole block.
const WholeBlock int64 = -1

// Cursor tells where a reader stands: behind which block, or behind which
// place within it, and where its view starts (contract 5.2). It is made of
// points, so that it outlives any process.
type Cursor struct {
	At      At
	Place   int64 // see Effect.Place; WholeBlock for behind all of the block
	Base    At    // where the reader's view starts
	HasBase bool  // false: it has no seed, Base means nothing
}

// ErrCursor is wrapped by every error of ParseCursor.
var ErrCursor = errors.New("not a cursor")

func (c *Cursor) setBase(base *At) {
	if base != nil {
		c.Base, c.HasBase = *base, true
	}
}

// String returns "slot.headerhash@height", then "+place" if the cursor stands
// inside the block, then "~" and the base in the same form if there is one. A
// point that is not known is written "?@height", origin as "origin".
func (c Cursor) String() string {
	s := cursorAt(c.At)
	if c.Place >= 0 {
		s += "+" + strconv.FormatInt(c.Place, 10)
	}
	if c.HasBase {
		s += "~" + cursorAt(c.Base)
	}
	return s
}

func cursorAt(a At) string {
	if a.IsOrigin() && a.Height >= 0 {
		return "?@" + strconv.FormatInt(int64(a.Height), 10)
	}
	return a.String()
}

// ParseCursor reads the form that String writes.
func ParseCursor(s string) (c Cursor, err error) {
	at, base, hasBase := strings.Cut(s, "~")
	at, place, inside := strings.Cut(at, "+")
	c = Cursor{Place: WholeBlock, HasBase: hasBase}
	if c.At, err = parseCursorAt(at); err != nil {
		return Cursor{}, fmt.Errorf("%w: %q: %w", ErrCursor, s, err)
	}
	if inside {
		n, err := strconv.ParseUint(place, 10, 32)
		if err != nil {
			return Cursor{}, fmt.Errorf("%w: %q: place: %w", ErrCursor, s, err)
		}
		c.Place = int64(n)
	}
	if hasBase {
		if c.Base, err = parseCursorAt(base); err != nil {
			return Cursor{}, fmt.Errorf("%w: %q: base: %w", ErrCursor, s, err)
		}
	}
	return c, nil
}

func parseCursorAt(s string) (a At, err error) {
	if s == "origin" {
		return Origin, nil
	}
	point, height, ok := strings.Cut(s, "@")
	if !ok {
		return a, fmt.Errorf("%q has no height (want SLOT.HEADERHASH@HEIGHT)", s)
	}
	n, err := strconv.ParseUint(height, 10, 63)
	if err != nil {
		return a, fmt.Errorf("height: %w", err)
	}
	a.Height = Height(n)
	if point == "?" {
		return a, nil
	}
	a.Point, err = ParsePoint(point)
	if err == nil && a.Point.IsOrigin() {
		err = fmt.Errorf("%q: origin has no height", s)
	}
	return a, err
}

// MarshalText implements encoding.TextMarshaler with the form of String.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseCursor.
func (c *Cursor) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCursor(string(text))
	return err
}
