package store

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// compact makes of an archive a store that keeps unspent outputs only. First the
// description says so, then what was kept goes, in as many transactions as it takes;
// a kill between two leaves the rest to the next opening.
func (s *Store) compact() error {
	if s.opts.Archive && s.opts.Compact {
		s.opts.Archive = false
		m := meta{version: formatVersion, magic: s.opts.Magic, k: s.opts.K, made: s.state.Load().Made}
		if err := s.step("compact"); err != nil {
			return err
		}
		if err := s.write([]op{{key: metaKey, val: appendMeta(nil, m)}}, &s.head); err != nil {
			return fmt.Errorf("give up the archive: %w", err)
		}
		if err := s.keepRecord(s.own.version, s.own.log); err != nil {
			return err
		}
	}
	if s.opts.Archive {
		return nil
	}
	for gone := 0; ; {
		s.ops.reset()
		if err := s.db.View(func(txn *badger.Txn) error {
			it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyGone}})
			defer it.Close()
			for it.Rewind(); it.Valid() && s.limits.fit(&s.ops); it.Next() {
				s.ops.del(append(s.ops.arena.take(refKeySize), it.Item().Key()...))
			}
			return nil
		}); err != nil {
			return err
		}
		if len(s.ops.ops) == 0 {
			if gone > 0 {
				s.log.Info("the archive of spent outputs was given up", "outputs", gone)
			}
			return nil
		}
		if err := s.step("drop archive"); err != nil {
			return err
		}
		if err := s.write(s.ops.ops, &s.head); err != nil {
			return fmt.Errorf("give up the archive: %w", err)
		}
		gone += len(s.ops.ops)
		s.undoneBytes += 8 * s.ops.bytes // merged at the end, so that the disk gets it back
	}
}
