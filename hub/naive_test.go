package hub

import (
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// The naive hub: a list of blocks and a list of subscriptions, no index, no
// groups, no mailboxes, nothing done lazily. It says what each reader must get.

type naiveBlock struct {
	*chain.AppliedBlock
	parent chain.At
}

// naiveQuery is a query of any kind.
type naiveQuery struct {
	kind   Kind
	output query.UTxO
	tx     query.Tx
	block  query.Block
}

func (q naiveQuery) covered(c chain.Coverage) bool {
	switch q.kind {
	case UTxOs:
		return q.output.Covered(c)
	case Txs:
		return q.tx.Covered(c)
	}
	return q.block.Covered(c)
}

type naiveSub struct {
	naiveQuery
	events     Events
	depth      chain.Height
	noRollback bool
	idle       bool
	bound      int

	state   state
	why     string
	cursor  string // of an overflow
	lost    int
	w       chain.Height
	base    chain.At
	seeded  bool
	started bool
	held    bool
	heldAt  chain.At
	rows    []*chain.UTxO
	stale   bool

	box      []string // unread, one line each: the event, then its cursor
	fresh    []string // of the call being made
	unread   int      // of box, those that count towards the bound
	seedLeft int      // unread events of the seed
	last     string   // cursor of the last event read
}

type naiveHub struct {
	partial, idleOK         bool
	k, deepest, keep, first chain.Height
	genesis                 []*chain.UTxO
	blocks                  []naiveBlock
	floor, tip              chain.At
	highest                 chain.Height
	orphans                 map[chain.Point]naiveBlock
	subs                    []*naiveSub
	dead                    bool
}

func (h *naiveHub) at(height chain.Height) *naiveBlock {
	for i := range h.blocks {
		if h.blocks[i].At.Height == height {
			return &h.blocks[i]
		}
	}
	return nil
}

func (h *naiveHub) name(height chain.Height) (chain.At, bool) {
	switch b := h.at(height); {
	case height < 0:
		return chain.Origin, true
	case b != nil:
		return b.At, true
	case height == h.tip.Height:
		return h.tip, true
	case height == h.floor.Height:
		return h.floor, true
	}
	return chain.At{Height: height}, false
}

func (h *naiveHub) covered(s *naiveSub, from, to chain.Height) bool {
	for x := max(from, h.first); x <= to; x++ {
		if b := h.at(x); b == nil || !s.covered(b.Coverage) {
			return false
		}
	}
	return true
}

func (h *naiveHub) gate(depth, least chain.Height) chain.Height {
	g := max(h.tip.Height-depth, least, -1)
	if g < h.first {
		g = -1
	}
	return g
}

func (h *naiveHub) stamp(at chain.At) chain.At {
	if at.Height > h.highest-h.k {
		return at
	}
	return chain.Origin
}

func (s *naiveSub) cursor0(at chain.At, place int64) chain.Cursor {
	return chain.Cursor{At: at, Place: place, Base: s.base, HasBase: s.seeded}
}

func (s *naiveSub) emit(text string, c chain.Cursor) {
	s.fresh = append(s.fresh, text+" | "+c.String())
}

func (s *naiveSub) die(why string) {
	s.state, s.why, s.box, s.fresh, s.unread, s.seedLeft = dead, why, nil, nil, 0, 0
}

// finish ends one call on the hub: what it gave becomes visible, or overflows.
func (h *naiveHub) finish() {
	for _, s := range h.subs {
		n := 0
		for _, e := range s.fresh {
			if !isSeed(e) {
				n++
			}
		}
		switch {
		case s.state == dead && s.why != "closed", n == 0 && len(s.fresh) == 0:
		case s.bound > 0 && s.unread+n > s.bound:
			lost, cursor := len(s.box)+len(s.fresh), s.last
			if s.seedLeft+len(s.fresh)-n > 0 {
				cursor = ""
			}
			s.die("overflow")
			s.lost, s.cursor = lost, cursor
		default:
			s.box = append(s.box, s.fresh...)
			s.unread += n
			s.seedLeft += len(s.fresh) - n
		}
		s.fresh = nil
	}
	h.subs = slices.DeleteFunc(h.subs, func(s *naiveSub) bool { return s.state == dead })
}

func isSeed(e string) bool { return len(e) > 4 && e[:4] == "seed" }

// blockEvents are what a subscription sees of a block behind a place.
func (s *naiveSub) blockEvents(b *chain.AppliedBlock, behind int64) (texts []string, places []int64) {
	add := func(place int64, format string, args ...any) {
		texts, places = append(texts, fmt.Sprintf(format, args...)), append(places, place)
	}
	switch s.kind {
	case Blocks:
		if behind < 0 && s.block.Match(b.At.Point.Slot) {
			add(chain.WholeBlock, "applied %v", b.At)
		}
		return texts, places
	case Txs:
		for i := range b.Txs {
			if t := &b.Txs[i]; s.tx.Match(t) && int64(t.LastPlace()) > behind {
				add(int64(t.LastPlace()), "included %v %v", t.ID, b.At)
			}
		}
		return texts, places
	}
	var of []int
	for i, t := range b.Txs {
		for j, e := range t.Spent {
			if s.events != CreatedOnly && s.output.Match(e.UTxO) && int64(e.Place) > behind {
				add(int64(e.Place), "spent %v by %v valid=%v tx=%d index=%d %v", e.UTxO.Ref, t.ID, t.Valid, t.Index, j, b.At)
				of = append(of, i)
			}
		}
		for _, e := range t.Created {
			if s.events != SpentOnly && s.output.Match(e.UTxO) && int64(e.Place) > behind {
				add(int64(e.Place), "created %v by %v valid=%v tx=%d index=%d %v", e.UTxO.Ref, t.ID, t.Valid, t.Index, e.UTxO.Ref.Index, b.At)
				of = append(of, i)
			}
		}
	}
	for i := range texts {
		last := i == len(texts)-1
		texts[i] += fmt.Sprintf(" last=%v,%v", last || of[i+1] != of[i], last)
	}
	return texts, places
}

func (h *naiveHub) give(s *naiveSub, b *chain.AppliedBlock) {
	texts, places := s.blockEvents(b, chain.WholeBlock)
	for i := range texts {
		s.emit(texts[i], s.cursor0(b.At, places[i]))
	}
	if len(texts) == 0 && s.idle && h.idleOK {
		s.emit(fmt.Sprintf("idle %v", b.At), s.cursor0(b.At, chain.WholeBlock))
	}
}

// release gives what is due.
func (h *naiveHub) release(s *naiveSub) {
	for s.state == live {
		due := max(s.w+1, h.first)
		if due > h.tip.Height-s.depth {
			return
		}
		if !h.covered(s, due, due) {
			if s.started {
				s.die("gap")
				return
			}
			s.w = due
			continue
		}
		b := h.at(due)
		s.started = true
		s.w = due
		h.give(s, b.AppliedBlock)
		h.pass(s, b.At.Point.Slot)
	}
}

// pass ends a range of slots that has been passed.
func (h *naiveHub) pass(s *naiveSub, slot chain.Slot) {
	if s.kind == Blocks && s.block.Passed(slot) {
		s.state, s.why = dead, "closed"
	}
}

func (h *naiveHub) newSub(q naiveQuery, o Options) (*naiveSub, string) {
	if h.dead {
		return nil, "dead"
	}
	s := &naiveSub{naiveQuery: q, events: o.Events, depth: o.Confirmations, noRollback: o.NoRollback, idle: o.Idle, bound: max(o.Bound, 0), started: true}
	if o.NoRollback {
		s.depth = max(s.depth, h.k)
	}
	if s.depth > h.deepest {
		return nil, "depth"
	}
	return s, ""
}

func (s *naiveSub) emitSeed(h *naiveHub, rows []*chain.UTxO, at chain.At) {
	s.base, s.seeded = at, true
	for i, u := range rows {
		text := fmt.Sprintf("seed %v %v", u.Ref, h.stamp(norm(u.At)))
		if i < len(rows)-1 {
			s.fresh = append(s.fresh, text+" | ")
		} else {
			s.emit(text, s.cursor0(at, chain.WholeBlock))
		}
	}
}

func (h *naiveHub) subscribe(q naiveQuery, o Options) (*naiveSub, string) {
	s, why := h.newSub(q, o)
	if why != "" {
		return nil, why
	}
	created := q.kind == UTxOs && o.Events != SpentOnly
	if o.Start == Origin {
		if h.floor != chain.Origin {
			return nil, "older"
		}
		s.w = -1
		if created {
			var rows []*chain.UTxO
			for _, u := range h.genesis {
				if q.output.Match(u) {
					rows = append(rows, u)
				}
			}
			s.emitSeed(h, rows, chain.Origin)
		}
		h.subs = append(h.subs, s)
		h.release(s)
		return s, ""
	}
	s.w = h.gate(s.depth, -1)
	if s.w < h.floor.Height {
		return nil, "reach"
	}
	h.subs = append(h.subs, s)
	if !created || o.Seed == NoSeed {
		s.started = !h.partial
		if at, ok := h.name(s.w); ok && s.w >= 0 && h.at(s.w) != nil {
			h.pass(s, at.Point.Slot)
		}
		h.release(s)
		return s, ""
	}
	s.state = await
	if o.Seed == SeedNow {
		h.seed(s, h.tip, o.Rows)
	}
	return s, ""
}

func (h *naiveHub) seed(s *naiveSub, at chain.At, rows []*chain.UTxO) SeedResult {
	if s.state != await || s.held {
		return SeedIgnored
	}
	s.held, s.heldAt, s.rows = true, at, rows
	return h.trySeed(s)
}

func (h *naiveHub) trySeed(s *naiveSub) SeedResult {
	at := s.heldAt
	stale := func() SeedResult { s.held, s.stale = false, true; return SeedStale }
	if at.Height > h.tip.Height {
		if _, gone := h.orphans[at.Point]; gone {
			return stale()
		}
		return SeedHeld
	}
	if at.Height < h.floor.Height {
		s.die("resync")
		return SeedFatal
	}
	if n, ok := h.name(at.Height); !ok || n.Point != at.Point {
		return stale()
	}
	stands := at
	have := map[chain.TxIn]*chain.UTxO{}
	for _, u := range s.rows {
		have[u.Ref] = u
	}
	if gate := h.gate(s.depth, s.w); at.Height > gate {
		if gate < h.floor.Height {
			s.die("resync")
			return SeedFatal
		}
		if !h.covered(s, gate+1, at.Height) {
			return SeedHeld
		}
		for x := at.Height; x > gate; x-- {
			b := h.at(x)
			if b == nil {
				continue
			}
			for i := len(b.Txs) - 1; i >= 0; i-- {
				for _, e := range b.Txs[i].Created {
					delete(have, e.UTxO.Ref)
				}
				for _, e := range b.Txs[i].Spent {
					if s.output.Match(e.UTxO) {
						have[e.UTxO.Ref] = e.UTxO
					}
				}
			}
		}
		stands, _ = h.name(gate)
	}
	if !h.covered(s, stands.Height+1, h.tip.Height) {
		return stale()
	}
	s.held, s.state, s.w = false, live, stands.Height
	rows := make([]*chain.UTxO, 0, len(have))
	for _, u := range have {
		rows = append(rows, u)
	}
	s.emitSeed(h, rows, stands)
	h.release(s)
	return SeedTaken
}

func (h *naiveHub) after(q naiveQuery, o Options) (*naiveSub, string) {
	s, why := h.newSub(q, o)
	if why != "" {
		return nil, why
	}
	c := o.After
	if c.At.Height > h.highest-s.depth && c.At.Height >= 0 {
		return nil, "shallow"
	}
	common := c.At
	for {
		if n, ok := h.name(common.Height); ok && n.Point == common.Point && common.Height >= h.floor.Height && common.Height <= h.tip.Height {
			break
		}
		o, ok := h.orphans[common.Point]
		if !ok {
			return nil, "lost"
		}
		common = o.parent
	}
	if common != c.At && h.highest-common.Height > h.k {
		return nil, "lost"
	}
	if common != c.At && o.Start == After {
		return nil, "orphaned " + common.String()
	}
	s.seeded = c.HasBase && q.kind == UTxOs && o.Events != SpentOnly
	s.base, s.w = c.Base, common.Height
	if common != c.At {
		s.emit(fmt.Sprintf("rolledback %v from %v", common, c.At), s.cursor0(common, chain.WholeBlock))
	} else if c.Place >= 0 {
		b := h.at(c.At.Height)
		if b == nil || !s.covered(b.Coverage) {
			return nil, "lost"
		}
		texts, places := s.blockEvents(b.AppliedBlock, c.Place)
		for i := range texts {
			s.emit(texts[i], s.cursor0(c.At, places[i]))
		}
	}
	if s.seeded && c.Base.Height > common.Height {
		var owed []naiveBlock
		for below := c.Base; below.Height > common.Height; {
			b, ok := h.orphans[below.Point]
			if !ok {
				w := h.at(below.Height)
				if w == nil || w.At.Point != below.Point {
					return nil, "lost"
				}
				b = *w
			}
			owed = append(owed, b)
			below = b.parent
		}
		slices.Reverse(owed)
		if !h.correct(s, common, owed) {
			return nil, "lost"
		}
	}
	if h.partial {
		for x := s.w + 1; x <= max(s.w, h.tip.Height-s.depth); x++ {
			if b := h.at(x); b == nil || !s.covered(b.Coverage) {
				return nil, "lost"
			}
		}
	}
	h.subs = append(h.subs, s)
	if b := h.at(s.w); b != nil {
		h.pass(s, b.At.Point.Slot)
	}
	h.release(s)
	return s, ""
}

// correct gives back what the blocks, up to the base, spent of what existed at
// a point, and brings the base down to it.
func (h *naiveHub) correct(s *naiveSub, to chain.At, blocks []naiveBlock) bool {
	if h.partial {
		for x := to.Height + 1; x <= s.base.Height; x++ {
			if !slices.ContainsFunc(blocks, func(b naiveBlock) bool { return b.At.Height == x && s.covered(b.Coverage) }) {
				return false
			}
		}
	}
	for _, b := range blocks {
		for _, t := range b.Txs {
			for _, e := range t.Spent {
				if norm(e.UTxO.At).Height <= to.Height && s.output.Match(e.UTxO) {
					s.emit(fmt.Sprintf("correction %v %v to %v", e.UTxO.Ref, h.stamp(norm(e.UTxO.At)), to), s.cursor0(to, chain.WholeBlock))
				}
			}
		}
	}
	s.closeGroup(to)
	return true
}

// closeGroup gives the last event of a rollback and its corrections the base
// after it.
func (s *naiveSub) closeGroup(to chain.At) {
	if s.base.Height > to.Height {
		s.base = to
	}
	for i := len(s.fresh) - 1; i >= 0; i-- {
		if e := s.fresh[i]; e[0] == 'r' || e[:3] == "cor" {
			text := e[:len(e)-len(lastField(e))]
			s.fresh[i] = text + s.cursor0(to, chain.WholeBlock).String()
			return
		}
	}
}

func lastField(e string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if e[i] == ' ' {
			return e[i+1:]
		}
	}
	return e
}

