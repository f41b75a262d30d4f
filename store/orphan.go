package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// orphan is a block that was undone: what it did is kept for as long as a fork
// could come back to it, for readers that stood on it and must take it back. Its
// value under keyOrphan is the place of the contents, then the record as it was.
type orphan struct {
	link     chain.Link
	raw      segment.Place // the block's bytes
	contents segment.Place // of the outputs that it spent and made, as in the database, in the order of its record
}

func readOrphan(b []byte) (o orphan, err error) {
	r := reader{b: b}
	o.contents = r.place()
	if r.bad {
		return o, r.end("an orphan")
	}
	o.link, o.raw, err = recordStart(r.b)
	return o, err
}

func decodeOrphan(b []byte, rec *record) (contents segment.Place, err error) {
	r := reader{b: b}
	contents = r.place()
	if r.bad {
		return contents, r.end("an orphan")
	}
	return contents, rec.decode(r.b)
}

// forget removes an orphan in the transaction being planned.
func (s *Store) forget(o orphan) {
	hash := o.link.Point.Hash
	s.ops.del(appendOrphanKey(s.ops.arena.take(33), hash))
	s.ops.drop = append(s.ops.drop, o.raw, o.contents)
	s.known = append(s.known, hash)
}

// planOrphans adds to s.ops what is due of the orphans, as far as it fits.
func (s *Store) planOrphans(highest chain.Height, old bool) {
	for _, o := range s.orphansDue(highest, old) {
		if !s.limits.fit(&s.ops) {
			return
		}
		s.forget(o)
	}
}

// orphansDue returns the undone blocks that need not be remembered: those too deep
// for a fork to come back to, and all but the k undone last, the depth of the
// deepest fork. A chain that forks over and over in one place would otherwise leave
// more of them than of itself; only where old is set, since blocks that are still
// to come may be among them. Those that the plan puts back on our chain are none.
func (s *Store) orphansDue(highest chain.Height, old bool) (due []orphan) {
	deep := highest - s.opts.K
	var rest []orphan
	for _, o := range s.orphans {
		switch {
		case slices.Contains(s.known, o.link.Point.Hash):
		case o.link.Height < deep:
			due = append(due, o)
		default:
			rest = append(rest, o)
		}
	}
	over := len(rest) - int(s.opts.K)
	if over <= 0 || !old {
		return due
	}
	slices.SortFunc(rest, func(a, b orphan) int { // contents are written as blocks are undone
		return cmp.Or(cmp.Compare(a.contents.File, b.contents.File), cmp.Compare(a.contents.Offset, b.contents.Offset))
	})
	return append(due, rest[:over]...)
}

// keepContents plans writing down the outputs of s.rec, which all must be there.
func (s *Store) keepContents(txn *badger.Txn) (segment.Place, error) {
	b := binary.AppendUvarint(nil, uint64(len(s.rec.spent)+len(s.rec.created))) // never empty: places tell the order
	for _, refs := range [][]chain.TxIn{s.rec.spent, s.rec.created} {
		for _, ref := range refs {
			found, err := get(txn, appendRefKey(nil, keyOutput, ref), func(v []byte) error {
				b = binary.AppendUvarint(b, uint64(len(v)))
				b = append(b, v...)
				return nil
			})
			if err == nil && !found {
				err = fmt.Errorf("%w: output %s is gone", ErrDamaged, ref)
			}
			if err != nil {
				return segment.Place{}, err
			}
		}
	}
	return s.ops.store(b)
}

// decodeContents fills in outputs from what keepContents wrote; they alias b.
func decodeContents(b []byte, rec *record, dst *chain.Effects) error {
	r := reader{b: b}
	if n := r.uvarint(); n != uint64(len(rec.spent)+len(rec.created)) {
		r.fail()
	}
	read := func(refs []chain.TxIn, to []chain.Output) ([]chain.Output, error) {
		for _, ref := range refs {
			o := chain.Output{Ref: ref}
			v := r.bytes(r.count(1))
			if r.bad {
				break
			}
			if err := decodeOutput(v, &o); err != nil {
				return to, err
			}
			to = append(to, o)
		}
		return to, nil
	}
	var err error
	if dst.Spent, err = read(rec.spent, dst.Spent[:0]); err != nil {
		return err
	}
	if dst.Created, err = read(rec.created, dst.Created[:0]); err != nil {
		return err
	}
	return r.end("the outputs of an orphan")
}

// Orphans returns the blocks that were undone and are kept, in no order.
func (v *Snapshot) Orphans() (links []chain.Link, err error) {
	if err := v.begin(); err != nil {
		return nil, err
	}
	defer v.end()
	err = each(v.txn, []byte{keyOrphan}, func(_, b []byte) error {
		o, err := readOrphan(b)
		links = append(links, o.link)
		return err
	})
	return links, err
}

// OrphanLink returns the link of a block that was undone; false if it is not kept, or
// not any more.
func (v *Snapshot) OrphanLink(hash chain.Hash) (l chain.Link, ok bool, err error) {
	if err := v.begin(); err != nil {
		return l, false, err
	}
	defer v.end()
	ok, err = get(v.txn, appendOrphanKey(nil, hash), func(b []byte) error {
		o, err := readOrphan(b)
		l = o.link
		return err
	})
	return l, ok, err
}

// Orphan rebuilds a block that was undone, as Effects does one of our chain. It
// returns an error that wraps ErrNoRecord if it is not kept, or not any more.
func (v *Snapshot) Orphan(hash chain.Hash, dst *chain.Effects) error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	var rec record
	var contents segment.Place
	found, err := get(v.txn, appendOrphanKey(nil, hash), func(b []byte) (err error) {
		contents, err = decodeOrphan(b, &rec)
		return err
	})
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w of the undone block %s", ErrNoRecord, hash)
	}
	dst.Link, dst.Txs, dst.Journal = rec.link, rec.txs, true
	b, err := readBlock(v.blocks, contents)
	if err == nil {
		err = decodeContents(b, &rec, dst)
	}
	if err == nil {
		dst.Raw, err = readBlock(v.blocks, rec.raw)
	}
	if err != nil {
		return fmt.Errorf("undone block %s: %w", rec.link.At(), err)
	}
	return nil
}
