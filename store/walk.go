package store

import (
	"fmt"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// walker goes down our chain, newest block first. A block's link is in its
// record or in a pack of points, and the two interleave where records wait to be
// swept.
type walker struct {
	records, packs *badger.Iterator
	record         chain.Link
	pack           pack
	at             int // index in pack
	hasRecord      bool
	hasPack        bool
}

func newWalker(txn *badger.Txn) *walker {
	opt := func(kind byte) badger.IteratorOptions {
		return badger.IteratorOptions{Prefix: []byte{kind}, Reverse: true}
	}
	return &walker{records: txn.NewIterator(opt(keyRecord)), packs: txn.NewIterator(opt(keyPoints))}
}

func (w *walker) close() {
	w.records.Close()
	w.packs.Close()
}

// seek goes to the newest block at or below the position.
func (w *walker) seek(p chain.Position) error {
	w.records.Seek(appendPositionKey(nil, keyRecord, p))
	if err := w.readRecord(); err != nil {
		return err
	}
	w.packs.Seek(appendPositionKey(nil, keyPoints, p))
	if err := w.readPack(); err != nil || !w.hasPack {
		return err
	}
	w.at = w.pack.below(p)
	return nil
}

func (w *walker) readRecord() error {
	if w.hasRecord = w.records.Valid(); !w.hasRecord {
		return nil
	}
	return w.records.Item().Value(func(v []byte) (err error) {
		w.record, err = recordLink(v)
		return err
	})
}

func (w *walker) readPack() (err error) {
	if w.hasPack = w.packs.Valid(); !w.hasPack {
		return nil
	}
	item := w.packs.Item()
	value, err := item.ValueCopy(nil)
	if err != nil {
		return err
	}
	w.pack, err = decodePack(item.KeyCopy(nil), value)
	w.at = w.pack.len() - 1
	return err
}

// link returns the block it stands at; false below the first.
func (w *walker) link() (chain.Link, bool) {
	switch {
	case w.hasRecord && (!w.hasPack || w.record.Position().Compare(w.pack.position(w.at)) > 0):
		return w.record, true
	case w.hasPack:
		return w.pack.link(w.at), true
	}
	return originLink(), false
}

// next goes one block down.
func (w *walker) next() error {
	l, ok := w.link()
	switch {
	case !ok:
		return nil
	case w.hasRecord && w.record == l:
		w.records.Next()
		return w.readRecord()
	case w.at > 0:
		w.at--
		return nil
	}
	w.packs.Next()
	return w.readPack()
}

// walker lends an iterator pair, for one goroutine at a time; opening one costs
// more than a look-up.
func (v *Snapshot) walker() *walker {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.walkers); n > 0 {
		w := v.walkers[n-1]
		v.walkers = v.walkers[:n-1]
		return w
	}
	return newWalker(v.txn)
}

func (v *Snapshot) put(w *walker) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.walkers = append(v.walkers, w)
}

// Links returns the newest n links oldest first; see Store.Links.
func (v *Snapshot) Links(n int) (links []chain.Link, whole bool, err error) {
	if err := v.begin(); err != nil {
		return nil, false, err
	}
	defer v.end()
	w := v.walker()
	defer v.put(w)
	if err := w.seek(v.head.link.Position()); err != nil {
		return nil, false, err
	}
	for {
		l, ok := w.link()
		if !ok {
			slices.Reverse(links)
			return links, true, nil
		}
		if len(links) == n {
			slices.Reverse(links)
			return links, false, nil
		}
		if len(links) > 0 && !follows(l, links[len(links)-1]) {
			return nil, false, fmt.Errorf("%w: block %s does not follow %s", ErrDamaged, links[len(links)-1].At(), l.At())
		}
		links = append(links, l)
		if err := w.next(); err != nil {
			return nil, false, err
		}
	}
}

// LinkAt returns the block of our chain at a position; false if there is none.
func (v *Snapshot) LinkAt(p chain.Position) (chain.Link, bool, error) {
	if err := v.begin(); err != nil {
		return originLink(), false, err
	}
	defer v.end()
	if p.Compare(v.head.swept) > 0 {
		l := originLink()
		found, err := get(v.txn, appendPositionKey(nil, keyRecord, p), func(b []byte) (err error) {
			l, err = recordLink(b)
			return err
		})
		if found || err != nil || p.Compare(v.head.base.Position()) > 0 {
			return l, found, err
		}
	}
	swept := p.Compare(v.head.swept) <= 0 // then it is in a pack
	if swept {
		if l, ok := v.remembered(p); ok {
			return l, true, nil
		}
	}
	w := v.walker()
	defer v.put(w)
	if err := w.seek(p); err != nil {
		return originLink(), false, err
	}
	if swept && w.hasPack {
		v.remember(w.pack)
	}
	if l, ok := w.link(); ok && l.Position() == p {
		return l, true, nil
	}
	return originLink(), false, nil
}

// packsKept is how many packs a snapshot remembers, 5 kB each: who reads the past
// asks for block after block, and in between for those that made what they spend.
const packsKept = 4

// remembered looks for a block in the packs that were read last.
func (v *Snapshot) remembered(p chain.Position) (chain.Link, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range v.packs {
		if p.Compare(k.first) < 0 || p.Height > k.first.Height+chain.Height(k.len()) {
			continue
		}
		if l := k.link(k.below(p)); l.Position() == p {
			return l, true
		}
	}
	return originLink(), false
}

func (v *Snapshot) remember(k pack) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.packs) == packsKept {
		v.packs = append(v.packs[:0], v.packs[1:]...)
	}
	v.packs = append(v.packs, k)
}

// Find returns the block of our chain with exactly this point, however old;
// false if there is none. Slots never fall along a chain, so it looks for the
// newest block that is not behind the point's slot, by halves.
func (v *Snapshot) Find(p chain.Point) (chain.Link, bool, error) {
	if err := v.begin(); err != nil {
		return originLink(), false, err
	}
	defer v.end()
	if p.IsOrigin() {
		return originLink(), true, nil
	}
	w := v.walker()
	defer v.put(w)
	low, high := chain.OriginHeight, v.head.link.Height // low is not behind the slot
	for low < high {
		mid := low + (high-low+1)/2
		if err := w.seek(chain.Position{Height: mid}); err != nil {
			return originLink(), false, err
		}
		if l, ok := w.link(); !ok || l.Point.Slot <= p.Slot {
			low = mid
		} else {
			high = mid - 1
		}
	}
	if err := w.seek(chain.Position{Height: low, Boundary: true}); err != nil {
		return originLink(), false, err
	}
	for {
		l, ok := w.link()
		if !ok || l.Point.Slot < p.Slot {
			return originLink(), false, nil
		}
		if l.Point == p {
			return l, true, nil
		}
		if err := w.next(); err != nil {
			return originLink(), false, err
		}
	}
}
