package hub

import (
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// Contents reads whole blocks of the hub's chain from wherever they are kept,
// so that the window need not hold them. It is called with no lock of the hub
// held, on the goroutine that subscribes, seeds or rolls back, so it must not
// wait for anything held around those calls. During a rollback it must still
// have the blocks that are being rolled back.
type Contents interface {
	// Block returns the block with exactly this point and height, or an error if
	// it is not there any more.
	Block(at chain.At) (*chain.AppliedBlock, error)
}

// load makes sure that the blocks which missing names have their contents. It
// is called with the mutex held and returns with it held, but releases it to
// read: whatever the caller has looked at before has to be looked at again.
func (h *Hub) load(missing func() []chain.At) error {
	if h.cfg.Contents == nil {
		return nil
	}
	for {
		want := missing()
		if len(want) == 0 {
			return nil
		}
		low := want[0].Height
		for _, at := range want {
			low = min(low, at.Height)
		}
		h.pins.add(low - 1) // what is read now is not to be dropped at once
		h.mu.Unlock()
		blocks := make([]*chain.AppliedBlock, 0, len(want))
		var err error
		for _, at := range want {
			var b *chain.AppliedBlock
			if b, err = h.cfg.Contents.Block(at); err != nil {
				err = fmt.Errorf("reading block %v: %w", at, err)
				break
			}
			blocks = append(blocks, b)
		}
		h.mu.Lock()
		h.pins.remove(low - 1)
		for _, b := range blocks {
			// A block that came back to the chain is known twice.
			if e := h.orphans[b.At.Point]; e != nil {
				e.b = b
			}
			if e := h.win.at(b.At.Height); e != nil && e.at == b.At {
				e.b = b
				h.win.thinned = min(h.win.thinned, b.At.Height-1)
			}
		}
		if err != nil {
			if e := h.find(want[len(blocks)]); e != nil && slices.Contains(missing(), e.at) {
				return err
			}
			// It is not needed any more: see what is.
		}
	}
}

// thinAbove names the blocks above a height, up to another, whose contents are
// not in the window.
func (h *Hub) thinAbove(low, high chain.Height) (out []chain.At) {
	for i := h.win.above(low); i < h.win.n; i++ {
		e := h.win.entry(i)
		if e.at.Height > high {
			break
		}
		if e.b == nil {
			out = append(out, e.at)
		}
	}
	return out
}

// keepAbove is the height above which contents are needed: those of blocks that
// somebody is still to be given, or that are just being read.
func (h *Hub) keepAbove() chain.Height {
	low := h.tip.Height
	for _, g := range h.groups {
		low = min(low, g.w)
	}
	for s := range h.held {
		low = min(low, h.gate(s.depth, s.w))
	}
	return h.pins.lowest(low)
}

// thin drops contents that nobody needs. With no Contents to read them from
// again, everything is kept.
func (h *Hub) thin() {
	if h.cfg.Contents == nil {
		return
	}
	low := h.keepAbove()
	for i := h.win.above(h.win.thinned); i < h.win.n; i++ {
		e := h.win.entry(i)
		if e.at.Height > low {
			break
		}
		h.win.drop(e, h.cfg.Capabilities.Kinds[Statuses])
		h.win.thinned = e.at.Height
	}
}
