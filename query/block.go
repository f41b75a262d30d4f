package query

import (
	"strconv"

	"github.com/ourotail/ourotail/chain"
)

// Block says which blocks are wanted: those in a range of slots, both ends
// included (contract 4.3). The zero value wants all of them.
type Block struct {
	limited  bool
	from, to chain.Slot // to 0 with limited means no end
	open     bool
}

// EveryBlock wants all blocks.
func EveryBlock() Block { return Block{} }

// Slots wants the blocks from one slot to another, both included.
func Slots(from, to chain.Slot) Block { return Block{limited: true, from: from, to: to} }

// SlotsFrom wants the blocks from a slot on.
func SlotsFrom(from chain.Slot) Block { return Block{limited: true, from: from, open: true} }

// Match tells whether a block at the slot is wanted.
func (q Block) Match(s chain.Slot) bool {
	return !q.limited || s >= q.from && (q.open || s <= q.to)
}

// Passed tells whether no block above the slot can be wanted (contract 3.13).
func (q Block) Passed(s chain.Slot) bool { return q.limited && !q.open && s >= q.to }

// Covered tells whether a block of such a coverage answers the query: only if
// the whole block was seen (contract 1.3).
func (q Block) Covered(c chain.Coverage) bool { return c.Complete }

// String returns the query's text; ParseBlock reads it back.
func (q Block) String() string {
	if !q.limited {
		return "*"
	}
	s := "slots:" + strconv.FormatUint(uint64(q.from), 10) + ".."
	if !q.open {
		s += strconv.FormatUint(uint64(q.to), 10)
	}
	return s
}
