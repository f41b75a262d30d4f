package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/store/internal/segment"
)

// arena hands out byte slices that stay where they are until reset. It grows to
// what the largest use needed and keeps that.
type arena struct {
	chunks [][]byte
	at     int // chunk in use
}

const (
	arenaFirst = 4 << 10
	arenaChunk = 256 << 10 // chunks double up to this
)

// take returns an empty slice with room for n bytes. Appending more than n
// would be caught by the capacity and merely costs an allocation. A nil arena
// allocates.
func (a *arena) take(n int) []byte {
	if a == nil {
		return make([]byte, 0, n)
	}
	for ; a.at < len(a.chunks); a.at++ {
		if c := a.chunks[a.at]; cap(c)-len(c) >= n {
			a.chunks[a.at] = c[:len(c)+n]
			return c[len(c) : len(c) : len(c)+n]
		}
	}
	size := min(arenaFirst<<min(len(a.chunks), 6), arenaChunk)
	a.chunks = append(a.chunks, make([]byte, n, max(n, size)))
	return a.chunks[a.at][:0:n]
}

func (a *arena) reset() {
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.at = 0
}

type op struct {
	key, val []byte
	del      bool
}

// opset is a list of writes in order; a later one to the same key wins. Keys
// and values must stay as they are until it has been applied: they come from
// its arena, or alias the caller's block.
//
// With it goes what is to happen in the files of blocks: what is written there
// before, and which places are wanted after it and which no more.
type opset struct {
	ops   []op
	bytes int64
	arena arena

	blocks     segment.Batch
	keep, drop []segment.Place
}

func (o *opset) reset() {
	clear(o.ops)
	o.ops, o.bytes = o.ops[:0], 0
	o.arena.reset()
	o.blocks.Reset()
	o.keep, o.drop = o.keep[:0], o.drop[:0]
}

// opCost is what Badger counts for an entry: key, value, two bytes of flags,
// ten for the version.
func opCost(key, val int) int64 { return int64(key + val + 12) }

func (o *opset) set(key, val []byte) {
	o.ops = append(o.ops, op{key: key, val: val})
	o.bytes += opCost(len(key), len(val))
}

func (o *opset) del(key []byte) {
	o.ops = append(o.ops, op{key: key, del: true})
	o.bytes += opCost(len(key), 0)
}

// sort puts the writes from the i-th on in the order of their keys, in which the
// tree of the database takes them fastest. None of them may share a key.
func (o *opset) sort(i int) {
	slices.SortFunc(o.ops[i:], func(a, b op) int { return bytes.Compare(a.key, b.key) })
}

// mark and cut let a caller try whether something still fits.
func (o *opset) mark() opMark {
	return opMark{len(o.ops), o.blocks.Len(), len(o.keep), len(o.drop), o.bytes}
}

type opMark struct {
	ops, blocks, keep, drop int
	bytes                   int64
}

func (o *opset) cut(m opMark) {
	clear(o.ops[m.ops:])
	o.ops, o.bytes = o.ops[:m.ops], m.bytes
	o.blocks.Cut(m.blocks)
	o.keep, o.drop = o.keep[:m.keep], o.drop[:m.drop]
}

// store plans the writing of bytes into the files of blocks.
func (o *opset) store(b []byte) (segment.Place, error) {
	p, err := o.blocks.Add(b)
	if err == nil {
		o.keep = append(o.keep, p)
	}
	return p, err
}

// limits of one Badger transaction, with room for the head, the seal and
// Badger's own end marker.
type limits struct {
	entries int
	bytes   int64
	value   int64 // values from here on go to the value log
}

func limitsOf(db *badger.DB) limits {
	return limits{
		entries: int(db.MaxBatchCount()) - 8,
		bytes:   db.MaxBatchSize() - opCost(1, headMax) - 128,
		value:   db.Opts().ValueThreshold,
	}
}

func (l limits) fit(o *opset) bool { return len(o.ops) < l.entries && o.bytes < l.bytes }

