package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// Far from the tip most outputs are spent soon after they were made. So blocks
// there are gathered: what they make and spend is kept in memory until it has
// grown to a part of what the store may use, and then flushed, all at once. An
// output that was made and spent between two flushes never touches the disk.
// Until then the head, and all that anybody else can see, stays where it was; a
// kill costs some seconds' work.
type gathered struct {
	head  head         // after the newest block gathered
	any   bool         // a block is; none is the ordinary case
	links []chain.Link // of the newest, oldest first, not yet packed
	made  refTable     // outputs that they made and that are unspent, as in the database
	dead  refTable     // outputs of the database that they spent; without values
	more  opset        // packs of links, and what an archive keeps of spent outputs
	began time.Time
}

// Bounds of what is gathered, in time and in parts of Options.Memory.
const (
	gatherTime = 10 * time.Second
	gatherPart = 8
)

var errGatherJournal = errors.New("a block with a record cannot be gathered")

// Gather takes blocks, oldest first, that follow the newest one taken, gathered
// or committed, and are resolved. Unlike Commit it need not write them: that is
// left to a later Gather, to Flush, or to any other method that writes. Where
// there is something to undo or to index it is Commit.
//
// The blocks, their lists and bytes are only read, and not after it returned.
func (s *Store) Gather(blocks []*chain.Effects) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if !s.gathered.any && !s.gathers() {
		return s.commit(blocks)
	}
	g := &s.gathered
	if !g.any {
		g.head, g.began = s.head, time.Now()
	}
	below := g.head.link
	for _, e := range blocks {
		if !follows(below, e.Link) {
			return fmt.Errorf("%w: %s with parent %s, newest %s", ErrNotNext, e.At(), e.Parent, below.At())
		}
		if e.Journal {
			return fmt.Errorf("%w: %s", errGatherJournal, e.At())
		}
		below = e.Link
	}
	for _, e := range blocks {
		if err := g.block(e, s.opts.Archive); err != nil {
			return s.broke(fmt.Errorf("block %s: %w", e.At(), err))
		}
	}
	s.endLookups()
	if g.full(s.gatherMax()) || time.Since(g.began) > gatherTime {
		return s.flush()
	}
	return nil
}

func (s *Store) gatherMax() int {
	if s.opts.memTable != 0 {
		return 2 * tableChunk // once both tables are in use
	}
	return int(s.opts.Memory / gatherPart)
}

// gathers tells whether the store is in the plain state in which blocks can be
// gathered: no journal, nothing to sweep, no indexes.
func (s *Store) gathers() bool {
	return s.head.index == indexNone && s.head.marks == 0 && len(s.links) == 1 && len(s.orphans) == 0 &&
		s.head.swept == s.head.base.Position() && s.head.link == s.head.base
}

// Flush writes what was gathered. When it returns nil it is on disk, and Head
// says so.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.flush()
}

// Newest returns the newest block taken, whether it is on disk or gathered.
func (s *Store) Newest() chain.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gathered.any {
		return s.gathered.head.link
	}
	return s.head.link
}

func (g *gathered) block(e *chain.Effects, archive bool) error {
	for i := range e.Created {
		o := &e.Created[i]
		if err := g.head.gain(o.Lovelace); err != nil {
			return err
		}
		if !o.InBatch { // what is, is spent by one of the blocks that came with this one
			g.made.put(o.Ref, outputHeadMax+len(o.Raw), func(b []byte) []byte { return appendOutput(b, o) })
		}
	}
	index := -1
	for t, tx := range e.Txs {
		spent, _ := e.Tx(t)
		if !tx.ID.IsZero() {
			index++
		}
		for i := range spent {
			o := &spent[i]
			if err := g.head.lose(o.Lovelace); err != nil {
				return err
			}
			if archive {
				g.more.gone(o, Spender{Height: e.Height, TxIndex: uint32(max(index, 0)), Tx: tx.ID, Input: uint32(i)})
			}
			if !o.InBatch && !g.made.remove(o.Ref) {
				g.dead.put(o.Ref, 0, func(b []byte) []byte { return b })
			}
		}
	}
	g.any = true
	if g.links = append(g.links, e.Link); len(g.links) == packMax {
		g.more.packs(g.links)
		g.links = g.links[:0]
	}
	g.head.link = e.Link
	g.head.highest = max(g.head.highest, e.Height)
	return nil
}

// full tells whether there is as much as may be. Where most of it is garbage it
// is compacted first.
func (g *gathered) full(limit int) bool {
	size := func() int {
		return g.made.size() + g.dead.size() + int(g.more.bytes)
	}
	if size() < limit {
		return false
	}
	if g.made.live < g.made.size()/2 {
		g.made.compact()
	}
	return size() >= limit*3/4
}

// operations adds what is to be written to o, as it lies here: first all that is new,
// then what goes.
func (g *gathered) operations(o *opset) (puts int) {
	for key, value := range g.made.each {
		o.set(key, value)
	}
	o.sort(0)
	g.more.packs(g.links)
	o.ops = append(o.ops, g.more.ops...)
	o.bytes += g.more.bytes
	puts = len(o.ops)
	for key := range g.dead.each {
		o.del(key)
	}
	o.sort(puts)
	return puts
}

// flush writes what was gathered. Bytes that Outputs handed out stay as they are.
func (s *Store) flush() error {
	g := &s.gathered
	if !g.any {
		return nil
	}
	s.endView()
	s.ops.reset()
	puts := g.operations(&s.ops)
	last := g.head.link
	h := g.head
	h.base, h.swept = last, last.Position()
	var err error
	if s.limits.fit(&s.ops) {
		if err = s.step("write"); err == nil {
			err = s.write(s.ops.ops, &h)
		}
	} else {
		err = s.flushLarge(s.ops.ops[:puts], s.ops.ops[puts:], &h)
	}
	if err != nil {
		return s.broke(fmt.Errorf("write the blocks up to %s: %w", last.At(), err))
	}
	s.recent.apply(s.ops.ops)
	g.clear()
	s.ops.reset()
	s.committed(h, []chain.Link{last})
	return nil
}

// endGathering flushes, and gives the memory back: what follows is written at
// once.
func (s *Store) endGathering() error {
	if err := s.flush(); err != nil {
		return err
	}
	if s.gathered.made.chunks != nil {
		s.gathered = gathered{}
		s.ops = opset{blocks: s.blocks.Batch()}
	}
	return nil
}

func (g *gathered) clear() {
	g.made.clear()
	g.dead.clear()
	g.more.reset()
	g.links, g.any = g.links[:0], false
}
