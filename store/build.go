package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/extsort"
)

// The indexes are filled when following has come near the tip: until then most
// outputs are gone before anybody could look for them. Entries are hashes, so that
// filled in the order of the outputs each would land anywhere in the tree, and each
// merge of the tree would write all of it again. So they are sorted first, as runs
// in a file where memory does not hold them, and then written from the least to
// the greatest, between other writes:
//
//  1. in one transaction the head says that they are being built. From here on,
//     whatever happens, every write adds and removes its entries as if they were there;
//  2. the entries of all outputs of that moment are sorted, while others write;
//  3. they are written, save those of outputs that lost theirs since 1, in slices;
//  4. the head says that they are built.
//
// Killed before 4, the next call begins at 2 with the outputs of then: what is
// already there is right, and comes a second time.

// build is what a first pass keeps while it is under way.
type build struct {
	gone map[chain.TxIn]struct{} // outputs whose entries were removed since it began
	many bool                    // too many to keep: look
}

// goneMax bounds what is kept of them, some 30 MB. Near the tip a block spends
// hundreds.
const goneMax = 1 << 18

// note takes down whose entries a write removes.
func (b *build) note(ops []op) {
	if b == nil || b.many {
		return
	}
	for i := range ops {
		if k := ops[i].key; ops[i].del && isIndexKey(k) {
			b.gone[chain.TxInFromKey(k[len(k)-chain.TxInSize:])] = struct{}{}
		}
	}
	if len(b.gone) > goneMax {
		b.gone, b.many = nil, true
	}
}

// lost tells whether an entry is to be left out.
func (b *build) lost(txn *badger.Txn, ref chain.TxIn) (bool, error) {
	if !b.many {
		_, gone := b.gone[ref]
		return gone, nil
	}
	var key [refKeySize]byte
	there, err := get(txn, appendRefKey(key[:0], keyOutput, ref), func([]byte) error { return nil })
	return !there, err
}

// BuildIndexes makes the first pass that fills the indexes. It returns at once when
// they are built. It may run while another goroutine commits: it writes in slices,
// between two writes of others. One that was cancelled, or killed, starts again at
// the next call. What does not fit into an eighth of Options.Memory is sorted in a
// file of Options.Dir, as large as the indexes will be. progress, if given, is
// called now and then with how much is done, from 0 to 1.
func (s *Store) BuildIndexes(ctx context.Context, progress func(done float64)) error {
	if s.opts.Terms == nil {
		return ErrNoTerms
	}
	if progress == nil {
		progress = func(float64) {}
	}
	s.building.Lock()
	defer s.building.Unlock()
	if err := s.buildIndexes(ctx, progress); err != nil {
		return fmt.Errorf("build the indexes: %w", err)
	}
	progress(1)
	return nil
}

func (s *Store) buildIndexes(ctx context.Context, progress func(done float64)) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	txn, err := s.beginBuild()
	if txn == nil {
		return err
	}
	defer s.endBuild()
	entries := extsort.New(s.opts.Dir, s.gatherMax())
	defer func() { err = errors.Join(err, entries.Close()) }()
	tell := func(done float64) {
		s.indexDone.Store(done)
		progress(done)
	}
	if err := s.collect(ctx, txn, entries, tell); err != nil {
		return err
	}
	return s.fillIndexes(ctx, entries, tell)
}

// beginBuild has the head say that the indexes are being built, and returns a view
// of that moment; none if they are.
func (s *Store) beginBuild() (*badger.Txn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	if s.head.index == indexBuilt {
		return nil, nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	s.indexDone.Store(0)
	if err := s.indexState(nil, indexBuilding); err != nil {
		return nil, err
	}
	s.build = &build{gone: map[chain.TxIn]struct{}{}}
	return s.view(), nil
}

func (s *Store) endBuild() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.build = nil
}

// collect sorts the entries of all outputs of a view, and ends it.
func (s *Store) collect(ctx context.Context, txn *badger.Txn, entries *extsort.Sorter, tell func(float64)) error {
	if !s.use.TryRLock() {
		return ErrClosed
	}
	defer s.use.RUnlock()
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyOutput}})
	defer it.Close()
	var ops opset
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		o := chain.Output{Ref: chain.TxInFromKey(item.Key()[1:])}
		if n++; n%sliceMax == 0 {
			if ctx.Err() != nil || s.closed.Load() {
				return errors.Join(ctx.Err(), s.usableNow())
			}
			// Transaction ids are hashes: their place in the key space is the progress.
			tell(float64(binary.BigEndian.Uint64(o.Ref.ID[:])) / math.MaxUint64 / 2)
		}
		ops.reset()
		if err := item.Value(func(v []byte) error {
			if err := decodeOutput(v, &o); err != nil {
				return err
			}
			return ops.entries(s, &o, true)
		}); err != nil {
			return err
		}
		for i := range ops.ops {
			if !entries.Fits(len(ops.ops[i].key)) {
				if err := s.usableNow(); err != nil { // a run is written: is there room?
					return err
				}
			}
			if err := entries.Add(ops.ops[i].key); err != nil {
				return err
			}
		}
	}
	return nil
}

// usableNow is usable for whoever does not hold mu.
func (s *Store) usableNow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable()
}

// sliceMax bounds how long a commit waits for a slice: some tens of milliseconds.
const sliceMax = 8192

// fillIndexes writes the entries in slices; with the last the head says that they
// are there.
func (s *Store) fillIndexes(ctx context.Context, entries *extsort.Sorter, tell func(float64)) error {
	room := s.limits
	room.entries = min(room.entries, sliceMax)
	var slice opset
	n := int64(0)
	write := func(state indexState) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.fillSlice(&slice, state)
		slice.reset()
		return err
	}
	for key, err := range entries.Sorted() {
		if err != nil {
			return err
		}
		slice.set(append(slice.arena.take(len(key)), key...), nil)
		n++
		if !room.fit(&slice) {
			if err := write(indexBuilding); err != nil {
				return err
			}
			tell(0.5 + float64(n)/float64(entries.Len())/2)
		}
	}
	return write(indexBuilt)
}

func (s *Store) fillSlice(slice *opset, state indexState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	kept := slice.ops[:0]
	if err := s.db.View(func(txn *badger.Txn) error {
		for _, o := range slice.ops {
			lost, err := s.build.lost(txn, chain.TxInFromKey(o.key[len(o.key)-chain.TxInSize:]))
			if err != nil {
				return err
			}
			if !lost {
				kept = append(kept, o)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	slice.ops = kept
	return s.indexState(slice, state)
}

// indexState writes entries together with what the head says of the indexes.
func (s *Store) indexState(entries *opset, state indexState) error {
	if entries == nil {
		entries = new(opset)
	}
	if len(entries.ops) == 0 && s.head.index == state {
		return nil
	}
	h := s.head
	h.index = state
	if err := s.step("index"); err != nil {
		return s.broke(err)
	}
	if err := s.apply(entries, &h); err != nil {
		return err
	}
	s.head = h
	s.publish()
	return nil
}

// indexDone is how far a first pass has come, from 0 to 1, for State.
type indexDone struct{ bits atomic.Uint64 }

// Store sets it.
func (d *indexDone) Store(done float64) { d.bits.Store(math.Float64bits(done)) }

// Load returns it.
func (d *indexDone) Load() float64 { return math.Float64frombits(d.bits.Load()) }
