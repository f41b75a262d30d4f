package store

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
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
	s.orphans = map[chain.Hash]orphan{}
	if err := s.loadHead(); err != nil {
		return err
	}
	var places []segment.Place
	if err := s.db.View(func(txn *badger.Txn) error {
		if err := s.loadLinks(txn, &places); err != nil {
			return err
		}
		return s.loadOrphans(txn, &places)
	}); err != nil {
		return err
	}
	return s.openBlocks(places)
}

// loadLinks reads the records. Those above the base must lead from it to the head
// without a gap, and none may lie above.
func (s *Store) loadLinks(txn *badger.Txn, places *[]segment.Place) error {
	s.links = append(s.links[:0], s.head.base)
	if err := each(txn, []byte{keyRecord}, func(key, v []byte) error {
		pos, err := positionFromKey(key)
		if err != nil {
			return err
		}
		l, raw, err := recordStart(v)
		if err != nil {
			return err
		}
		*places = append(*places, raw)
		if pos.Compare(s.head.base.Position()) <= 0 {
			return nil // not swept yet
		}
		below := s.links[len(s.links)-1]
		if l.Position() != pos || !follows(below, l) {
			return fmt.Errorf("%w: the journal has %s behind %s", ErrDamaged, l.At(), below.At())
		}
		s.links = append(s.links, l)
		return nil
	}); err != nil {
		return err
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

func (s *Store) loadOrphans(txn *badger.Txn, places *[]segment.Place) error {
	return each(txn, []byte{keyOrphan}, func(_, v []byte) error {
		o, err := readOrphan(v)
		if err != nil {
			return err
		}
		s.orphans[o.link.Point.Hash] = o
		*places = append(*places, o.raw, o.contents)
		return nil
	})
}
