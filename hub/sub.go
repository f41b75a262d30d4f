package hub

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// state of a subscription.
type state uint8

const (
	live  state = iota
	await       // its seed is not in yet
	dead
)

// sub is what the hub knows of one subscription for outputs, transactions or
// blocks. The hub's mutex guards it.
type sub struct {
	hub   *Hub
	typed typed // the subscription this is a part of

	list       *subList // the one it is in; nil for a group member, whose list its group knows
	next, prev *sub

	group *group // of a live one, unless the provider is partial
	w     chain.Height
	depth chain.Height
	base  *chain.At // where its view starts; nil if it has no seed

	first posting  // its sub is nil if the query has no keys: it wants nothing
	more  *keys    // its other keys; nil if it has no more
	wait  *waiting // of one whose seed is not in

	mark       uint64 // the last effect it was matched with
	head, tail int32  // its hits, 1-based; 0 for none

	kind       Kind
	state      state
	want       uint8
	exact      bool // a key decides; no need to match
	noRollback bool
	idle       bool
	started    bool // false: it begins at the first height that covers it
	corr       bool // takes part in the corrections being collected
}

// waiting is what is known of a seed that is not in yet.
type waiting struct {
	at    chain.At
	rows  []*chain.UTxO
	held  bool // came, but has to wait
	stale func()
}

// typed is the part of a subscription that depends on its kind. Events are
// gathered by the add methods and offered together by commit; only one
// subscription gathers at a time. All are called under the hub's mutex.
type typed interface {
	covered(chain.Coverage) bool
	// addBlock adds what the query sees of a block behind the place and tells how
	// many events that was.
	addBlock(b *chain.AppliedBlock, behind int64) int
	// addHits adds what the index has found.
	addHits(at chain.At, hits []hit) int
	addIdle(at chain.At)
	addRollback(to chain.At, from *chain.At)
	// closeGroup gives the last event of a rollback and its corrections the base
	// that the reader has after it (contract 5.2).
	closeGroup()
	commit()
	discard()
	// passed tells that no block above the slot can be wanted.
	passed(chain.Slot) bool

	mail() mail
}

// mail is what the hub does to a mailbox of any kind beside offering to it.
type mail interface {
	Flush()
	FailBuffered(error)
	CloseBuffered()
}

// subList is a list of subscriptions, linked through themselves.
type subList struct {
	first, last *sub
	n           int
}

func (l *subList) add(s *sub) {
	s.prev, s.next = l.last, nil
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
	l.n++
}

