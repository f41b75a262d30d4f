package store

import (
	"fmt"
	"sort"

	"github.com/ourotail/ourotail/chain"
)

// Genesis fills an empty store with the outputs that are in no block, once and
// atomically. Their height is chain.OriginHeight. A network without any calls it
// with none. It returns an error that wraps ErrNotEmpty if it was called before
// or the store has a block.
func (s *Store) Genesis(outputs []chain.Output) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if s.head.seeded || !s.head.link.Point.IsOrigin() {
		return fmt.Errorf("%w: its head is %s", ErrNotEmpty, s.head.link.At())
	}
	s.endLookups()
	s.ops.reset()
	h := s.head
	h.seeded = true
	for i := range outputs {
		o := &outputs[i]
		if err := h.gain(o.Lovelace); err != nil {
			return err
		}
		s.ops.output(o)
		if err := s.ops.terms(s, &h, o, true); err != nil {
			return err
		}
	}
	if err := s.apply(&s.ops, &h); err != nil {
		return fmt.Errorf("store the genesis outputs: %w", err)
	}
	s.head = h
	s.publish()
	return nil
}

func (h *head) gain(lovelace uint64) error {
	sum, ok := addUint64(h.lovelace, lovelace)
	if !ok {
		return fmt.Errorf("%w: the lovelace of the set would pass 2^64", ErrDamaged)
	}
	h.lovelace = sum
	h.utxos++
	return nil
}

func (h *head) lose(lovelace uint64) error {
	if h.utxos == 0 || h.lovelace < lovelace {
		return fmt.Errorf("%w: more would be spent than there is", ErrDamaged)
	}
	h.utxos--
	h.lovelace -= lovelace
	return nil
}

func (o *opset) output(out *chain.Output) {
	key := appendRefKey(o.arena.take(refKeySize), keyOutput, out.Ref)
	o.set(key, appendOutput(o.arena.take(outputHeadMax+len(out.Raw)), out))
}

func (o *opset) delRef(kind byte, ref chain.TxIn) {
	o.del(appendRefKey(o.arena.take(refKeySize), kind, ref))
}

// Commit adds blocks to the chain, oldest first. They must follow the head and
// be resolved. When it returns nil they are on disk.
//
// Each block is all or nothing. Many blocks become as few transactions as
// Badger's limit allows, each ending at a block, so that a kill in the middle
// leaves a shorter chain of whole blocks; only one block that is too large by
// itself needs the redo log. Capacity tells how much fits.
//
// The blocks, their lists and bytes are only read, and not after Commit
// returned. An output that is marked InBatch at its birth and its spend is not
// written at all where both lie in one transaction, neither has a record, and
// the store is no archive.
func (s *Store) Commit(blocks []*chain.Effects) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.commit(blocks)
}

// Append is Commit for a block that somebody waits for: what no rollback reaches any
// more is left for the next Commit, or Tidy.
func (s *Store) Append(block *chain.Effects) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.add([]*chain.Effects{block}, false)
}

// Tidy removes what no rollback reaches any more.
func (s *Store) Tidy() error { return s.Commit(nil) }

func (s *Store) commit(blocks []*chain.Effects) error {
	if err := s.add(blocks, true); err != nil {
		return err
	}
	return s.sweepDue()
}

// add writes blocks; sweep says whether what is due goes with them as far as there
// is room.
func (s *Store) add(blocks []*chain.Effects, sweep bool) error {
	if err := s.endGathering(); err != nil {
		return err
	}
	s.endLookups()
	below := s.head.link
	for _, b := range blocks {
		if !follows(below, b.Link) {
			return fmt.Errorf("%w: %s with parent %s, head %s", ErrNotNext, b.At(), b.Parent, below.At())
		}
		below = b.Link
	}
	if err := s.checkTerms(); err != nil {
		return err
	}
	return s.commitRange(blocks, true, sweep)
}

// Capacity is what one transaction holds: writes, and bytes of keys and values
// with 12 more for each. A block costs one write and about 60 bytes of keys for
// each output it makes or spends, and its outputs' bytes.
func (s *Store) Capacity() (entries int, bytes int64) { return s.limits.entries, s.limits.bytes }

