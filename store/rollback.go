package store

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// Rollback removes the blocks above a point of our chain, newest first. Each
// leaves an orphan record in the transaction that undoes it. It takes as many
// transactions as it needs; a kill, an error or the end of ctx between two leaves
// a shorter chain, and Head says which.
//
// It returns errors that wrap ErrBelowFloor (as *FloorError) or ErrUnknownPoint,
// and then nothing is touched. The head is no error and no work.
func (s *Store) Rollback(ctx context.Context, to chain.Point) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.endGathering(); err != nil {
		return err
	}
	keep, err := s.target(to)
	if err != nil {
		return err
	}
	if err := s.checkTerms(); err != nil {
		return err
	}
	s.endLookups()
	for len(s.links) > keep+1 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("roll back to %s: %w", to, err)
		}
		if err := s.undoSome(keep); err != nil {
			return fmt.Errorf("roll back to %s: %w", to, err)
		}
	}
	return nil
}

// target returns the index in s.links of the block to keep.
func (s *Store) target(to chain.Point) (int, error) {
	i := len(s.links) - 1
	for i >= 0 && s.links[i].Point != to {
		i--
	}
	if i >= 0 {
		if floor := s.floor(); s.links[i].Position().Compare(floor.Position()) < 0 {
			return 0, &FloorError{To: to, Floor: floor.At()}
		}
		return i, nil
	}
	if to.IsOrigin() { // on every chain, but not within reach
		return 0, &FloorError{To: to, Floor: s.floor().At()}
	}
	_, ours, err := s.Find(to)
	switch {
	case err != nil:
		return 0, err
	case ours:
		return 0, &FloorError{To: to, Floor: s.floor().At()}
	}
	return 0, fmt.Errorf("cannot roll back to %s: %w", to, ErrUnknownPoint)
}

// undoSome undoes the newest blocks above s.links[keep], as many as fit one
// transaction, at least one.
func (s *Store) undoSome(keep int) error {
	s.ops.reset()
	s.known, s.undone = s.known[:0], s.undone[:0]
	h := s.head
	top := len(s.links)
	err := s.db.View(func(txn *badger.Txn) error {
		for top > keep+1 {
			mark := s.ops.mark()
			before := h
			if err := s.undo(txn, &h, s.links[top-1], s.links[top-2]); err != nil {
				return err
			}
			if !s.limits.fit(&s.ops) && mark.ops > 0 {
				s.ops.cut(mark)
				s.undone = s.undone[:len(s.undone)-1]
				h = before
				return nil
			}
			top--
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.step("undo"); err != nil {
		return s.broke(err)
	}
	if err := s.apply(&s.ops, &h); err != nil {
		return err
	}
	s.undoneBytes += s.ops.bytes
	s.committed(h, s.links[:top])
	return nil
}

// undo plans taking back one block: what it made goes, what it spent loses its
// mark. What it both made and spent goes with its mark. What it did is kept with
// the orphan.
func (s *Store) undo(txn *badger.Txn, h *head, l, below chain.Link) error {
	rec, ops := &s.rec, &s.ops
	var record []byte
	found, err := get(txn, appendPositionKey(nil, keyRecord, l.Position()), func(v []byte) error {
		record = append(ops.arena.take(len(v)), v...)
		return rec.decode(record)
	})
	if err != nil {
		return err
	}
	switch {
	case !found:
		return fmt.Errorf("%w: the journal has no record of %s", ErrDamaged, l.At())
	case rec.link != l:
		return fmt.Errorf("%w: the journal has %s where the chain has %s", ErrDamaged, rec.link.At(), l.At())
	}
	o := orphan{link: l, raw: rec.raw}
	if o.contents, err = s.keepContents(txn); err != nil {
		return fmt.Errorf("block %s: %w", l.At(), err)
	}
	for _, ref := range rec.created {
		if h.index != indexNone {
			o := chain.Output{Ref: ref}
			found, err := get(txn, appendRefKey(nil, keyOutput, ref), func(v []byte) error {
				return decodeOutput(append(ops.arena.take(len(v)), v...), &o)
			})
			if err == nil && found {
				err = ops.terms(s, h, &o, false)
			}
			if err != nil {
				return err
			}
		}
		ops.delRef(keyOutput, ref)
	}
	for _, ref := range rec.spent {
		ops.delRef(keyMark, ref)
	}
	made, used := uint64(len(rec.created)), uint64(len(rec.spent))
	lovelace, ok := addUint64(h.lovelace, rec.used)
	if !ok || lovelace < rec.made || h.utxos+used < made || h.marks < used {
		return fmt.Errorf("%w: the counts do not allow undoing %s", ErrDamaged, l.At())
	}
	h.lovelace = lovelace - rec.made
	h.utxos += used - made
	h.marks -= used
	h.link = below
	ops.del(appendPositionKey(ops.arena.take(positionKeySize), keyRecord, l.Position()))
	ops.set(appendOrphanKey(ops.arena.take(33), l.Point.Hash), append(appendPlace(ops.arena.take(placeMax+len(record)), o.contents), record...))
	s.undone = append(s.undone, o)
	return nil
}
