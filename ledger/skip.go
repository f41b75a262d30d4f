package ledger

// skip steps over one item of any shape and depth. It does not recurse: a
// block may hold data nested as deep as its size allows, and no stack of ours
// may depend on it.
func (c *cursor) skip() {
	if c.err != nil {
		return
	}
	if c.i < len(c.b) && c.b[c.i] < 0x18 { // the most frequent item: a small number
		c.i++
		return
	}
	// todo counts the items that must still come before the innermost open
	// indefinite container (or, if none is open, the item itself) is back at
	// its own level.
	todo := 1
	for todo > 0 {
		at := c.i
		major, info, arg := c.head()
		if c.err != nil {
			return
		}
		todo--
		if info == infoIndefinite {
			if major == majorSimple { // a break where an item must come
				c.fail(at, ErrMalformed)
				return
			}
			c.i = at
			c.skipIndefinite(todo)
			return
		}
		if todo = c.content(at, major, arg, todo); c.err != nil {
			return
		}
	}
}

// content steps over what follows the head of an item of definite length and
// returns todo with the elements of the item added.
func (c *cursor) content(at int, major byte, arg uint64, todo int) int {
	left := uint64(len(c.b) - c.i)
	switch major {
	case majorBytes, majorText:
		if arg > left {
			c.fail(at, ErrTruncated)
			return 0
		}
		c.i += int(arg)
	case majorArray:
		if arg > left {
			c.fail(at, ErrTruncated)
			return 0
		}
		todo += int(arg)
	case majorMap:
		if arg > left/2 {
			c.fail(at, ErrTruncated)
			return 0
		}
		todo += 2 * int(arg)
	case majorTag:
		todo++
	}
	if todo > len(c.b)-c.i {
		c.fail(at, ErrTruncated)
		return 0
	}
	return todo
}

// open is an enclosing level of skipIndefinite: the items still to come there,
// and what kind of container it is.
type open struct {
	todo int
	pair pairing
}

// pairing tells whether the innermost open container is a map and whether it
// has a key that wants its value.
type pairing uint8

const (
	unpaired pairing = iota
	wantsKey
	wantsValue
)

// skipIndefinite goes on where skip met an item of indefinite length: one item
// and todo more after it. Levels are kept for indefinite containers only, on
// the Go stack as long as there are few.
func (c *cursor) skipIndefinite(todo int) {
	var few [16]open
	levels := few[:0]
	var pair pairing // of the innermost indefinite container
	todo++
	for {
		if todo == 0 {
			if len(levels) == 0 {
				return
			}
			if c.i >= len(c.b) {
				c.fail(c.i, ErrTruncated)
				return
			}
			if c.b[c.i] == breakByte {
				if pair == wantsValue {
					c.fail(c.i, ErrMalformed)
					return
				}
				c.i++
				last := levels[len(levels)-1]
				levels = levels[:len(levels)-1]
				todo, pair = last.todo, last.pair
				continue
			}
			todo = 1 // an element of the open container
			switch pair {
			case wantsKey:
				pair = wantsValue
			case wantsValue:
				pair = wantsKey
			}
		}
		at := c.i
		major, info, arg := c.head()
		if c.err != nil {
			return
		}
		todo--
		if info != infoIndefinite {
			if todo = c.content(at, major, arg, todo); c.err != nil {
				return
			}
			continue
		}
		switch major {
		case majorBytes, majorText:
			c.chunks(major)
			if c.err != nil {
				return
			}
		case majorArray, majorMap:
			levels = append(levels, open{todo, pair})
			todo, pair = 0, unpaired
			if major == majorMap {
				pair = wantsKey
			}
		default: // a break where an item must come
			c.fail(at, ErrMalformed)
			return
		}
	}
}

// chunks steps over the chunks of a string of indefinite length and its break:
// strings of definite length of the same type.
func (c *cursor) chunks(major byte) {
	for n := indefinite; c.more(&n); {
		at := c.i
		m, info, arg := c.head()
		if c.err != nil {
			return
		}
		if m != major || info == infoIndefinite {
			c.fail(at, ErrMalformed)
			return
		}
		if arg > uint64(len(c.b)-c.i) {
			c.fail(at, ErrTruncated)
			return
		}
		c.i += int(arg)
	}
}

// ItemSize returns the length of the CBOR item that b begins with, for files
// that hold blocks end to end.
func ItemSize(b []byte) (int, error) {
	c := cursor{b: b}
	c.skip()
	if c.err != nil {
		return 0, &Error{Tx: -1, Offset: c.at, Cause: c.err}
	}
	return c.i, nil
}
