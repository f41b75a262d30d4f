package ordeal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger/canon"
)

// walk checks a stream of whole blocks against the tree of all blocks there ever
// were: each must stand on the one before it and do what the oracle says, and
// what a rollback leaves must have been given. Whoever passes has been told each
// rollback before the first block of the new fork.
type walk struct {
	oracle *forge.Oracle
	path   []chain.At // where the stream began, then what was given and not taken back
	lines  []string   // of a block that is not whole yet

	blocks, rollbacks, effects int
	deepest                    chain.Height
}

func newWalk(o *forge.Oracle, from chain.At) *walk {
	return &walk{oracle: o, path: []chain.At{from}}
}

func (w *walk) at() chain.At { return w.path[len(w.path)-1] }

// line takes an effect of the block that comes to its end next.
func (w *walk) line(text string) { w.lines = append(w.lines, text) }

// end takes the end of a block.
func (w *walk) end(at chain.At) error {
	e, err := w.oracle.Effects(at.Point.Hash)
	if err != nil {
		return fmt.Errorf("a block that never was: %v", at)
	}
	if e.At() != at || e.Boundary {
		return fmt.Errorf("%v, which is %v (boundary block %t)", at, e.At(), e.Boundary)
	}
	below, err := w.below(e)
	if err != nil {
		return err
	}
	if below != w.at() {
		return fmt.Errorf("%v stands on %v, but the reader was told %v before it", at, below, w.at())
	}
	if want := e.EffectLines(); !slices.Equal(w.lines, want) {
		return fmt.Errorf("the effects of %v: %d lines, want %d: %s", at, len(w.lines), len(want), firstDifference(w.lines, want))
	}
	w.effects += len(w.lines)
	w.lines = w.lines[:0]
	w.path = append(w.path, at)
	w.blocks++
	return nil
}

// below returns the block under another as readers know it: boundary blocks are
// passed over.
func (w *walk) below(e *forge.Effects) (chain.At, error) {
	for {
		b, err := w.oracle.Effects(e.Parent)
		if err != nil || b.Point.IsOrigin() { // the first block names a parent that is no block
			if path, perr := w.oracle.Path(e.Point.Hash); perr != nil || len(path) > 1 {
				return chain.Origin, fmt.Errorf("%v has no parent: %w", e.At(), err)
			}
			return chain.Origin, nil
		}
		if !b.Boundary {
			return b.At(), nil
		}
		e = b
	}
}

// back takes a rollback: to what it leaves, and from where it was, if that is
// known.
func (w *walk) back(to chain.At, from *chain.At) error {
	if len(w.lines) > 0 {
		return fmt.Errorf("rolled back to %v in the middle of a block", to)
	}
	if from != nil && *from != w.at() {
		return fmt.Errorf("rolled back to %v from %v, but the reader stood at %v", to, *from, w.at())
	}
	i := slices.Index(w.path, to)
	switch {
	case i == len(w.path)-1:
		return fmt.Errorf("rolled back to %v, where the reader stood", to)
	case i < 0 && to.Height >= w.path[0].Height:
		return fmt.Errorf("rolled back to %v, which was never given", to)
	case i < 0: // below where the stream began
		path, err := w.oracle.Path(w.path[0].Point.Hash)
		if err != nil {
			return err
		}
		if !to.IsOrigin() && !slices.ContainsFunc(path, func(l chain.Link) bool { return l.At() == to }) {
			return fmt.Errorf("rolled back to %v, which does not lie below %v", to, w.path[0])
		}
	}
	w.deepest = max(w.deepest, w.at().Height-to.Height)
	w.rollbacks++
	if i < 0 {
		w.path = append(w.path[:0], to)
	} else {
		w.path = w.path[:i+1]
	}
	return nil
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return "missing is " + want[i]
		case i >= len(want):
			return "too many is " + got[i]
		case got[i] != want[i]:
			return "got " + got[i] + ", want " + want[i]
		}
	}
	return "none"
}

// utxo takes an event of a subscription for all outputs with idle blocks.
func (w *walk) utxo(e *chain.UTxOEvent) error {
	switch {
	case e.Kind == chain.RolledBack:
		return w.back(e.At, e.Mark)
	case e.Kind == chain.Idle:
		return w.end(e.At)
	case e.Because != chain.Live:
		return nil
	}
	w.line(effectLine(e.Kind, e.UTxO, e.Tx))
	if e.LastOfBlock {
		return w.end(e.At)
	}
	return nil
}

// tx takes an event of a subscription for all transactions; blocks without any
// are idle.
func (w *walk) tx(e *chain.TxEvent) error {
	switch e.Kind {
	case chain.RolledBack:
		return w.back(e.At, e.Mark)
	case chain.Idle:
		return w.end(e.At)
	}
	w.applied(e.Tx)
	if e.LastOfBlock {
		return w.end(e.At)
	}
	return nil
}

// block takes an event of a subscription for all blocks.
func (w *walk) block(e *chain.BlockEvent) error {
	if e.Kind == chain.RolledBack {
		return w.back(e.At, e.Mark)
	}
	for i := range e.Block.Txs {
		w.applied(&e.Block.Txs[i])
	}
	return w.end(e.At)
}

func (w *walk) applied(tx *chain.AppliedTx) {
	for _, e := range tx.Spent {
		w.line(effectLine(chain.Spent, e.UTxO, tx.ID))
	}
	for _, e := range tx.Created {
		w.line(effectLine(chain.Created, e.UTxO, tx.ID))
	}
}

func effectLine(kind chain.EventKind, u *chain.UTxO, tx chain.TxID) string {
	if kind == chain.Spent {
		return string(canon.AppendSpent(nil, u.Ref, &u.Out, tx))
	}
	return string(canon.AppendCreated(nil, u.Ref, &u.Out))
}

// written takes a line of a child process: an effect, the end of a block, a
// rollback.
func (w *walk) written(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "+", "-":
		w.line(line)
		return nil
	case "block", "back":
		at, err := parseAt(rest)
		if err != nil {
			return err
		}
		if kind == "back" {
			return w.back(at, nil)
		}
		return w.end(at)
	}
	return fmt.Errorf("the child wrote %q", line)
}

// parseAt reads what At.String writes.
func parseAt(text string) (chain.At, error) {
	c, err := chain.ParseCursor(text)
	return c.At, err
}
