package devnode

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Fault changes a reply before it is sent; it is what Behaviour.OnReply holds.
// Faults without state of their own are safe for concurrent use, and so are
// those that the functions of this package return.
type Fault func(*Reply)

// AtHeight applies a fault to the roll forward to a height, every time.
// Boundary blocks are passed over: they repeat a height.
func AtHeight(h chain.Height, f Fault) Fault {
	return func(r *Reply) {
		if r.Kind == RollForward && r.At.Height == h && !isBoundary(r.Block) {
			f(r)
		}
	}
}

// OfKind applies a fault to replies of one kind.
func OfKind(k ReplyKind, f Fault) Fault {
	return func(r *Reply) {
		if r.Kind == k {
			f(r)
		}
	}
}

// Times applies a fault at most n times, whichever client meets it. What it
// passes over does not count only if f is the innermost: write AtHeight(h,
// Times(1, Skip)).
func Times(n int64, f Fault) Fault {
	var used atomic.Int64
	return func(r *Reply) {
		if used.Add(1) <= n {
			f(r)
		}
	}
}

// All applies faults one after the other.
func All(faults ...Fault) Fault {
	return func(r *Reply) {
		for _, f := range faults {
			f(r)
		}
	}
}

// Skip leaves a block out: the request is answered with what comes next.
func Skip(r *Reply) { r.Skip = true }

// Repeat sends a block and then, for the next request, the same again.
func Repeat(r *Reply) { r.Stay = true }

// Silence leaves a request without an answer for ever; later requests are
// answered.
func Silence(r *Reply) { r.Drop = true }

// HangUp closes the connection instead of answering.
func HangUp(r *Reply) { r.Drop, r.Close = true, true }

// Slow waits before sending.
func Slow(d time.Duration) Fault { return func(r *Reply) { r.Delay = d } }

// Segments cuts the message into segments of these payload sizes, the last one
// repeating.
func Segments(sizes ...int) Fault { return func(r *Reply) { r.Segments = sizes } }

// Swap exchanges the blocks at a height and the one above it.
func Swap(c *Chain, h chain.Height) Fault {
	return func(r *Reply) {
		if r.Kind != RollForward || isBoundary(r.Block) {
			return
		}
		other := r.Index
		switch r.At.Height {
		case h:
			other++
		case h + 1:
			other--
		default:
			return
		}
		if raw, err := c.Raw(other); err == nil {
			r.Block = raw
		}
	}
}

// WrongParent sends a block whose header names another parent; the header is
// well-formed and its hash is another too.
func WrongParent(r *Reply) {
	if b, err := withParent(r.Block, chain.Hash{0xbd, 0xbd}); err == nil {
		r.Block = b
	}
}

// withParent returns a copy of a block with another previous hash.
func withParent(raw []byte, parent chain.Hash) ([]byte, error) {
	_, off, err := wire.ReadArray(raw, 0)
	if err != nil {
		return nil, err
	}
	tag, off, err := wire.ReadUint(raw, off)
	if err != nil {
		return nil, err
	}
	skip := 2 // block number and slot
	heads := 3
	if tag <= uint64(chain.Byron) {
		skip, heads = 1, 2 // the magic
	}
	for range heads {
		if _, off, err = wire.ReadArray(raw, off); err != nil {
			return nil, err
		}
	}
	for range skip {
		if off, err = wire.Skip(raw, off); err != nil {
			return nil, err
		}
	}
	old, next, err := wire.ReadBytes(raw, off)
	if err != nil || len(old) != len(parent) {
		return nil, fmt.Errorf("%w: no previous hash at offset %d", wire.ErrMalformed, off)
	}
	out := bytes.Clone(raw)
	copy(out[next-len(parent):next], parent[:])
	return out, nil
}

// FalseOrigin sends a roll backward to origin that nobody asked for, instead.
func FalseOrigin(r *Reply) { r.Kind, r.At, r.Block, r.Stay = RollBackward, chain.Origin, nil, true }

