package store

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// Snapshot is the store at one head, whatever is committed after it was opened.
// Any number of goroutines may read it. While it is open Badger keeps what it
// shows: one that stays open for hours keeps hours of garbage.
type Snapshot struct {
	store  *Store
	txn    *badger.Txn
	blocks *segment.View
	head   head
	err    error // why it shows nothing
	refs   atomic.Int32

	mu      sync.Mutex
	walkers []*walker // not lent
	packs   []pack    // read last, see remember
}

// Snapshot opens the store at its present head. It waits only for the few
// moments in which an oversized block is between two heads. It must be closed. A
// snapshot that cannot be read says so at every method that returns an error.
func (s *Store) Snapshot() *Snapshot {
	v := &Snapshot{store: s, head: emptyHead()}
	v.refs.Store(1)
	if !s.use.TryRLock() {
		v.err = ErrClosed
		return v
	}
	defer s.use.RUnlock()
	for { // what the database names must be in the files that we see
		v.blocks = s.blocks.View()
		if v.txn = s.view(); v.blocks == s.blocks.View() {
			break
		}
		v.txn.Discard()
	}
	_, v.err = get(v.txn, headKey, func(b []byte) (err error) {
		v.head, err = decodeHead(b)
		return err
	})
	return v
}

// begin comes before every reading, end after it: a closing store waits for those
// under way and lets no more begin.
func (v *Snapshot) begin() error {
	if v.err != nil {
		return v.err
	}
	if !v.store.use.TryRLock() {
		return ErrClosed
	}
	return nil
}

func (v *Snapshot) end() { v.store.use.RUnlock() }

// Retain adds a holder: Close must be called once more.
func (v *Snapshot) Retain() *Snapshot {
	v.refs.Add(1)
	return v
}

// Close gives the snapshot up for one holder; the last one ends it.
func (v *Snapshot) Close() {
	if v.refs.Add(-1) != 0 || v.txn == nil || !v.store.use.TryRLock() {
		return // closed with the store
	}
	defer v.store.use.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, w := range v.walkers {
		w.close()
	}
	v.walkers = nil
	v.txn.Discard()
}

// Head returns the newest block; the zero link with OriginHeight if there is none.
func (v *Snapshot) Head() chain.Link { return v.head.link }

// UTxOCount returns how many outputs are unspent, and the lovelace in them.
func (v *Snapshot) UTxOCount() (outputs int64, lovelace uint64) {
	return int64(v.head.utxos), v.head.lovelace
}

// Get returns an unspent output; false if it is not there. Its bytes are the
// caller's.
func (v *Snapshot) Get(ref chain.TxIn) (o chain.Output, ok bool, err error) {
	if err := v.begin(); err != nil {
		return o, false, err
	}
	defer v.end()
	o.Ref = ref
	ok, err = lookUp(v.txn, v.head.marks > 0, nil, &o)
	return o, ok, err
}

// Spent returns an output that was spent but is still kept, and who spent it:
// in any store while a rollback may bring it back, in an archive for ever. False
// if there is none.
func (v *Snapshot) Spent(ref chain.TxIn) (o chain.Output, by Spender, ok bool, err error) {
	if err := v.begin(); err != nil {
		return o, by, false, err
	}
	defer v.end()
	o.Ref = ref
	ok, err = get(v.txn, appendRefKey(nil, keyMark, ref), func(b []byte) (err error) {
		by, err = decodeSpender(b)
		return err
	})
	if err != nil {
		return o, by, false, err
	}
	if ok {
		ok, err = get(v.txn, appendRefKey(nil, keyOutput, ref), func(b []byte) error {
			return decodeOutput(append([]byte(nil), b...), &o)
		})
		return o, by, ok, err
	}
	ok, err = get(v.txn, appendRefKey(nil, keyGone, ref), func(b []byte) (err error) {
		by, err = decodeGone(append([]byte(nil), b...), &o)
		return err
	})
	return o, by, ok, err
}

// Effects rebuilds a block of our chain that has a record into dst, whose lists
// it reuses: link, bytes, transactions, what it spent and made with contents. The
// bytes are the caller's. It returns an error that wraps ErrNoRecord if there is
// no record: the block is too old, or was too far from the tip when it came.
func (v *Snapshot) Effects(at chain.Position, dst *chain.Effects) error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	var rec record
	found, err := get(v.txn, appendPositionKey(nil, keyRecord, at), rec.decode)
	if err != nil {
		return err
	}
	if !found || at.Compare(v.head.base.Position()) <= 0 {
		return fmt.Errorf("%w at height %d", ErrNoRecord, at.Height)
	}
	dst.Link, dst.Txs, dst.Journal = rec.link, rec.txs, true
	if dst.Raw, err = readBlock(v.blocks, rec.raw); err != nil {
		return fmt.Errorf("block %s: %w", rec.link.At(), err)
	}
	if dst.Spent, err = v.contents(rec.spent, dst.Spent[:0]); err != nil {
		return fmt.Errorf("block %s: %w", rec.link.At(), err)
	}
	if dst.Created, err = v.contents(rec.created, dst.Created[:0]); err != nil {
		return fmt.Errorf("block %s: %w", rec.link.At(), err)
	}
	return nil
}

// contents reads outputs that must be there, spent or not.
func (v *Snapshot) contents(refs []chain.TxIn, dst []chain.Output) ([]chain.Output, error) {
	for _, ref := range refs {
		o := chain.Output{Ref: ref}
		found, err := lookUp(v.txn, false, nil, &o)
		if err == nil && !found {
			err = fmt.Errorf("%w: output %s is gone", ErrDamaged, ref)
		}
		if err != nil {
			return dst, err
		}
		dst = append(dst, o)
	}
	return dst, nil
}
