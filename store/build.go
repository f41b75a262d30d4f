package store

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// BuildIndexes makes the first pass that fills the indexes, going on where an
// earlier call stopped. It returns at once when they are built. It may run while
// another goroutine commits: it takes slices of the set between two writes, each
// with the head's note how far it came, and commits keep up the part behind that
// note. progress, if given, is called after each slice with how much of the key
// space is done, from 0 to 1.
func (s *Store) BuildIndexes(ctx context.Context, progress func(done float64)) error {
	if s.opts.Terms == nil {
		return ErrNoTerms
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := s.buildSlice()
		if err != nil {
			return fmt.Errorf("build the indexes: %w", err)
		}
		if progress != nil {
			progress(s.State().Index.Done)
		}
		if done {
			return nil
		}
	}
}

// sliceMax bounds how long a commit waits for a slice: some tens of milliseconds.
const sliceMax = 8192

// buildSlice indexes outputs until a transaction, or a slice, is full.
func (s *Store) buildSlice() (done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return false, err
	}
	if s.head.index == indexBuilt {
		return true, nil
	}
	if err := s.flush(); err != nil {
		return false, err
	}
	s.ops.reset()
	h := s.head
	var last []byte
	full := false
	room := s.limits
	room.entries = min(room.entries, sliceMax)
	err = s.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyOutput}})
		defer it.Close()
		for it.Seek(append([]byte{keyOutput}, h.indexed...)); it.Valid(); it.Next() {
			item := it.Item()
			if string(item.Key()[1:]) == string(h.indexed) {
				continue
			}
			before := s.ops.mark()
			o := chain.Output{Ref: chain.TxInFromKey(item.Key()[1:])}
			if err := item.Value(func(v []byte) error {
				if err := decodeOutput(v, &o); err != nil {
					return err
				}
				return s.ops.entries(s, &o, true)
			}); err != nil {
				return err
			}
			if !room.fit(&s.ops) && before.ops > 0 {
				s.ops.cut(before)
				full = true
				return nil
			}
			last = append(last[:0], item.Key()[1:]...)
			if !room.fit(&s.ops) {
				full = true
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	h.index, h.indexed = indexBuilding, last
	if !full {
		h.index, h.indexed = indexBuilt, nil
	}
	s.ops.sort(0)
	if err := s.step("index"); err != nil {
		return false, s.broke(err)
	}
	if err := s.apply(&s.ops, &h); err != nil {
		return false, err
	}
	s.head = h
	s.publish()
	return !full, nil
}
