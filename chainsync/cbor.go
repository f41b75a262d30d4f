package chainsync

import (
	"errors"
	"fmt"
	"math"
)

// CBOR major types (RFC 8949 section 3.1).
const (
	majorUint   = 0
	majorNegInt = 1
	majorBytes  = 2
	majorText   = 3
	majorArray  = 4
	majorMap    = 5
	majorTag    = 6
	majorOther  = 7
)

// tagEncodedCBOR marks a byte string that holds one CBOR item (RFC 8949
// section 3.4.5.1).
const tagEncodedCBOR = 24

// maxDepth bounds how deep a handshake nests. Real ones go to 4.
const maxDepth = 16

// errShort says that more bytes have to come before the item can be read.
var errShort = errors.New("message is not complete")

// decoder reads a few items off the front of b. It reads what the messages of
// the protocol are made of and no more: definite lengths, as the node's own
// codec reads and writes them; integers of any width. A failure sticks: later
// reads return zero values.
type decoder struct {
	b    []byte
	off  int
	need int // if err is errShort: how long b has to be at least
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: at byte %d: %s", ErrMalformed, d.off, fmt.Sprintf(format, args...))
	}
}

func (d *decoder) short(need int) {
	if d.err == nil {
		d.err, d.need = errShort, need
	}
}

// head reads the head of an item: its major type and argument.
func (d *decoder) head() (major byte, arg uint64) {
	if d.err != nil {
		return 0, 0
	}
	if d.off >= len(d.b) {
		d.short(d.off + 1)
		return 0, 0
	}
	first := d.b[d.off]
	major, info := first>>5, first&0x1f
	if info < 24 {
		d.off++
		return major, uint64(info)
	}
	if info > 27 {
		d.fail("byte %#02x: an indefinite length or a reserved form where a definite one belongs", first)
		return 0, 0
	}
	n := 1 << (info - 24)
	if len(d.b)-d.off < 1+n {
		d.short(d.off + 1 + n)
		return 0, 0
	}
	for _, x := range d.b[d.off+1 : d.off+1+n] {
		arg = arg<<8 | uint64(x)
	}
	d.off += 1 + n
	return major, arg
}

// expect reads the head of an item of the given major type.
func (d *decoder) expect(want byte, what string) uint64 {
	at := d.off
	major, arg := d.head()
	if d.err == nil && major != want {
		d.off = at
		d.fail("%s: CBOR major type %d, want %d", what, major, want)
		return 0
	}
	return arg
}

func (d *decoder) uint(what string) uint64 { return d.expect(majorUint, what) }

// array reads the head of an array and returns the number of its items.
func (d *decoder) array(what string) uint64 { return d.expect(majorArray, what) }

// integer reads an integer of either sign that 63 bits hold.
func (d *decoder) integer(what string) int64 {
	at := d.off
	major, arg := d.head()
	switch {
	case d.err != nil:
	case major != majorUint && major != majorNegInt || arg > math.MaxInt64:
		d.off = at
		d.fail("%s: no integer of 63 bits", what)
	case major == majorNegInt:
		return -1 - int64(arg)
	default:
		return int64(arg)
	}
	return 0
}

// each reads a list or a map of either kind and calls item for each of its items
// or pairs, until one fails.
func (d *decoder) each(major byte, what string, item func()) {
	indefinite := d.err == nil && d.off < len(d.b) && d.b[d.off] == major<<5|31
	n := uint64(0)
	if indefinite {
		d.off++
	} else {
		n = d.expect(major, what)
	}
	for i := uint64(0); d.err == nil && (indefinite || i < n); i++ {
		if indefinite && d.off < len(d.b) && d.b[d.off] == breakByte {
			d.off++
			return
		}
		item()
	}
}

// string reads a byte or text string of at most limit bytes. A longer one is
// refused by its head, before its bytes have come.
func (d *decoder) string(major byte, what string, limit int) []byte {
	n := d.expect(major, what)
	if d.err != nil {
		return nil
	}
	if n > uint64(limit) {
		d.err = fmt.Errorf("%w: %s of %d bytes, the limit is %d", ErrTooLarge, what, n, limit)
		return nil
	}
	if end := d.off + int(n); end > len(d.b) {
		d.short(end)
		return nil
	}
	b := d.b[d.off : d.off+int(n) : d.off+int(n)]
	d.off += int(n)
	return b
}

// walker finds the end of one item of a handshake: of any kind, with definite
// lengths. It goes on where it stopped when more bytes have come, so that an
// item in many small pieces is read once.
type walker struct {
	off  int      // bytes walked over
	todo []uint64 // items still to come at each level, the outermost first
}

// walk goes over b, of which the beginning is what earlier calls saw. Its
// error is errShort if b ends before the item does.
func (w *walker) walk(b []byte) error {
	if w.todo == nil {
		w.todo = append(w.todo, 1)
	}
	for len(w.todo) > 0 {
		top := len(w.todo) - 1
		if w.todo[top] == 0 {
			w.todo = w.todo[:top]
			continue
		}
		d := decoder{b: b, off: w.off}
		major, arg := d.head()
		switch major {
		case majorBytes, majorText:
			d.off = w.off // a string counts when all of it is there
			d.string(major, "string", maxHandshake)
		case majorArray, majorMap, majorTag:
			if arg > maxHandshake {
				d.fail("%d items", arg)
			} else if len(w.todo) == maxDepth {
				d.fail("nested deeper than %d", maxDepth)
			}
		}
		if d.err != nil {
			return d.err
		}
		w.off = d.off
		w.todo[top]--
		switch major {
		case majorArray:
			w.todo = append(w.todo, arg)
		case majorMap:
			w.todo = append(w.todo, 2*arg)
		case majorTag:
			w.todo = append(w.todo, 1)
		}
	}
	return nil
}

func appendHead(b []byte, major byte, arg uint64) []byte {
	m := major << 5
	switch {
	case arg < 24:
		return append(b, m|byte(arg))
	case arg <= 0xff:
		return append(b, m|24, byte(arg))
	case arg <= 0xffff:
		return append(b, m|25, byte(arg>>8), byte(arg))
	case arg <= 0xffffffff:
		return append(b, m|26, byte(arg>>24), byte(arg>>16), byte(arg>>8), byte(arg))
	}
	return append(b, m|27, byte(arg>>56), byte(arg>>48), byte(arg>>40), byte(arg>>32),
		byte(arg>>24), byte(arg>>16), byte(arg>>8), byte(arg))
}
