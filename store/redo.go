package store

import (
	"encoding/binary"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// A commit that does not fit one transaction goes through a redo log:
//
//  1. parts, each a list of operations, are written under keyRedo;
//  2. the seal is written: from here on the commit counts as made;
//  3. the operations are applied, in as many transactions as it takes. They set
//     and delete absolute values, so that doing them twice is doing them once;
//  4. the last transaction sets the head and removes the seal;
//  5. the parts are removed.
//
// Killed before 2, Open finds parts without a seal and removes them: the old
// head. Killed after 2, Open repeats 3 to 5: the new head. Killed after 4, only
// parts are left. Nobody reads between 3 and 4: snapshots wait for redoLock.

// redo log operations, as they are packed into a part.
const (
	redoSet = iota
	redoDel
)

func appendRedo(b []byte, o *op) []byte {
	if o.del {
		b = append(b, redoDel)
		b = binary.AppendUvarint(b, uint64(len(o.key)))
		return append(b, o.key...)
	}
	b = append(b, redoSet)
	b = binary.AppendUvarint(b, uint64(len(o.key)))
	b = append(b, o.key...)
	b = binary.AppendUvarint(b, uint64(len(o.val)))
	return append(b, o.val...)
}

// decodeRedo appends the operations of a part to ops; they alias b.
func decodeRedo(b []byte, ops []op) ([]op, error) {
	r := reader{b: b}
	for len(r.b) > 0 && !r.bad {
		kind := r.byte()
		o := op{key: r.bytes(r.count(1)), del: kind == redoDel}
		if kind == redoSet {
			o.val = r.bytes(r.count(1))
		}
		if kind > redoDel || len(o.key) == 0 {
			r.fail()
		}
		ops = append(ops, o)
	}
	return ops, r.end("a part of the redo log")
}

// seal: number of parts, then the head to be.
func appendSeal(b []byte, parts uint32, h *head) []byte {
	return appendHead(binary.AppendUvarint(b, uint64(parts)), h)
}

func decodeSeal(b []byte) (parts uint32, h head, err error) {
	r := reader{b: b}
	parts = uint32(r.below(1 << 32))
	if r.bad {
		return 0, h, r.end("the seal of the redo log")
	}
	h, err = decodeHead(r.b)
	return parts, h, err
}

func (s *Store) redo(o *opset, h *head) error {
	s.log.Debug("a commit goes through the redo log", "entries", len(o.ops), "bytes", o.bytes)
	parts, err := s.writeParts(o.ops, appendRedo)
	if err != nil {
		return err
	}
	if err := s.step("seal"); err != nil {
		return err
	}
	if err := s.write([]op{{key: appendRedoKey(nil, redoSeal), val: appendSeal(nil, parts, h)}}, &s.head); err != nil {
		return err
	}
	return s.replay(o.ops, parts, h)
}

// redoPart is the size of a part: small enough to stay out of the value log.
const redoPart = 512 << 10

// writeParts writes operations into the log and returns the number of parts.
func (s *Store) writeParts(ops []op, encode func(b []byte, o *op) []byte) (parts uint32, err error) {
	var part, one []byte
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		if err := s.step("part"); err != nil {
			return err
		}
		err := s.write([]op{{key: appendRedoKey(nil, parts), val: part}}, &s.head)
		parts++
		part = part[:0]
		return err
	}
	limit := int(s.limits.bytes - opCost(16, 0))
	for i := range ops {
		one = encode(one[:0], &ops[i])
		if len(one) > limit {
			return parts, fmt.Errorf("a value of %d bytes does not fit a transaction of %d: more memory is needed", len(ops[i].val), limit)
		}
		if len(part)+len(one) > min(limit, redoPart) {
			if err := flush(); err != nil {
				return parts, err
			}
		}
		part = append(part, one...)
	}
	return parts, flush()
}

// replay is steps 3 to 5.
func (s *Store) replay(ops []op, parts uint32, h *head) error {
	s.redoLock.Lock()
	defer s.redoLock.Unlock()
	if err := s.writeAll(ops, &s.head); err != nil {
		return err
	}
	if err := s.step("head"); err != nil {
		return err
	}
	if err := s.write(nil, h, op{key: appendRedoKey(nil, redoSeal), del: true}); err != nil {
		return err
	}
	return s.dropParts(parts, h)
}

// writeAll writes operations in as many transactions as it takes, each with the
// head.
func (s *Store) writeAll(ops []op, h *head) error {
	for len(ops) > 0 {
		n, bytes := 0, int64(0)
		for n < len(ops) && n < s.limits.entries-1 {
			c := opCost(len(ops[n].key), len(ops[n].val))
			if n > 0 && bytes+c >= s.limits.bytes {
				break
			}
			bytes += c
			n++
		}
		if err := s.step("apply"); err != nil {
			return err
		}
		if err := s.write(ops[:n], h); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

func (s *Store) dropParts(parts uint32, h *head) error {
	var ops []op
	for i := range parts {
		ops = append(ops, op{key: appendRedoKey(nil, i), del: true})
		if len(ops) == min(s.limits.entries-1, 1000) || i == parts-1 {
			if err := s.step("drop"); err != nil {
				return err
			}
			if err := s.write(ops, h); err != nil {
				return err
			}
			ops = ops[:0]
		}
	}
	return nil
}

// recoverRedo finishes a sealed redo log and removes an unsealed one.
func (s *Store) recoverRedo() error {
	var ops []op
	var parts, found, sealed uint32
	var h head
	seal := false
	var large phase
	err := s.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyRedo}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			item := it.Item()
			v, err := item.ValueCopy(nil)
			if err != nil {
				return err
			}
			if len(item.Key()) != 5 {
				return fmt.Errorf("%w: redo log key %x", ErrDamaged, item.Key())
			}
			switch n := binary.BigEndian.Uint32(item.Key()[1:]); n {
			case redoSeal:
				seal = true
				sealed, h, err = decodeSeal(v)
			case flushSeal:
				large, sealed, err = decodeFlushSeal(v)
			default:
				parts, found = max(parts, n+1), found+1
				ops, err = decodeRedo(v, ops)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("redo log: %w", err)
	case (seal || large != 0) && (sealed != parts || sealed != found):
		return fmt.Errorf("%w: the redo log has %d parts, its seal says %d", ErrDamaged, found, sealed)
	case seal:
		s.log.Info("finishing an interrupted commit", "height", h.link.Height)
		return s.replay(ops, parts, &h)
	case large != 0:
		return s.endFlush(large, ops, parts)
	case parts > 0:
		s.log.Info("removing an unfinished commit")
		return s.dropParts(parts, &s.head)
	}
	return nil
}