// commitRange writes blocks in one transaction, or in halves.
func (s *Store) commitRange(blocks []*chain.Effects, whole, sweep bool) error {
	if len(blocks) == 0 {
		return nil
	}
	s.ops.reset()
	s.known, s.undone = s.known[:0], s.undone[:0]
	h := s.head
	links, err := s.plan(blocks, &h, whole)
	if err != nil {
		return err
	}
	if !s.limits.fit(&s.ops) && len(blocks) > 1 {
		cut := s.halve(blocks)
		if err := s.commitRange(blocks[:cut], false, sweep); err != nil {
			return err
		}
		return s.commitRange(blocks[cut:], false, sweep)
	}
	if sweep {
		if links, err = s.planSweep(&h, links, false); err != nil {
			return err
		}
	}
	if err := s.apply(&s.ops, &h); err != nil {
		return fmt.Errorf("commit up to %s: %w", h.link.At(), err)
	}
	s.committed(h, links)
	return nil
}

// halve returns where to cut so that both parts cost about the same.
func (s *Store) halve(blocks []*chain.Effects) int {
	total := 0
	cost := func(e *chain.Effects) int { return 1 + len(e.Created) + len(e.Spent) }
	for _, e := range blocks {
		total += cost(e)
	}
	sum := 0
	for i, e := range blocks[:len(blocks)-1] {
		if sum += cost(e); sum >= total/2 {
			return i + 1
		}
	}
	return len(blocks) - 1
}

// plan adds the blocks' own writes to s.ops and their counts to h, and returns
// the links that will be held in memory after them.
func (s *Store) plan(blocks []*chain.Effects, h *head, whole bool) ([]chain.Link, error) {
	// Below the last block without a record none is of use.
	first := len(blocks)
	for first > 0 && blocks[first-1].Journal {
		first--
	}
	p := planner{s: s, h: h}
	switch {
	case s.opts.Archive || first == 0:
	case whole && first == len(blocks):
		p.elide = true
	default:
		p.pairs = pairsWithin(blocks[:first])
	}
	links := make([]chain.Link, 0, len(blocks))
	for i, e := range blocks {
		p.journal = i >= first
		if err := p.block(e); err != nil {
			return nil, fmt.Errorf("block %s: %w", e.At(), err)
		}
		links = append(links, e.Link)
	}
	s.ops.packs(links[:first])
	h.link = links[len(links)-1]
	h.highest = max(h.highest, h.link.Height)
	if first > 0 {
		if len(s.links) == 1 && h.swept == h.base.Position() { // no record is left behind
			h.swept = links[first-1].Position()
		}
		h.base = links[first-1]
		links = links[first-1:]
	} else {
		links = append(s.links, links...) // beyond what s.links shows
	}
	return links, nil
}

// pairsWithin returns the outputs that blocks make and spend among themselves.
func pairsWithin(blocks []*chain.Effects) map[chain.TxIn]struct{} {
	pairs := map[chain.TxIn]struct{}{}
	from := blocks[0].Height
	if blocks[0].Boundary { // the main block of that height lies below
		from++
	}
	for _, e := range blocks {
		for i := range e.Spent {
			if o := &e.Spent[i]; o.InBatch && o.Height >= from {
				pairs[o.Ref] = struct{}{}
			}
		}
	}
	return pairs
}

type planner struct {
	s       *Store
	h       *head
	journal bool
	elide   bool                    // every InBatch output is born and spent in this transaction
	pairs   map[chain.TxIn]struct{} // or these are
}

func (p *planner) elided(o *chain.Output) bool {
	if !o.InBatch || p.journal {
		return false
	}
	if p.elide {
		return true
	}
	_, ok := p.pairs[o.Ref]
	return ok
}

