package store

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

func (s *Store) loadHead() error {
	return s.db.View(func(txn *badger.Txn) error {
		found, err := get(txn, headKey, func(v []byte) (err error) {
			s.head, err = decodeHead(v)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf("%w: it has no head", ErrDamaged)
		}
		return err
	})
}

// load reads the head and the newest links and checks that they agree.
func (s *Store) load() error {
	s.orphans = map[chain.Hash]chain.Link{}
	if err := s.loadHead(); err != nil {
		return err
	}
	return s.db.View(func(txn *badger.Txn) error {
		if err := s.loadLinks(txn); err != nil {
			return err
		}
		return s.loadOrphans(txn)
	})
}

// loadLinks reads the records above the base: they must lead from it to the
// head without a gap, and none may lie above.
func (s *Store) loadLinks(txn *badger.Txn) error {
	s.links = append(s.links[:0], s.head.base)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyRecord}})
	defer it.Close()
	for it.Seek(appendPositionKey(nil, keyRecord, s.head.base.Position())); it.Valid(); it.Next() {
		pos, err := positionFromKey(it.Item().Key())
		if err != nil {
			return err
		}
		if pos.Compare(s.head.base.Position()) <= 0 {
			continue // not swept yet
		}
		var l chain.Link
		if err := it.Item().Value(func(v []byte) (err error) {
			l, err = recordLink(v)
			return err
		}); err != nil {
			return err
		}
		below := s.links[len(s.links)-1]
		if l.Position() != pos || !follows(below, l) {
			return fmt.Errorf("%w: the journal has %s behind %s", ErrDamaged, l.At(), below.At())
		}
		s.links = append(s.links, l)
	}
	if top := s.links[len(s.links)-1]; top != s.head.link {
		return fmt.Errorf("%w: the journal ends at %s, the head is %s", ErrDamaged, top.At(), s.head.link.At())
	}
	return nil
}

// follows tells whether l can stand on below: its parent, and a height that is
// one higher, or the same for a boundary block. The first block of a chain has
// height 0, or 1 where the genesis boundary block is not served.
func follows(below, l chain.Link) bool {
	if below.Point.IsOrigin() {
		return l.Height == 0 || l.Height == 1 && !l.Boundary
	}
	want := below.Height + 1
	if l.Boundary {
		want = below.Height
	}
	return l.Parent == below.Point.Hash && l.Height == want && l.Position().Compare(below.Position()) > 0
}

func (s *Store) loadOrphans(txn *badger.Txn) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyOrphan}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := it.Item().Value(func(v []byte) error {
			l, err := decodeLink(v)
			s.orphans[l.Point.Hash] = l
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
