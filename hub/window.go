package hub

import (
	"iter"
	"sort"

	"github.com/ourotail/ourotail/chain"
)

// entry is a block of the window. Its contents are dropped (b is nil) where
// only its name is needed.
type entry struct {
	at, parent chain.At
	cov        chain.Coverage
	b          *chain.AppliedBlock
	marks      []txMark // its transactions, once b is dropped
}

// txMark is what the window keeps of a transaction in any case.
type txMark struct {
	id    chain.TxID
	valid bool
}

func (m txMark) status(at chain.At) TxStatus {
	s := TxStatus{ID: m.id, State: TxConfirmed, At: at}
	if !m.valid {
		s.State = TxFailed
	}
	return s
}

// txs yields the transactions of a block.
func (e *entry) txs() iter.Seq2[int, txMark] {
	return func(yield func(int, txMark) bool) {
		if e.b == nil {
			for i, m := range e.marks {
				if !yield(i, m) {
					return
				}
			}
			return
		}
		for i := range e.b.Txs {
			if !yield(i, txMark{e.b.Txs[i].ID, e.b.Txs[i].Valid}) {
				return
			}
		}
	}
}

// window holds the blocks from just above the floor to the tip, oldest first.
// A partial provider may leave heights out.
type window struct {
	floor chain.At // just below the oldest block held
	buf   []entry  // ring; its length is a power of two, or 0
	head  int
	n     int
	// Blocks at or below thinned have no contents.
	thinned chain.Height
	spare   []txMark // of a block that was dropped, for the next
}

func (w *window) entry(i int) *entry { return &w.buf[(w.head+i)&(len(w.buf)-1)] }

// at returns the block at a height, or nil.
func (w *window) at(h chain.Height) *entry {
	if w.n == 0 {
		return nil
	}
	// Without holes it is where the height says.
	if i := int(h - w.entry(0).at.Height); i >= 0 && i < w.n && w.entry(i).at.Height == h {
		return w.entry(i)
	}
	i := w.above(h - 1)
	if i < w.n && w.entry(i).at.Height == h {
		return w.entry(i)
	}
	return nil
}

// above returns the position of the first block higher than h.
func (w *window) above(h chain.Height) int {
	return sort.Search(w.n, func(i int) bool { return w.entry(i).at.Height > h })
}

func (w *window) push(e entry) {
	if w.n == len(w.buf) {
		buf := make([]entry, max(8, 2*len(w.buf)))
		for i := range w.n {
			buf[i] = *w.entry(i)
		}
		w.buf, w.head = buf, 0
	}
	w.n++
	*w.entry(w.n - 1) = e
}

// dropOldest removes the oldest block, which becomes the floor.
func (w *window) dropOldest() {
	e := w.entry(0)
	w.floor = e.at
	if cap(e.marks) > cap(w.spare) {
		w.spare = e.marks[:0]
	}
	*e = entry{}
	w.head = (w.head + 1) & (len(w.buf) - 1)
	w.n--
}

// dropNewest removes and returns the newest block.
func (w *window) dropNewest() entry {
	e := w.entry(w.n - 1)
	out := *e
	*e = entry{}
	w.n--
	w.thinned = min(w.thinned, out.at.Height-1)
	return out
}

// drop lets go of a block's contents; with marks, all but its transactions'
// names.
func (w *window) drop(e *entry, marks bool) {
	if e.b == nil {
		return
	}
	if marks {
		e.marks, w.spare = w.spare[:0], nil
		for i := range e.b.Txs {
			e.marks = append(e.marks, txMark{e.b.Txs[i].ID, e.b.Txs[i].Valid})
		}
	}
	e.b = nil
}

func (w *window) reset(floor chain.At) { *w = window{floor: floor, thinned: floor.Height} }
