package chainsync

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// window decides how many requests are outstanding. It opens by doubling with
// every answer that the node gave without hesitation, closes to one when the
// node says "await", and never asks for more blocks than there are up to the
// tip, as far as that can be told.
type window struct {
	max    int
	bytes  int  // Config.QueueBytes
	size   int  // requests that may be outstanding
	out    int  // requests outstanding
	awaits bool // the oldest of them has been answered by AwaitReply
	block  int  // estimate of a block's size in bytes: the recent largest, slowly forgotten
	ahead  int  // blocks from the last one to the tip, or negative if not known
}

func newWindow(cfg Config) window {
	return window{max: min(cfg.MaxInFlight, maxSegment/len(requestNext)), bytes: cfg.QueueBytes, size: 1, block: 32 << 10, ahead: -1}
}

// ask tells how many requests to send while queued bytes wait for Next, and
// counts them. Far from the tip it waits until half a window can be sent in
// one write.
func (w *window) ask(queued int) int {
	size := w.size
	if w.ahead >= 0 {
		size = min(size, max(w.ahead, 1))
	}
	size = min(size, (w.bytes-queued)/w.block)
	if size < 1 && queued == 0 {
		size = 1
	}
	if size < 1 || w.out > size/2 {
		return 0
	}
	n := size - w.out
	w.out = size
	return n
}

// owes tells whether the node has to answer without a new block being made.
func (w *window) owes() bool { return w.out > 0 && !w.awaits }

// answered counts an answer to a request, or refuses it.
func (w *window) answered(a *answer) error {
	switch {
	case w.out == 0:
		return fmt.Errorf("%w: %s unasked", ErrProtocol, answerName(a.tag))
	case a.tag == tagAwaitReply && w.awaits:
		return fmt.Errorf("%w: AwaitReply twice for one request", ErrProtocol)
	case a.tag == tagAwaitReply:
		w.awaits, w.size = true, 1
		return nil
	}
	if !w.awaits {
		w.size = min(2*w.size, w.max)
	}
	w.awaits = false
	w.out--
	w.block = max(len(a.msg.Raw)+512, w.block-w.block/32)
	if a.tag == tagRollBackward {
		w.ahead = -1
	}
	return nil
}

// at tells which block came last and where the tip is.
func (w *window) at(raw []byte, tip chain.Tip) {
	w.ahead = -1
	if h, ok := blockHeight(raw); ok {
		w.ahead = int(max(0, tip.Height-h))
	}
}