// MalformedPoint sends a roll backward whose point has n items, not 0 or 2: a
// careless decoder takes it for origin.
func MalformedPoint(n int) Fault {
	return func(r *Reply) {
		b := wire.Uint(wire.Array(nil, 3), tagRollBackward)
		b = wire.Array(b, n)
		for i := range n {
			if i == 1 {
				b = wire.Bytes(b, make([]byte, 32))
				continue
			}
			b = wire.Uint(b, 0)
		}
		r.Message = AppendTip(b, r.Tip)
		r.Stay = true
	}
}

// Layer is a layer of the protocol at which Corrupt breaks a message.
type Layer uint8

// The layers, from the outside in.
const (
	LayerSegment  Layer = iota // a segment of a protocol nobody opened
	LayerEmpty                 // a segment without payload
	LayerMessage               // bytes that are no CBOR
	LayerItems                 // a message with an item too many
	LayerKind                  // a message of an unknown kind
	LayerWrapper               // the block in tag 25, not 24
	LayerTrailing              // bytes behind the block, inside the wrapper
	LayerBlock                 // a block that ends early
	LayerEra                   // a block of an era nobody knows
	LayerHeader                // a header that is no array
	LayerBody                  // a flipped byte near the end of the block
	LayerTip                   // a tip that is no array
	LayerEnd                   // one past the last
)

var layerNames = [...]string{"segment", "empty", "message", "items", "kind", "wrapper", "trailing", "block", "era", "header", "body", "tip"}

// String returns the layer's name.
func (l Layer) String() string {
	if int(l) < len(layerNames) {
		return layerNames[l]
	}
	return fmt.Sprintf("layer(%d)", uint8(l))
}

// Corrupt breaks a roll forward at a layer. Other replies are left alone.
func Corrupt(l Layer) Fault {
	return func(r *Reply) {
		if r.Kind != RollForward {
			return
		}
		block := bytes.Clone(r.Block)
		forward := func(tag uint64, content []byte) []byte {
			b := wire.Uint(wire.Array(nil, 3), tagRollForward)
			return AppendTip(wire.Bytes(wire.Tag(b, tag), content), r.Tip)
		}
		switch l {
		case LayerSegment:
			r.Raw = []byte{0, 0, 0, 0, 0x80, 0x63, 0, 1, 0x80}
		case LayerEmpty:
			r.Raw = []byte{0, 0, 0, 0, 0x80, byte(ProtocolChainSync), 0, 0}
		case LayerMessage:
			r.Message = []byte{0xff, 0xfe, 0x1c, 0xff}
		case LayerItems:
			b := wire.Uint(wire.Array(nil, 4), tagRollForward)
			b = wire.Embedded(b, block)
			r.Message = wire.Uint(AppendTip(b, r.Tip), 0)
		case LayerKind:
			b := wire.Uint(wire.Array(nil, 3), 99)
			r.Message = AppendTip(wire.Embedded(b, block), r.Tip)
		case LayerWrapper:
			r.Message = forward(25, block)
		case LayerTrailing:
			r.Message = forward(24, append(block, 0))
		case LayerBlock:
			r.Message = forward(24, block[:len(block)*2/3])
		case LayerEra:
			block[1] = 0x17
			r.Message = forward(24, block)
		case LayerHeader:
			block[3] = 0x17
			r.Message = forward(24, block)
		case LayerBody:
			block[len(block)-min(len(block)/4, 40)] ^= 0x15
			r.Message = forward(24, block)
		case LayerTip:
			b := wire.Uint(wire.Array(nil, 3), tagRollForward)
			r.Message = wire.Text(wire.Embedded(b, block), "tip")
		}
	}
}

func isBoundary(raw []byte) bool { return len(raw) > 1 && raw[1] == 0 }

// Sequence lets each reply that a selector picks meet the next of some faults,
// and none when they are used up. A nil fault leaves a reply alone.
func Sequence(faults ...Fault) Fault {
	var mu sync.Mutex
	return func(r *Reply) {
		mu.Lock()
		var f Fault
		if len(faults) > 0 {
			f, faults = faults[0], faults[1:]
		}
		mu.Unlock()
		if f != nil {
			f(r)
		}
	}
}
