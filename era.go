package ourotail

import (
	"errors"
	"fmt"
	"sort"

	"github.com/ourotail/ourotail/chain"
)

// ErrNoEra is wrapped when no block of an era can be named: it has not begun in
// this data directory, or the chain passed it over.
var ErrNoEra = errors.New("no block of that era")

// BeforeEra returns the block below the first one of an era, as subscriptions know
// it: origin if the chain begins with that era. Eras only ever grow along a chain, so
// it is found by halving. Errors wrap ErrNoEra.
func (f *Follower) BeforeEra(era chain.Era) (chain.At, error) {
	v := f.store.Snapshot() // a fork must not come between
	defer v.Close()
	head, first := v.Head(), f.cfg.Genesis.FirstHeight
	mainAt := func(h chain.Height) (chain.Link, error) {
		l, ok, err := v.LinkAt(chain.Position{Height: h})
		if err == nil && !ok {
			err = fmt.Errorf("no block is kept for height %d", h)
		}
		return l, err
	}
	if head.Height < first {
		return chain.Origin, fmt.Errorf("%w: %s has no block yet", ErrNoEra, f.path)
	}
	var failed error
	n := sort.Search(int(head.Height-first)+1, func(i int) bool {
		l, err := mainAt(first + chain.Height(i))
		if failed == nil {
			failed = err
		}
		return failed != nil || l.Era >= era
	})
	if failed != nil {
		return chain.Origin, failed
	}
	at := first + chain.Height(n)
	if at > head.Height {
		return chain.Origin, fmt.Errorf("%w: %s has not begun in %s, which is at block %d, of %s", ErrNoEra, era, f.path, head.Height, head.Era)
	}
	l, err := mainAt(at)
	switch {
	case err != nil:
		return chain.Origin, err
	case l.Era != era:
		return chain.Origin, fmt.Errorf("%w: this chain has none of %s, its block %d is the first above it, of %s", ErrNoEra, era, at, l.Era)
	case at == first:
		return chain.Origin, nil
	}
	l, err = mainAt(at - 1)
	return l.At(), err
}
