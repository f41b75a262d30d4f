package store

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// Sweeping removes what only a rollback could have needed: records of blocks
// that are k deep or below the newest block without a record, and with each the
// outputs it spent (an archive moves them). A swept block's link goes into a
// pack of points. It goes oldest first, whole records at a time, and the head
// says how far it came, so that it can stop anywhere.

// due tells up to where records may go: no rollback reaches there.
func (s *Store) due(h *head) chain.Position {
	at := chain.Position{Height: h.highest - s.opts.K}
	if base := h.base.Position(); at.Compare(base) < 0 {
		return base
	}
	return at
}

// planSweep adds to s.ops what is due, as far as it fits the transaction, and
// returns the links that remain in memory. Records of the transaction being
// planned wait for the next. all tells that no more blocks are waiting.
func (s *Store) planSweep(h *head, links []chain.Link, all bool) ([]chain.Link, error) {
	s.planOrphans(h.highest, all)
	limit := s.due(h)
	if top := s.head.link.Position(); limit.Compare(top) > 0 {
		limit = top
	}
	if limit.Compare(h.swept) <= 0 || !s.limits.fit(&s.ops) {
		return links, nil
	}
	sw := sweeper{s: s, h: h}
	err := s.db.View(func(txn *badger.Txn) error {
		sw.txn = txn
		if h.swept.Compare(h.base.Position()) < 0 {
			return sw.leftOvers()
		}
		return sw.known(links, limit)
	})
	s.ops.packs(sw.gone)
	for len(links) > 1 && links[1].Position().Compare(h.swept) <= 0 {
		links = links[1:]
	}
	if links[0].Position().Compare(h.base.Position()) > 0 {
		h.base = links[0]
	}
	return links, err
}

// sweepDue sweeps in transactions of its own what did not fit a commit.
func (s *Store) sweepDue() error {
	for {
		h := s.head
		if s.due(&h).Compare(h.swept) <= 0 && len(s.orphansDue(h.highest, true)) == 0 {
			return nil
		}
		s.ops.reset()
		s.known, s.undone = s.known[:0], s.undone[:0]
		links, err := s.planSweep(&h, s.links, true)
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		if len(s.ops.ops) == 0 && h.swept == s.head.swept {
			return nil
		}
		if err := s.step("sweep"); err != nil {
			return s.broke(err)
		}
		if err := s.apply(&s.ops, &h); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		s.committed(h, links)
	}
}

type sweeper struct {
	s    *Store
	h    *head
	txn  *badger.Txn
	gone []chain.Link
}

// known sweeps records whose places are in memory.
func (sw *sweeper) known(links []chain.Link, limit chain.Position) error {
	for _, l := range links[1:] {
		pos := l.Position()
		if pos.Compare(limit) > 0 {
			return nil
		}
		found, err := get(sw.txn, appendPositionKey(nil, keyRecord, pos), sw.s.rec.decode)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: the journal has no record of %s", ErrDamaged, l.At())
		}
		if ok, err := sw.record(); err != nil || !ok {
			return err
		}
	}
	return nil
}

// leftOvers sweeps the records below a base that came later: blocks far from
// the tip followed blocks near it.
func (sw *sweeper) leftOvers() error {
	it := sw.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyRecord}})
	defer it.Close()
	base := sw.h.base.Position()
	for it.Seek(appendPositionKey(nil, keyRecord, sw.h.swept)); it.Valid(); it.Next() {
		pos, err := positionFromKey(it.Item().Key())
		if err != nil {
			return err
		}
		if pos.Compare(base) > 0 {
			break
		}
		if err := it.Item().Value(sw.s.rec.decode); err != nil {
			return err
		}
		if ok, err := sw.record(); err != nil || !ok {
			return err
		}
	}
	sw.h.swept = base
	return nil
}

// record sweeps s.rec; false if it does not fit any more.
func (sw *sweeper) record() (bool, error) {
	s, rec := sw.s, &sw.s.rec
	mark := s.ops.mark()
	before := *sw.h
	err := sw.drop(rec)
	if err == nil && !s.limits.fit(&s.ops) && mark.ops > 0 {
		s.ops.cut(mark)
		*sw.h = before
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sw.gone = append(sw.gone, rec.link)
	s.ops.bytes += opCost(positionKeySize, 32+packEntry) // the pack to come
	sw.h.swept = rec.link.Position()
	return s.limits.fit(&s.ops), nil
}

func (sw *sweeper) drop(rec *record) error {
	ops := &sw.s.ops
	if sw.h.marks < uint64(len(rec.spent)) {
		return fmt.Errorf("%w: fewer marks than block %s made", ErrDamaged, rec.link.At())
	}
	sw.h.marks -= uint64(len(rec.spent))
	for t, tx := range rec.txs {
		from := 0
		if t > 0 {
			from = rec.txs[t-1].Spent
		}
		for _, ref := range rec.spent[from:tx.Spent] {
			if err := sw.spent(rec, ref); err != nil {
				return err
			}
		}
	}
	ops.del(appendPositionKey(ops.arena.take(positionKeySize), keyRecord, rec.link.Position()))
	ops.drop = append(ops.drop, rec.raw)
	return nil
}

// spent removes an output that block spent, or moves it to the archive. Its
// contents are read only where they are needed.
func (sw *sweeper) spent(rec *record, ref chain.TxIn) error {
	s, ops := sw.s, &sw.s.ops
	if s.opts.Archive || sw.h.index != indexNone {
		var by Spender
		found, err := get(sw.txn, appendRefKey(nil, keyMark, ref), func(v []byte) (err error) {
			by, err = decodeSpender(v)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf("%w: output %s spent by %s has no mark", ErrDamaged, ref, rec.link.At())
		}
		if err != nil {
			return err
		}
		o := chain.Output{Ref: ref}
		found, err = get(sw.txn, appendRefKey(nil, keyOutput, ref), func(v []byte) error {
			return decodeOutput(append(ops.arena.take(len(v)), v...), &o)
		})
		if err == nil && !found {
			err = fmt.Errorf("%w: output %s spent by %s is gone", ErrDamaged, ref, rec.link.At())
		}
		if err != nil {
			return err
		}
		if s.opts.Archive {
			ops.gone(&o, by)
		}
		if err := ops.terms(s, sw.h, &o, false); err != nil {
			return err
		}
	}
	ops.delRef(keyMark, ref)
	ops.delRef(keyOutput, ref)
	return nil
}
