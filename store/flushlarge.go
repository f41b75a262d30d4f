package store

import (
	"encoding/binary"
	"fmt"
)

// What was gathered seldom fits one transaction. Written through the redo log it
// would be written twice; but it makes only keys that were not there, and removes
// only keys of which nobody will ask for the contents again. So the log holds the
// keys alone:
//
//  1. parts, with the keys that will be made and those that will be removed;
//  2. the seal, in the phase of making;
//  3. everything new, in as many transactions as it takes. Killed from 2 on, Open
//     removes it again: the old head;
//  4. in one transaction the new head, and the seal in the phase of removing.
//     Killed from here on, Open goes on with 5: the new head;
//  5. the removals;
//  6. the seal goes, then the parts.
//
// Nobody reads between 3 and 5: snapshots wait for redoLock.

// phase of a large flush, as its seal has it.
type phase byte

const (
	phaseMaking phase = iota + 1
	phaseRemoving
)

func (s *Store) flushLarge(puts, dels []op, h *head) error {
	s.log.Debug("writing what was gathered", "height", h.link.Height, "new", len(puts), "gone", len(dels))
	keys := func(b []byte, o *op) []byte { return appendRedo(b, &op{key: o.key, del: o.del}) }
	parts, err := s.writeParts(s.ops.ops, keys)
	if err != nil {
		return err
	}
	if err := s.seal(phaseMaking, parts, &s.head); err != nil {
		return err
	}
	s.redoLock.Lock()
	defer s.redoLock.Unlock()
	if err := s.writeAll(puts, &s.head); err != nil {
		return err
	}
	if err := s.seal(phaseRemoving, parts, h); err != nil {
		return err
	}
	if err := s.writeAll(dels, h); err != nil {
		return err
	}
	return s.unseal(parts, h)
}

func (s *Store) seal(p phase, parts uint32, h *head) error {
	if err := s.step("seal"); err != nil {
		return err
	}
	v := binary.AppendUvarint([]byte{byte(p)}, uint64(parts))
	return s.write([]op{{key: appendRedoKey(nil, flushSeal), val: v}}, h)
}

func (s *Store) unseal(parts uint32, h *head) error {
	if err := s.step("head"); err != nil {
		return err
	}
	if err := s.write([]op{{key: appendRedoKey(nil, flushSeal), del: true}}, h); err != nil {
		return err
	}
	return s.dropParts(parts, h)
}

func decodeFlushSeal(b []byte) (p phase, parts uint32, err error) {
	r := reader{b: b}
	p = phase(r.byte())
	parts = uint32(r.below(1 << 32))
	if p != phaseMaking && p != phaseRemoving {
		r.fail()
	}
	return p, parts, r.end("the seal of a flush")
}

// endFlush finishes a flush that a kill interrupted, or takes it back.
func (s *Store) endFlush(p phase, keys []op, parts uint32) error {
	s.redoLock.Lock()
	defer s.redoLock.Unlock()
	var dels []op
	for _, o := range keys {
		if o.del == (p == phaseRemoving) {
			dels = append(dels, op{key: o.key, del: true})
		}
	}
	s.log.Info("ending an interrupted write", "height", s.head.link.Height, "taken back", p == phaseMaking)
	if err := s.writeAll(dels, &s.head); err != nil {
		return fmt.Errorf("end an interrupted write: %w", err)
	}
	return s.unseal(parts, &s.head)
}
