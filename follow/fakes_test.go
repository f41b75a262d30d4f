package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// fakeNode is a node's chain and how its connections misbehave.
type fakeNode struct {
	blocks []forge.Block
	tip    *chain.Tip // if set, what it says of its tip
	run    int        // messages per Next; 0 for 3
	cut    int        // messages after which a connection breaks; 0 for never
	change func(m *chain.Message)
	dials  int
}

var errCut = errors.New("the connection broke")

func (n *fakeNode) Tip() chain.Tip {
	switch {
	case n.tip != nil:
		return *n.tip
	case len(n.blocks) == 0:
		return chain.Origin
	}
	return n.blocks[len(n.blocks)-1].At()
}

func (n *fakeNode) find(p chain.Point) int { // number of blocks up to and with p, or -1
	if p.IsOrigin() {
		return 0
	}
	for i, b := range n.blocks {
		if b.Point == p {
			return i + 1
		}
	}
	return -1
}

func (n *fakeNode) dial(context.Context) (Conn, error) {
	n.dials++
	return &fakeConn{n: n, left: n.cut, back: true}, nil
}

// fakeConn serves chain-sync from a node, or a script.
type fakeConn struct {
	n      *fakeNode
	at     int  // blocks the client has
	back   bool // the roll backward that follows an intersection is owed
	left   int
	script [][]chain.Message
}

func (c *fakeConn) Close() error { return nil }

func (c *fakeConn) Intersect(_ context.Context, points []chain.Point) (chain.Point, bool, chain.Tip, error) {
	for _, p := range points {
		if i := c.n.find(p); i >= 0 {
			c.at, c.back = i, true
			return p, true, c.n.Tip(), nil
		}
	}
	return chain.Point{}, false, c.n.Tip(), nil
}

func (c *fakeConn) Next(ctx context.Context) (chain.Messages, error) {
	var out []chain.Message
	var slab []byte
	run := c.n.run
	if run == 0 {
		run = 3
	}
	if len(c.script) > 0 {
		out, c.script = c.script[0], c.script[1:]
	} else {
		for len(out) < run {
			if c.n.cut > 0 {
				if c.left == 0 {
					break
				}
				c.left--
			}
			m := chain.Message{Tip: c.n.Tip()}
			switch {
			case c.back:
				m.Kind, c.back = chain.RollBackward, false
				if c.at > 0 {
					m.Point = c.n.blocks[c.at-1].Point
				}
			case c.at < len(c.n.blocks):
				m.Raw = c.n.blocks[c.at].Raw
				c.at++
			default:
				m.Kind = chain.AwaitReply
			}
			out = append(out, m)
			if m.Kind == chain.AwaitReply {
				break
			}
		}
	}
	if len(out) == 0 {
		if c.n.cut > 0 {
			return chain.Messages{}, errCut
		}
		<-ctx.Done()
		return chain.Messages{}, ctx.Err()
	}
	for i := range out { // like a slab: overwritten once it is released
		start := len(slab)
		slab = append(slab, out[i].Raw...)
		out[i].Raw = slab[start:len(slab):len(slab)]
	}
	for i, off := 0, 0; i < len(out); i++ {
		n := len(out[i].Raw)
		out[i].Raw = slab[off : off+n : off+n]
		off += n
		if c.n.change != nil {
			c.n.change(&out[i])
		}
	}
	return chain.Messages{List: out, Release: func() {
		for i := range slab {
			slab[i] = 0xee
		}
	}}, nil
}

// fakeStore is a plain list of what each block did.
type fakeStore struct {
	untidy    int // blocks appended since the last Tidy
	appended  int
	onTidy    func()
	tidyFails error
	set       map[chain.TxIn]chain.Output
	blocks    []*chain.Effects
	highest   chain.Height
	floor     chain.At
	k         chain.Height
	commits   []int // blocks of each
	gathers   int
	hidden    int    // newest blocks that are not on disk
	fail      error  // of the next Commit or Rollback
	unread    error  // of Outputs
	halfway   int    // blocks that a failing Rollback undoes before
	undoing   func() // called there
}

func newFakeStore(k chain.Height, genesis []chain.Output) *fakeStore {
	s := &fakeStore{set: map[chain.TxIn]chain.Output{}, highest: chain.OriginHeight, floor: chain.Origin, k: k}
	for _, o := range genesis {
		s.set[o.Ref] = o
	}
	return s
}

func (s *fakeStore) Outputs(want []*chain.Output) (int, error) {
	if s.unread != nil {
		return -1, s.unread
	}
	for i, w := range want {
		o, ok := s.set[w.Ref]
		if !ok {
			return i, nil
		}
		o.Raw = bytes.Clone(o.Raw)
		*w = o
	}
	return -1, nil
}

func (s *fakeStore) Head() chain.Link {
	if len(s.blocks) == s.hidden {
		return chain.Link{Height: chain.OriginHeight}
	}
	return s.blocks[len(s.blocks)-s.hidden-1].Link
}

// Gather shows nothing of the blocks before a flush, which now and then is its own.
func (s *fakeStore) Gather(blocks []*chain.Effects) error {
	hidden := s.hidden
	if err := s.Commit(blocks); err != nil {
		return err
	}
	s.gathers++
	if s.gathers%5 > 0 {
		s.hidden = hidden + len(blocks)
	}
	return nil
}

func (s *fakeStore) Flush() error {
	s.hidden = 0
	return s.fail
}

func (s *fakeStore) Highest() chain.Height { return s.highest }
func (s *fakeStore) Floor() chain.At       { return s.floor }

