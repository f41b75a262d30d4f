package hub

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// posting is one key of one subscription, in the list of those that share it.
type posting struct {
	sub        *sub
	next, prev *posting
	key        string
	kind       uint8
}

// index finds subscriptions by key: kind 0 is everything, the others are those
// of chain.SourceKind or query.TxKeyKind.
type index struct {
	heads [8]map[string]*posting
	kinds query.Kinds // those of which there are any
	all   *posting
}

func (x *index) add(p *posting) {
	if p.kind == 0 {
		p.next = x.all
		x.all = p
	} else {
		m := x.heads[p.kind]
		if m == nil {
			m = make(map[string]*posting)
			x.heads[p.kind] = m
		}
		p.next = m[p.key]
		m[p.key] = p
		x.kinds |= 1 << p.kind
	}
	if p.next != nil {
		p.next.prev = p
	}
}

func (x *index) remove(p *posting) {
	if p.next != nil {
		p.next.prev = p.prev
	}
	switch {
	case p.prev != nil:
		p.prev.next = p.next
	case p.kind == 0:
		x.all = p.next
	case p.next != nil:
		x.heads[p.kind][p.key] = p.next
	default:
		m := x.heads[p.kind]
		delete(m, p.key)
		if len(m) == 0 {
			x.heads[p.kind] = nil
			x.kinds &^= 1 << p.kind
		}
	}
	p.next, p.prev = nil, nil
}

// find returns the first subscription under a key.
func (x *index) find(kind uint8, key []byte) *posting { return x.heads[kind][string(key)] }

// sources adds the sources under which anybody is found.
func (x *index) sources(into map[chain.Source]struct{}) {
	if x.all.anyAlive() {
		into[chain.Source{}] = struct{}{}
	}
	for kind, m := range x.heads {
		for key, p := range m {
			if p.anyAlive() {
				into[chain.Source{Kind: chain.SourceKind(kind), Key: key}] = struct{}{}
			}
		}
	}
}

// anyAlive tells whether any subscription in a list is alive: keys of dead ones
// may still have to be swept out.
func (p *posting) anyAlive() bool {
	for ; p != nil; p = p.next {
		if p.sub.state != dead {
			return true
		}
	}
	return false
}