func (p *planner) block(e *chain.Effects) error {
	var made, used uint64
	ops := &p.s.ops
	before := p.h.lovelace
	for i := range e.Created {
		o := &e.Created[i]
		if err := p.h.gain(o.Lovelace); err != nil {
			return err
		}
		if p.elided(o) {
			continue
		}
		ops.output(o)
		if err := ops.terms(p.s, p.h, o, true); err != nil {
			return err
		}
	}
	made = p.h.lovelace - before
	before = p.h.lovelace
	index := -1
	for t, tx := range e.Txs {
		spent, created := e.Tx(t)
		if !tx.ID.IsZero() { // what the ledger itself removes is no transaction of the block
			index++
		}
		by := Spender{Height: e.Height, TxIndex: uint32(max(index, 0)), Tx: tx.ID}
		for i := range spent {
			by.Input = uint32(i)
			if err := p.spend(&spent[i], by); err != nil {
				return err
			}
		}
		for i := range created {
			if p.journal && created[i].Ref.ID != tx.ID {
				return fmt.Errorf("transaction %s makes %s", tx.ID, created[i].Ref)
			}
		}
	}
	used = before - p.h.lovelace
	if p.journal {
		if err := p.record(e, made, used); err != nil {
			return err
		}
	}
	if o, back := p.s.orphans[e.Point.Hash]; back {
		p.s.forget(o)
	}
	return nil
}

func (p *planner) spend(o *chain.Output, by Spender) error {
	if err := p.h.lose(o.Lovelace); err != nil {
		return err
	}
	ops := &p.s.ops
	switch {
	case p.journal:
		key := appendRefKey(ops.arena.take(refKeySize), keyMark, o.Ref)
		ops.set(key, appendSpender(ops.arena.take(spenderMax), by))
		p.h.marks++
		return nil
	case p.elided(o):
		return nil
	case p.s.opts.Archive:
		ops.gone(o, by)
	}
	ops.delRef(keyOutput, o.Ref)
	return ops.terms(p.s, p.h, o, false)
}

// gone keeps a spent output in the archive.
func (o *opset) gone(out *chain.Output, by Spender) {
	key := appendRefKey(o.arena.take(refKeySize), keyGone, out.Ref)
	v := appendSpender(o.arena.take(spenderMax+outputHeadMax+len(out.Raw)), by)
	o.set(key, appendOutput(v, out))
}

func (p *planner) record(e *chain.Effects, made, used uint64) error {
	ops := &p.s.ops
	o, back := p.s.orphans[e.Point.Hash]
	raw := o.raw // where a block that comes back has its bytes already
	if back && raw.Is(e.Raw) {
		ops.keep = append(ops.keep, raw)
	} else {
		var err error
		if raw, err = ops.store(e.Raw); err != nil {
			return err
		}
	}
	key := appendPositionKey(ops.arena.take(positionKeySize), keyRecord, e.Position())
	ops.set(key, appendRecord(ops.arena.take(recordSize(e)), e, raw, made, used))
	return nil
}

// committed takes over a head that is on disk.
func (s *Store) committed(h head, links []chain.Link) {
	s.head = h
	s.links = links
	for _, hash := range s.known {
		delete(s.orphans, hash)
	}
	for _, o := range s.undone {
		s.orphans[o.link.Point.Hash] = o
	}
	s.known, s.undone = s.known[:0], s.undone[:0]
	for _, p := range s.ops.keep {
		s.blocks.Keep(p)
	}
	for _, p := range s.ops.drop {
		s.blocks.Drop(p)
	}
	s.ops.keep, s.ops.drop = s.ops.keep[:0], s.ops.drop[:0]
	s.dropBlocks()
	s.publish()
}

// floor is the oldest block that Rollback accepts as what to keep: not below
// the base, and not deeper than k below the highest height ever.
func (s *Store) floor() chain.Link { return floorOf(s.links, s.head.highest-s.opts.K) }

// floorOf returns the last link at or below the main block of that height, or
// the first.
func floorOf(links []chain.Link, height chain.Height) chain.Link {
	want := chain.Position{Height: height}
	i := sort.Search(len(links), func(i int) bool { return links[i].Position().Compare(want) > 0 })
	return links[max(i-1, 0)]
}
