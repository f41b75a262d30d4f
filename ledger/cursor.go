package ledger

import (
	"encoding/binary"
)

// Major types of CBOR (RFC 8949).
const (
	majorUint   = 0
	majorNegint = 1
	majorBytes  = 2
	majorText   = 3
	majorArray  = 4
	majorMap    = 5
	majorTag    = 6
	majorSimple = 7
)

const (
	infoIndefinite = 31
	breakByte      = 0xff
	nullByte       = 0xf6
)

// Tags that the ledger uses.
const (
	tagEncoded = 24  // a byte string that holds CBOR
	tagSet     = 258 // a set (Conway)
	tagAuxData = 259 // auxiliary data from Alonzo on
)

// cursor reads CBOR items of b from i on. The first failure sticks in err, and
// from then on every method does nothing and returns zero values; loops over
// containers end because more answers false.
type cursor struct {
	b   []byte
	i   int
	err error
	at  int // where err was found

	spans []Span // scratch space of unique
}

// fail notes the first failure, at offset at.
func (c *cursor) fail(at int, err error) {
	if c.err == nil {
		c.err, c.at = err, at
	}
}

// head reads the head of an item: its major type, the low five bits, and the
// argument (0 if indefinite).
func (c *cursor) head() (major, info byte, arg uint64) {
	if c.err != nil {
		return 0, 0, 0
	}
	if c.i >= len(c.b) {
		c.fail(c.i, ErrTruncated)
		return 0, 0, 0
	}
	first := c.b[c.i]
	major, info = first>>5, first&0x1f
	if info < 24 {
		c.i++
		return major, info, uint64(info)
	}
	return c.longHead(major, info)
}

func (c *cursor) longHead(major, info byte) (byte, byte, uint64) {
	rest := c.b[c.i+1:]
	var arg uint64
	var n int
	switch info {
	case 24:
		n = 1
	case 25:
		n = 2
	case 26:
		n = 4
	case 27:
		n = 8
	case infoIndefinite:
		if major == majorUint || major == majorNegint || major == majorTag {
			c.fail(c.i, ErrMalformed)
			return 0, 0, 0
		}
		c.i++
		return major, info, 0
	default:
		c.fail(c.i, ErrMalformed)
		return 0, 0, 0
	}
	if len(rest) < n {
		c.fail(c.i, ErrTruncated)
		return 0, 0, 0
	}
	switch n {
	case 1:
		arg = uint64(rest[0])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(rest))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(rest))
	case 8:
		arg = binary.BigEndian.Uint64(rest)
	}
	c.i += 1 + n
	return major, info, arg
}

// uint reads an unsigned integer of at most 64 bits.
func (c *cursor) uint() uint64 {
	at := c.i
	major, _, arg := c.head()
	if major != majorUint {
		c.fail(at, ErrUnexpected)
		return 0
	}
	return arg
}

// int64 reads a signed integer in the range of int64.
func (c *cursor) int64() int64 {
	at := c.i
	major, _, arg := c.head()
	switch {
	case major > majorNegint:
		c.fail(at, ErrUnexpected)
	case arg > 1<<63-1:
		c.fail(at, ErrAmount)
	case major == majorNegint:
		return -1 - int64(arg)
	default:
		return int64(arg)
	}
	return 0
}

// bytes reads a byte string of definite length and returns where its content
// stands.
func (c *cursor) bytes() Span {
	at := c.i
	major, info, n := c.head()
	if major != majorBytes || info == infoIndefinite {
		c.fail(at, ErrUnexpected)
		return Span{}
	}
	if n > uint64(len(c.b)-c.i) {
		c.fail(at, ErrTruncated)
		return Span{}
	}
	s := Span{c.i, c.i + int(n)}
	c.i = s.End
	return s
}

// fixed reads a byte string of exactly n bytes.
func (c *cursor) fixed(n int) []byte {
	at := c.i
	s := c.bytes()
	if c.err != nil {
		return nil
	}
	if s.Len() != n {
		c.fail(at, ErrUnexpected)
		return nil
	}
	return c.b[s.Start:s.End]
}

// indefinite is the length of a container that ends with a break.
const indefinite = -1

// container reads the head of an array or a map and returns the number of its
// elements or pairs, or indefinite.
func (c *cursor) container(want byte) int {
	at := c.i
	major, info, n := c.head()
	if c.err != nil {
		return 0
	}
	if major != want {
		c.fail(at, ErrUnexpected)
		return 0
	}
	if info == infoIndefinite {
		return indefinite
	}
	if n > uint64(len(c.b)-c.i) { // every element takes a byte at least
		c.fail(at, ErrTruncated)
		return 0
	}
	return int(n)
}

// array reads the head of an array; see container.
func (c *cursor) array() int { return c.container(majorArray) }

// mapping reads the head of a map; see container.
func (c *cursor) mapping() int { return c.container(majorMap) }

// set reads the head of a set: an array, with tag 258 or without. The tag is
// taken in every era; before Conway the ledger would refuse it, but no block
// of a node carries it there.
func (c *cursor) set() int {
	if c.peek()>>5 == majorTag {
		c.tag(tagSet)
	}
	return c.array()
}

// more tells whether a container of *n elements has another one, and counts
// it. For an indefinite one it looks for the break, and steps over it.
func (c *cursor) more(n *int) bool {
	if c.err != nil {
		return false
	}
	if *n >= 0 {
		*n--
		return *n >= 0
	}
	if c.i >= len(c.b) {
		c.fail(c.i, ErrTruncated)
		return false
	}
	if c.b[c.i] == breakByte {
		c.i++
		return false
	}
	return true
}

// tag reads a tag of that number.
func (c *cursor) tag(want uint64) {
	at := c.i
	major, _, n := c.head()
	if major != majorTag || n != want {
		c.fail(at, ErrUnexpected)
	}
}

// peek returns the next byte, or the break byte at the end and after a
// failure: no item begins with that.
func (c *cursor) peek() byte {
	if c.err != nil || c.i >= len(c.b) {
		return breakByte
	}
	return c.b[c.i]
}

// tuple reads the head of an array of exactly want elements. Close it with
// end.
func (c *cursor) tuple(want int) (n int) {
	at := c.i
	n = c.array()
	if c.err == nil && n != indefinite && n != want {
		c.fail(at, ErrUnexpected)
	}
	return n
}

// end reads the break of an array whose elements have all been read, if its
// length was indefinite.
func (c *cursor) end(n int) {
	if n != indefinite || c.err != nil {
		return
	}
	if c.peek() != breakByte || c.i >= len(c.b) {
		c.fail(c.i, ErrUnexpected)
		return
	}
	c.i++
}

// item steps over one item and returns where it stands.
func (c *cursor) item() Span {
	start := c.i
	c.skip()
	if c.err != nil {
		return Span{}
	}
	return Span{start, c.i}
}