func (h *naiveHub) apply(b *chain.AppliedBlock) string {
	if h.dead {
		return "dead"
	}
	if next := max(h.tip.Height+1, h.first); b.At.Height < next || !h.partial && b.At.Height != next {
		return "height"
	}
	h.blocks = append(h.blocks, naiveBlock{b, h.tip})
	h.tip, h.highest = b.At, max(h.highest, b.At.Height)
	low := h.highest - h.k - h.deepest
	for _, s := range h.subs {
		switch {
		case s.state == await && s.held:
			h.trySeed(s)
		case s.state == live:
			h.release(s)
		}
	}
	for _, s := range h.subs {
		if s.state == await {
			low = min(low, max(s.w, h.tip.Height-h.keep))
		}
	}
	for len(h.blocks) > 0 && h.blocks[0].At.Height <= low {
		h.floor = h.blocks[0].At
		h.blocks = h.blocks[1:]
	}
	for p, o := range h.orphans {
		if o.At.Height <= h.highest-h.k {
			delete(h.orphans, p)
		}
	}
	return ""
}

func (h *naiveHub) rollback(to chain.At) string {
	switch n, ok := h.name(to.Height); {
	case h.dead:
		return "dead"
	case to.Height > h.tip.Height:
		return "ahead"
	case h.highest-to.Height > h.k || to.Height < h.floor.Height:
		h.dead = true
		for _, s := range h.subs {
			s.die("resync")
		}
		return "resync"
	case ok && n.Point != to.Point:
		return "unknown"
	}
	var gone []naiveBlock
	for len(h.blocks) > 0 && h.blocks[len(h.blocks)-1].At.Height > to.Height {
		b := h.blocks[len(h.blocks)-1]
		gone = append([]naiveBlock{b}, gone...)
		h.blocks = h.blocks[:len(h.blocks)-1]
	}
	before := h.tip
	for _, s := range h.subs {
		if s.state == await {
			s.w = min(s.w, to.Height)
			continue
		}
		if s.state != live || s.w <= to.Height {
			continue
		}
		from := chain.At{Height: s.w}
		for _, b := range gone {
			if b.At.Height == s.w {
				from = b.At
			}
		}
		if s.w == before.Height {
			from = before
		}
		s.emit(fmt.Sprintf("rolledback %v from %v", to, from), s.cursor0(to, chain.WholeBlock))
		s.w = to.Height
		if s.seeded && s.base.Height > to.Height {
			under := slices.DeleteFunc(slices.Clone(gone), func(b naiveBlock) bool { return b.At.Height > s.base.Height })
			if !h.correct(s, to, under) {
				s.die("resync")
			}
		}
	}
	h.tip = to
	for _, b := range gone {
		h.orphans[b.At.Point] = b
	}
	for _, s := range h.subs {
		if s.state == await && s.held {
			h.trySeed(s)
		}
	}
	return ""
}
