package ourotail

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// ErrForgotten is wrapped when a point is neither on our chain nor among the
// blocks undone less than k below the highest: a reader who stands there has to
// start over.
var ErrForgotten = errors.New("the point is not known: it never was ours, or was undone too long ago")

// Ancestor returns the newest block of our chain at or below a point that we
// once stood at, as subscriptions know it: the point itself, or where its branch
// left our chain if a fork undid it, in this process or an earlier one. A reader
// that stood at the point discards what lies above the ancestor and goes on
// behind it. Errors wrap ErrForgotten.
func (f *Follower) Ancestor(p chain.Point) (chain.At, error) {
	m := f.moment()
	defer m.close()
	return m.ancestor(p)
}

func (m moment) ancestor(p chain.Point) (chain.At, error) {
	if p.IsOrigin() {
		return chain.Origin, nil
	}
	if l, ok, err := m.v.Find(p); err != nil {
		return chain.Origin, err
	} else if ok {
		return m.published(l.At())
	}
	hash := p.Hash
	for {
		l, ok, err := m.v.OrphanLink(hash)
		if err == nil && !ok {
			err = fmt.Errorf("%s: %w", p, ErrForgotten)
		}
		if err != nil {
			return chain.Origin, err
		}
		if below, ok, err := m.below(l); ok || err != nil {
			return below, err
		}
		hash = l.Parent
	}
}

// below returns the block under an undone one, as subscriptions know it; false
// if that is not on our chain either.
func (m moment) below(l chain.Link) (chain.At, bool, error) {
	at := []chain.Position{{Height: l.Height - 1, Boundary: true}, {Height: l.Height - 1}}
	if l.Boundary {
		at = []chain.Position{{Height: l.Height}}
	}
	for _, pos := range at {
		b, ok, err := m.v.LinkAt(pos)
		if err != nil {
			return chain.Origin, false, err
		}
		if ok && b.Point.Hash == l.Parent {
			at, err := m.published(b.At())
			return at, err == nil, err
		}
	}
	if l.Height > m.f.cfg.Genesis.FirstHeight {
		return chain.Origin, false, nil
	}
	// The chain's first block has only the genesis below it.
	_, ok, err := m.v.OrphanLink(l.Parent)
	return chain.Origin, err == nil && !ok, err
}
