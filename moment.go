package ourotail

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store"
)

// moment is our chain and the blocks that were undone as the store had them at one
// moment. Whatever is put together of several answers asks a moment: between two
// answers of the store itself a fork may come.
type moment struct {
	f *Follower
	v *store.Snapshot
}

// moment is now; it must be closed.
func (f *Follower) moment() moment { return moment{f, f.store.Snapshot()} }

func (m moment) close() { m.v.Close() }

// main returns our main block at a height; false if there is none.
func (m moment) main(h chain.Height) (chain.Link, bool, error) {
	return m.v.LinkAt(chain.Position{Height: h})
}

// createdAt names the main block at a height of our chain.
func (m moment) createdAt(h chain.Height) (chain.At, error) {
	l, ok, err := m.main(h)
	if err == nil && !ok {
		err = fmt.Errorf("no block is kept for height %d", h)
	}
	return l.At(), err
}

// published is a point as the hub knows it: a boundary block is replaced by the
// block below it (contract 1.6).
func (m moment) published(at chain.At) (chain.At, error) {
	if at.IsOrigin() {
		return chain.Origin, nil
	}
	l, ok, err := m.main(at.Height)
	if err != nil {
		return at, err
	}
	if !ok {
		return chain.Origin, nil // the genesis boundary block has nothing below it
	}
	return l.At(), nil
}

// createdAt is that of this moment: for a caller who keeps following from moving.
func (f *Follower) createdAt(h chain.Height) (chain.At, error) {
	m := f.moment()
	defer m.close()
	return m.createdAt(h)
}

// published is that of this moment, for what no fork undoes any more: a floor.
func (f *Follower) published(at chain.At) (chain.At, error) {
	m := f.moment()
	defer m.close()
	return m.published(at)
}
