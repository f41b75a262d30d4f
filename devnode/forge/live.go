package forge

import "github.com/ourotail/ourotail/chain"

// live is the set of unspent outputs at the forge's head, kept so that one can
// be picked at random or by age. Every change can be undone in reverse order,
// and an undone set is in the very order it had before: what is picked depends
// on the branch alone, not on the branches tried before.
type live struct {
	all      []*Output
	byHeight [][]*Output // index is height+1: genesis outputs come first
}

func (l *live) at(h chain.Height) []*Output {
	if i := int(h + 1); i >= 0 && i < len(l.byHeight) {
		return l.byHeight[i]
	}
	return nil
}

func (l *live) add(o *Output) {
	o.pos = len(l.all)
	l.all = append(l.all, o)
	h := int(o.Height + 1)
	for len(l.byHeight) <= h {
		l.byHeight = append(l.byHeight, nil)
	}
	o.hpos = len(l.byHeight[h])
	l.byHeight[h] = append(l.byHeight[h], o)
}

// remove takes an output out; the last one moves into its place.
func (l *live) remove(o *Output) {
	last := len(l.all) - 1
	moved := l.all[last]
	l.all[o.pos], moved.pos = moved, o.pos
	l.all = l.all[:last]
	h := int(o.Height + 1)
	list := l.byHeight[h]
	last = len(list) - 1
	hmoved := list[last]
	hpos := o.hpos
	list[hpos] = hmoved
	hmoved.hpos = hpos
	l.byHeight[h] = list[:last]
}

// removal remembers where a removed output lay.
type removal struct {
	out       *Output
	pos, hpos int
}

// restore undoes a removal.
func (l *live) restore(r removal) {
	put := func(list []*Output, i int) []*Output {
		if i == len(list) {
			return append(list, r.out)
		}
		moved := list[i]
		list = append(list, moved)
		list[i] = r.out
		return list
	}
	l.all = put(l.all, r.pos)
	l.all[len(l.all)-1].pos = len(l.all) - 1
	r.out.pos = r.pos
	h := int(r.out.Height + 1)
	l.byHeight[h] = put(l.byHeight[h], r.hpos)
	list := l.byHeight[h]
	list[len(list)-1].hpos = len(list) - 1
	r.out.hpos = r.hpos
}

// drop undoes an add: the output is the last of both lists.
func (l *live) drop(o *Output) {
	l.all = l.all[:len(l.all)-1]
	h := int(o.Height + 1)
	l.byHeight[h] = l.byHeight[h][:len(l.byHeight[h])-1]
}

// change is one step of the undo log: a removal, or an addition if removed is
// false.
type change struct {
	removal
	removed bool
}

func (l *live) undo(log []change) {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].removed {
			l.restore(log[i].removal)
		} else {
			l.drop(log[i].out)
		}
	}
}