func (l *subList) remove(s *sub) {
	if s.prev == nil {
		l.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	l.n--
}

// join appends all of another list, which is empty afterwards.
func (l *subList) join(o *subList) {
	if o.first == nil {
		return
	}
	if l.last == nil {
		*l = *o
	} else {
		l.last.next, o.first.prev = o.first, l.last
		l.last = o.last
		l.n += o.n
	}
	*o = subList{}
}

// group is the live subscriptions of one depth that stand at one height, under
// a complete provider. Two groups that come to stand at the same height become
// one: the absorbed one points to the other.
type group struct {
	depth, w  chain.Height
	parent    *group
	members   subList
	releasing bool
}

// root returns the group that a group has become, shortening the way.
func (g *group) root() *group {
	r := g
	for r.parent != nil {
		r = r.parent
	}
	for g.parent != nil {
		g.parent, g = r, g.parent
	}
	return r
}

// watermark is the height up to which the subscription was given everything.
func (s *sub) watermark() chain.Height {
	if s.group != nil {
		return s.group.root().w
	}
	return s.w
}

// joinGroup puts a live subscription that stands at s.w into its group.
func (h *Hub) joinGroup(s *sub) {
	for _, g := range h.groups {
		if g.depth == s.depth && g.w == s.w {
			s.group = g
			g.members.add(s)
			return
		}
	}
	g := &group{depth: s.depth, w: s.w}
	h.groups = append(h.groups, g)
	s.group = g
	g.members.add(s)
}

// mergeGroups joins groups of one depth that stand at one height.
func (h *Hub) mergeGroups() {
	kept := h.groups[:0]
next:
	for _, g := range h.groups {
		for _, k := range kept {
			if k.depth == g.depth && k.w == g.w {
				k.members.join(&g.members)
				g.parent = k
				continue next
			}
		}
		kept = append(kept, g)
	}
	clear(h.groups[len(kept):])
	h.groups = kept
}

// enlist puts a live subscription where it belongs.
func (h *Hub) enlist(s *sub) {
	if h.cfg.Capabilities.Partial {
		s.list = &h.loose
		h.loose.add(s)
	} else {
		h.joinGroup(s)
	}
	if s.idle {
		h.idlers[s] = struct{}{}
	}
}

// delist takes it out of there again, or from among those that wait.
func (h *Hub) delist(s *sub) {
	switch {
	case s.group != nil:
		g := s.group.root()
		s.w, s.group = g.w, nil
		if g.members.remove(s); g.members.n == 0 {
			i := slices.Index(h.groups, g)
			h.groups = slices.Delete(h.groups, i, i+1)
		}
	case s.list != nil:
		if s.list == &h.await {
			h.awaiting.remove(s.w)
		}
		s.list.remove(s)
		s.list = nil
	}
	delete(h.idlers, s)
}

// drop ends a subscription's part in the hub. Its mailbox is the caller's
// affair.
func (h *Hub) drop(s *sub) {
	if s.state == dead {
		return
	}
	h.delist(s)
	if s.first.sub != nil {
		h.index[s.kind].remove(&s.first)
	}
	if s.more == nil || s.more.entered <= keyChunk {
		h.leaveIndex(s)
	} else {
		h.later = append(h.later, func() { h.sweep(s) })
	}
	delete(h.held, s)
	s.state, s.wait = dead, nil
	h.count--
}

// keyChunk is how many keys enter or leave the index at a time: nobody waits
// for the mutex while a query of a hundred thousand addresses comes or goes.
const keyChunk = 512

// keys are the keys of a query beyond its first.
type keys struct {
	postings []posting
	entered  int // of them, those in the index
}

// addKey gives a subscription one more key.
func (s *sub) addKey(kind uint8, key string) {
	if s.first.sub == nil {
		s.first = posting{sub: s, kind: kind, key: key}
		return
	}
	if s.more == nil {
		s.more = &keys{}
	}
	s.more.postings = append(s.more.postings, posting{sub: s, kind: kind, key: key})
}

// enterIndex enters up to a chunk of a subscription's keys and tells whether
// any are left.
func (h *Hub) enterIndex(s *sub) bool {
	k := s.more
	if k == nil {
		return false
	}
	for end := min(k.entered+keyChunk, len(k.postings)); k.entered < end; k.entered++ {
		h.index[s.kind].add(&k.postings[k.entered])
	}
	return k.entered < len(k.postings)
}

// leaveIndex takes up to a chunk of a subscription's keys out again and tells
// whether any are left.
func (h *Hub) leaveIndex(s *sub) bool {
	k := s.more
	if k == nil {
		return false
	}
	for end := max(k.entered-keyChunk, 0); k.entered > end; {
		k.entered--
		h.index[s.kind].remove(&k.postings[k.entered])
	}
	if k.entered == 0 {
		s.more = nil
	}
	return k.entered > 0
}

// sweep takes the keys of a subscription that is dead, or never came to life,
// out of the index. Until it is done matching passes them over.
func (h *Hub) sweep(s *sub) {
	for more := true; more; {
		h.mu.Lock()
		more = h.leaveIndex(s)
		h.mu.Unlock()
	}
}

// kill ends a subscription with a failure.
func (h *Hub) kill(s *sub, cause error) {
	h.drop(s)
	s.typed.mail().FailBuffered(cause)
	h.touch(s)
}

// touch has a mailbox flushed when the mutex is released.
func (h *Hub) touch(s *sub) { h.out = append(h.out, s.typed.mail()) }
