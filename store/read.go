package store

import (
	"context"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// Outputs looks up the unspent outputs named by the Ref of each element and
// fills in the rest, Raw included. It returns the index of the first that is not
// there (never was, or is spent), or -1. The bytes are the store's; they stay as
// they are beyond the next Commit or Rollback, until Outputs is called again
// after that: who publishes a batch may still read them.
//
// It belongs to the goroutine that commits; others use a Snapshot.
func (s *Store) Outputs(want []*chain.Output) (missing int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return -1, ErrClosed
	}
	if !s.looking {
		s.looking = true
		s.found.reset()
	}
	for i, o := range want {
		v := s.gathered.made.get(o.Ref)
		if v == nil {
			if s.gathered.dead.get(o.Ref) != nil {
				return i, nil
			}
			v = s.recent.get(o.Ref)
		}
		if v != nil {
			if err := decodeOutput(append(s.found.take(len(v)), v...), o); err != nil {
				return -1, err
			}
			continue
		}
		if s.lookup == nil {
			s.lookup = s.view()
		}
		found, err := lookUp(s.lookup, s.head.marks > 0, &s.found, o)
		if err != nil {
			return -1, err
		}
		if !found {
			return i, s.doubt()
		}
	}
	return -1, nil
}

// doubt verifies the tables, once for a head: a damaged block hides what is in it.
func (s *Store) doubt() error {
	if s.verified {
		return nil
	}
	s.verified = true
	return s.verify(context.Background())
}

// endLookups gives back the view of Outputs: the head is about to change.
func (s *Store) endLookups() {
	s.looking, s.verified = false, false
	s.endView()
}

func (s *Store) endView() {
	if s.lookup != nil {
		s.lookup.Discard()
		s.lookup = nil
	}
}

// Live returns those of the references that are in the set, in their order.
func (s *Store) Live(refs []chain.TxIn) ([]chain.TxIn, error) {
	v := s.Snapshot()
	defer v.Close()
	var live []chain.TxIn
	for _, ref := range refs {
		_, ok, err := v.Get(ref)
		if err != nil {
			return nil, err
		}
		if ok {
			live = append(live, ref)
		}
	}
	return live, nil
}

// view opens a read transaction at a head.
func (s *Store) view() *badger.Txn {
	s.redoLock.RLock()
	defer s.redoLock.RUnlock()
	return s.db.NewTransaction(false)
}

// lookUp fills in an unspent output. marks tells whether any output is spent
// and still kept: without any there is one question to ask, not two.
func lookUp(txn *badger.Txn, marks bool, a *arena, o *chain.Output) (bool, error) {
	var key [refKeySize]byte
	found, err := get(txn, appendRefKey(key[:0], keyOutput, o.Ref), func(v []byte) error {
		return decodeOutput(append(a.take(len(v)), v...), o)
	})
	if err != nil || !found || !marks {
		return found, err
	}
	spent, err := get(txn, appendRefKey(key[:0], keyMark, o.Ref), func([]byte) error { return nil })
	return !spent, err
}

// Links returns the newest n links oldest first, fewer if the chain is shorter;
// whole tells that they reach down to origin.
func (s *Store) Links(n int) (links []chain.Link, whole bool, err error) {
	v := s.Snapshot()
	defer v.Close()
	return v.Links(n)
}

// LinkAt returns the block of our chain at a position; false if there is none.
func (s *Store) LinkAt(at chain.Position) (chain.Link, bool, error) {
	v := s.Snapshot()
	defer v.Close()
	return v.LinkAt(at)
}

// Find returns the block of our chain with exactly this point, however old;
// false if there is none.
func (s *Store) Find(p chain.Point) (chain.Link, bool, error) {
	v := s.Snapshot()
	defer v.Close()
	return v.Find(p)
}

// Effects rebuilds a block that has a record: see Snapshot.Effects.
func (s *Store) Effects(at chain.Position, dst *chain.Effects) error {
	v := s.Snapshot()
	defer v.Close()
	return v.Effects(at, dst)
}
