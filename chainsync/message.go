package chainsync

import (
	"fmt"
	"math"

	"github.com/ourotail/ourotail/chain"
)

// Message tags (chain-sync.cddl of ouroboros-network).
const (
	tagRequestNext       = 0
	tagAwaitReply        = 1
	tagRollForward       = 2
	tagRollBackward      = 3
	tagFindIntersect     = 4
	tagIntersectFound    = 5
	tagIntersectNotFound = 6
	tagDone              = 7
)

// answerItems are the messages that a node sends, by the number of their items.
var answerItems = [...]uint64{
	tagAwaitReply: 1, tagRollForward: 3, tagRollBackward: 3, tagIntersectFound: 3, tagIntersectNotFound: 2,
}

// answer is a chain-sync message from the node. For the first three tags msg
// is complete; for intersections msg carries point and tip.
type answer struct {
	tag uint64
	msg chain.Message
}

// requestNext is [0].
var requestNext = [2]byte{0x81, tagRequestNext}

// appendFindIntersect appends [4, points]. The list is definite: both the
// node's reader and others take that.
func appendFindIntersect(b []byte, points []chain.Point) []byte {
	b = append(b, 0x82, tagFindIntersect)
	b = appendHead(b, majorArray, uint64(len(points)))
	for _, p := range points {
		if p.IsOrigin() {
			b = append(b, 0x80)
			continue
		}
		b = appendHead(append(b, 0x82), majorUint, uint64(p.Slot))
		b = append(appendHead(b, majorBytes, uint64(len(p.Hash))), p.Hash[:]...)
	}
	return b
}

// parseAnswer reads one message off the front of b and returns its length.
// errShort says that b ends too early, and n then how long it must be at
// least. The message aliases b. A message that does not obey the protocol's
// CDDL is an error that wraps ErrMalformed or ErrTooLarge.
func parseAnswer(b []byte, limit int) (a answer, n int, err error) {
	d := decoder{b: b}
	items := d.array("message")
	a.tag = d.uint("message tag")
	if d.err != nil {
		return a, d.need, d.err
	}
	switch {
	case a.tag >= uint64(len(answerItems)) || answerItems[a.tag] == 0:
		d.fail("message tag %d is none that a node sends", a.tag)
	case items != answerItems[a.tag]:
		d.fail("%s of %d items, want %d", answerName(a.tag), items, answerItems[a.tag])
	}
	switch a.tag {
	case tagAwaitReply:
		a.msg.Kind = chain.AwaitReply
	case tagRollForward:
		a.msg.Kind = chain.RollForward
		if tag := d.expect(majorTag, "block wrapper"); tag != tagEncodedCBOR {
			d.fail("block wrapped in tag %d, want %d", tag, tagEncodedCBOR)
		}
		a.msg.Raw = d.string(majorBytes, "block", limit)
		a.msg.Tip = d.tip()
	case tagRollBackward, tagIntersectFound:
		a.msg.Kind = chain.RollBackward
		a.msg.Point = d.point()
		a.msg.Tip = d.tip()
	case tagIntersectNotFound:
		a.msg.Tip = d.tip()
	}
	if d.err != nil {
		return a, d.need, d.err
	}
	return a, d.off, nil
}

// point reads [] or [slot, hash]. Nothing else passes for a point: one of the
// wrong shape must not be taken for origin.
func (d *decoder) point() (p chain.Point) {
	switch n := d.array("point"); {
	case d.err != nil || n == 0:
		return chain.Point{}
	case n != 2:
		d.fail("point of %d items", n)
		return chain.Point{}
	}
	p.Slot = chain.Slot(d.uint("slot"))
	n := d.expect(majorBytes, "header hash")
	switch {
	case d.err != nil:
		return chain.Point{}
	case n != uint64(len(p.Hash)):
		d.fail("header hash of %d bytes", n)
		return chain.Point{}
	case len(d.b)-d.off < len(p.Hash):
		d.short(d.off + len(p.Hash))
		return chain.Point{}
	}
	d.off += copy(p.Hash[:], d.b[d.off:])
	if p.IsOrigin() {
		d.fail("header hash of zeros at slot %d", p.Slot)
	}
	return p
}

// tip reads [point, block number]. With the empty point it is origin, whatever
// the number says (the node writes 0).
func (d *decoder) tip() chain.Tip {
	if n := d.array("tip"); d.err == nil && n != 2 {
		d.fail("tip of %d items", n)
	}
	p := d.point()
	height := d.uint("tip's block number")
	switch {
	case d.err != nil:
		return chain.Tip{}
	case p.IsOrigin():
		return chain.Origin
	case height > math.MaxInt64:
		d.fail("tip's block number %d", height)
		return chain.Tip{}
	}
	return chain.Tip{Point: p, Height: chain.Height(height)}
}

// blockHeight reads the block number of a Shelley or later block out of its
// raw form, [era, [[[number, slot, ..., to the block's own depth. It serves
// only to guess how far the tip is; other blocks give false.
func blockHeight(raw []byte) (chain.Height, bool) {
	d := decoder{b: raw}
	items, era := d.array("block"), d.uint("era")
	if items != 2 || era < uint64(chain.Shelley) {
		return 0, false
	}
	for range 3 { // block, header, header body
		d.array("header")
	}
	number := d.uint("block number")
	if d.err != nil || number > math.MaxInt64 {
		return 0, false
	}
	return chain.Height(number), true
}

// answerName names a message for errors.
func answerName(tag uint64) string {
	switch tag {
	case tagAwaitReply:
		return "AwaitReply"
	case tagRollForward:
		return "RollForward"
	case tagRollBackward:
		return "RollBackward"
	case tagIntersectFound:
		return "IntersectFound"
	case tagIntersectNotFound:
		return "IntersectNotFound"
	}
	return fmt.Sprintf("message %d", tag)
}