func (s *fakeStore) Links(n int) (links []chain.Link, whole bool, err error) {
	for _, b := range s.blocks[max(0, len(s.blocks)-n):] {
		links = append(links, b.Link)
	}
	return links, len(links) == len(s.blocks), nil
}

func (s *fakeStore) LinkAt(p chain.Position) (chain.Link, bool, error) {
	for _, b := range s.blocks {
		if b.Position() == p {
			return b.Link, true, nil
		}
	}
	return chain.Link{}, false, nil
}

func (s *fakeStore) Live(refs []chain.TxIn) (live []chain.TxIn, err error) {
	for _, r := range refs {
		if _, ok := s.set[r]; ok {
			live = append(live, r)
		}
	}
	return live, nil
}

func (s *fakeStore) Append(block *chain.Effects) error {
	s.untidy++
	s.appended++
	return s.Commit([]*chain.Effects{block})
}

func (s *fakeStore) Tidy() error {
	s.untidy = 0
	if s.onTidy != nil {
		s.onTidy()
	}
	return s.tidyFails
}

func (s *fakeStore) Commit(blocks []*chain.Effects) error {
	if s.fail != nil {
		return s.fail
	}
	s.hidden = 0
	s.commits = append(s.commits, len(blocks))
	for _, e := range blocks {
		c := &chain.Effects{Link: e.Link, Raw: bytes.Clone(e.Raw), Txs: slices.Clone(e.Txs), Spent: slices.Clone(e.Spent), Created: slices.Clone(e.Created), Journal: e.Journal}
		for _, list := range [][]chain.Output{c.Spent, c.Created} {
			for i := range list {
				list[i].Raw = bytes.Clone(list[i].Raw)
			}
		}
		for _, o := range c.Created {
			s.set[o.Ref] = o
		}
		for _, o := range c.Spent {
			if _, ok := s.set[o.Ref]; !ok {
				return fmt.Errorf("block %s spends %s, which is not there", e.At(), o.Ref)
			}
			delete(s.set, o.Ref)
		}
		s.blocks = append(s.blocks, c)
		s.highest = max(s.highest, c.Height)
		if !c.Journal {
			s.floor = c.At()
		}
	}
	return nil
}

func (s *fakeStore) Rollback(ctx context.Context, to chain.Point) error {
	undone := 0
	for s.Head().Point != to {
		if s.undoing != nil && undone == s.halfway {
			s.undoing()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.fail != nil && undone == s.halfway {
			return s.fail
		}
		if len(s.blocks) == 0 {
			return errors.New("no such point")
		}
		e := s.blocks[len(s.blocks)-1]
		if !e.Journal {
			return fmt.Errorf("block %s has no record", e.At())
		}
		for _, o := range e.Spent {
			s.set[o.Ref] = o
		}
		for _, o := range e.Created {
			delete(s.set, o.Ref)
		}
		s.blocks = s.blocks[:len(s.blocks)-1]
		undone++
	}
	return nil
}

// fakeHub keeps the blocks it was shown, in two halves.
type fakeHub struct {
	subs     int
	buffered []chain.At // the chain as buffered
	shown    []chain.At // and as flushed
	events   []string
	failed   error
}

func (h *fakeHub) BufferBlock(b *chain.AppliedBlock) (func(), error) {
	h.buffered = append(h.buffered, b.At)
	at := b.At
	return func() {
		h.shown = append(h.shown, at)
		h.events = append(h.events, "+"+fmt.Sprint(at.Height))
	}, nil
}

func (h *fakeHub) Pass(at chain.At, _ []chain.TxEffects) (bool, func(), error) {
	if h.subs > 0 {
		return false, func() {}, nil
	}
	fl, err := h.BufferBlock(&chain.AppliedBlock{At: at})
	return true, fl, err
}

func (h *fakeHub) BufferRollback(to chain.At) (func(), error) {
	cut := func(l []chain.At) []chain.At {
		for len(l) > 0 && l[len(l)-1].Height > to.Height {
			l = l[:len(l)-1]
		}
		return l
	}
	h.buffered = cut(h.buffered)
	if n := len(h.buffered); n > 0 && h.buffered[n-1] != to || n == 0 && !to.IsOrigin() {
		return nil, fmt.Errorf("rollback to %v, which is not on the hub's chain", to)
	}
	return func() {
		h.shown = cut(h.shown)
		h.events = append(h.events, "!"+fmt.Sprint(to.Height))
	}, nil
}

func (h *fakeHub) Skip(tip chain.At) {
	h.buffered = append(h.buffered, tip)
	h.shown = append(h.shown, tip)
}
func (h *fakeHub) Subscribers() int    { return h.subs }
func (h *fakeHub) FailAll(cause error) { h.failed = cause }

// agrees compares the store with the forge's ledger at its head.
func (s *fakeStore) agrees(o *forge.Oracle) error {
	want, err := o.Set(s.Head().Point.Hash)
	if err != nil {
		return err
	}
	if len(want) != len(s.set) {
		return fmt.Errorf("%d outputs, want %d", len(s.set), len(want))
	}
	for ref, w := range want {
		got, ok := s.set[ref]
		if !ok || got.Lovelace != w.Lovelace || w.Raw != nil && !bytes.Equal(got.Raw, w.Raw) {
			return fmt.Errorf("output %s: %+v", ref, got)
		}
	}
	return nil
}

func keysOf[K comparable, V any](m map[K]V) []K { return slices.Collect(maps.Keys(m)) }
