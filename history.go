package ourotail

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// What a start after a point, or behind a cursor, is refused for, beside the hub's
// own: *hub.OlderError names the oldest point that there is, hub.ErrResync says that
// the reader has to begin anew.
var (
	// ErrFuture is wrapped when a cursor is above everything that was ever followed:
	// the directory is younger than the cursor, or of another network.
	ErrFuture = errors.New("the cursor lies ahead of this data directory")
	// ErrOtherNetwork is wrapped when a cursor is of another network.
	ErrOtherNetwork = errors.New("the cursor is of another network")
)

// parseToken reads the text of a cursor. Errors wrap chain.ErrCursor (it is damaged)
// or ErrOtherNetwork.
func (f *Follower) parseToken(text string) (chain.Cursor, error) {
	t, err := chain.ParseToken(text)
	if err == nil && t.Magic != f.cfg.Genesis.Magic {
		err = fmt.Errorf("%w: it has the magic %d, here it is %d", ErrOtherNetwork, t.Magic, f.cfg.Genesis.Magic)
	}
	return t.Cursor, err
}

// nearEnough is how many blocks a subscription may lie behind for the hub to give
// it all of them at once: what it begins with must not fill its buffer.
func nearEnough(o *hub.Options) chain.Height {
	if o.Bound == hub.Unbounded {
		return 32
	}
	return 0
}

// begin says where a subscription that does not start at the tip begins: at
// direct, the hub has what it needs; if not, the replay begins behind at, the newest
// block of our chain at or below the start.
func (f *Follower) begin(o *hub.Options) (at chain.At, direct bool, err error) {
	if o.Start == hub.Tip {
		return at, true, nil
	}
	oldest := f.store.Floor()
	m := f.moment()
	defer m.close()
	floor, err := m.published(oldest)
	if err != nil {
		return at, false, err
	}
	at = chain.Origin
	if o.Start != hub.Origin {
		if at, err = f.locate(m, o.After); err != nil {
			return at, false, err
		}
		if at != o.After.At && o.Start == hub.After {
			return at, false, &hub.OrphanedError{Point: o.After.At, Ancestor: at}
		}
	}
	head := f.hub.Tip()
	below := at.Height < floor.Height || at == floor && o.Start != hub.Origin && o.After.Place >= 0 && at.Height > chain.OriginHeight
	if below && !f.store.State().Archive {
		older := &hub.OlderError{Point: at, Oldest: floor}
		if o.Start == hub.Origin {
			older.Point = chain.Origin
		}
		return at, false, older
	}
	return at, !below && head.Height-at.Height <= nearEnough(o), nil
}

// depth is the gate that options ask for (contract 3.9).
func (f *Follower) depth(o *hub.Options) chain.Height {
	if o.NoRollback {
		return max(o.Confirmations, chain.Height(f.cfg.Genesis.K))
	}
	return o.Confirmations
}

// locate returns the newest block of our chain at or below a cursor's.
func (f *Follower) locate(m moment, c chain.Cursor) (chain.At, error) {
	if c.At.IsOrigin() && c.At.Height < 0 {
		return chain.Origin, nil
	}
	at, err := m.ancestor(c.At.Point)
	switch {
	case errors.Is(err, ErrForgotten) && c.At.Height > f.store.Highest():
		return at, fmt.Errorf("%v: %w: its highest block ever had the height %d", c.At, ErrFuture, f.store.Highest())
	case errors.Is(err, ErrForgotten):
		return at, fmt.Errorf("%w: %w", hub.ErrUnknownPoint, err)
	case err != nil:
		return at, err
	case at.Point == c.At.Point && at.Height != c.At.Height:
		return at, fmt.Errorf("%w: %v has the height %d", hub.ErrUnknownPoint, c.At, at.Height)
	}
	return at, nil
}