// write applies the operations and the head in one transaction that is on disk
// when write returns. The head is written also where it stays as it is: see files.
func (s *Store) write(ops []op, h *head, extra ...op) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	if cap(s.entries) < len(ops) {
		s.entries = make([]badger.Entry, len(ops)+len(ops)/4)
	}
	for i := range ops {
		if err := s.put(txn, &ops[i], &s.entries[i]); err != nil {
			return err
		}
	}
	for i := range extra {
		if err := s.put(txn, &extra[i], new(badger.Entry)); err != nil {
			return err
		}
	}
	if h != nil {
		if err := txn.Set(headKey, appendHead(nil, h)); err != nil {
			return fmt.Errorf("write the head: %w", err)
		}
	}
	if err := s.commitTxn(txn); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return s.sync(ops)
}

// commitTxn waits for Badger, but not for ever: where it cannot make tables it
// lets writers wait until it can.
func (s *Store) commitTxn(txn *badger.Txn) error {
	done := make(chan error, 1)
	txn.CommitWith(func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-s.failing:
		return *s.failure.Load()
	}
}

// sync waits until what was written is on disk.
func (s *Store) sync(ops []op) error {
	if s.wal == nil {
		return nil
	}
	for i := range ops {
		if int64(len(ops[i].val)) >= s.limits.value { // no chain has made one yet
			if err := s.db.Sync(); err != nil {
				return fmt.Errorf("sync the value log: %w", err)
			}
			break
		}
	}
	return s.wal.sync()
}

func (s *Store) put(txn *badger.Txn, o *op, e *badger.Entry) error {
	var err error
	if o.del {
		err = txn.Delete(o.key)
	} else {
		*e = badger.Entry{Key: o.key, Value: o.val}
		err = txn.SetEntry(e)
	}
	if err != nil {
		return fmt.Errorf("write key %.40x: %w", o.key, err)
	}
	return nil
}

// apply makes the operations and the new head true together, in one transaction
// if they fit and through the redo log if they do not. On an error the store is
// broken: only Open knows what is on disk.
func (s *Store) apply(o *opset, h *head) (err error) {
	if o.blocks.Len() > 0 {
		if err := s.step("blocks"); err != nil {
			return s.broke(err)
		}
		if err := o.blocks.Write(); err != nil {
			return s.broke(err)
		}
	}
	if s.limits.fit(o) {
		err = s.step("write")
		if err == nil {
			err = s.write(o.ops, h)
		}
	} else {
		err = s.redo(o, h)
	}
	if err == nil {
		s.recent.apply(o.ops)
		s.build.note(o.ops)
	}
	return s.broke(err)
}

// step is where tests kill the process between transactions.
func (s *Store) step(name string) error {
	if s.hook == nil {
		return nil
	}
	return s.hook(name)
}

// broke remembers a failed write.
func (s *Store) broke(err error) error {
	if err != nil && s.broken == nil {
		s.broken = err
	}
	return err
}

// usable is asked before every write.
func (s *Store) usable() error {
	switch {
	case s.closed.Load():
		return ErrClosed
	case s.broken != nil:
		return fmt.Errorf("%w: %w", ErrBroken, s.broken)
	case s.failure.Load() != nil:
		return fmt.Errorf("%w: %w", ErrBroken, *s.failure.Load())
	case s.opts.Room != nil:
		return s.opts.Room()
	}
	return nil
}

// get reads a value within fn; false if the key is not there.
func get(txn *badger.Txn, key []byte, fn func(v []byte) error) (bool, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read key %.40x: %w", key, err)
	}
	return true, item.Value(fn)
}

// each calls fn with every key of a prefix and its value, in ascending order.
func each(txn *badger.Txn, prefix []byte, fn func(key, value []byte) error) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if err := item.Value(func(v []byte) error { return fn(item.Key(), v) }); err != nil {
			return err
		}
	}
	return nil
}
