package ourotail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// verdict tells whether the scripts of a transaction passed.
type verdict uint8

const (
	undecided verdict = iota
	passed
	failed
)

func verdictOf(valid bool) verdict {
	if valid {
		return passed
	}
	return failed
}

// settledTx answers for transactions below the hub's window, from the outputs that
// are kept of them, and from their block if those do not tell. Nothing is kept of one
// whose outputs are all spent (in an archive: that made none), so it can speak for
// the floor and no further.
func (f *Follower) settledTx(id chain.TxID) (at chain.At, valid, found bool, oldest chain.At) {
	oldest, err := f.published(f.store.State().Floor)
	if err != nil {
		return at, false, false, f.store.State().Floor
	}
	ctx, cancel := context.WithTimeout(context.Background(), settledPatience)
	defer cancel()
	v := f.store.Snapshot()
	s, found, err := f.made(ctx, v, id)
	var below chain.At
	if err == nil && found && s.height <= oldest.Height { // the window has what is above
		if at, err = f.linkAt(v, s.height); err == nil {
			below, err = f.linkAt(v, s.height-1)
		}
	}
	v.Close() // before the node is waited for
	if err != nil || !found || s.height > oldest.Height {
		return chain.At{}, false, false, oldest // what cannot be read is not known
	}
	if s.verdict == undecided {
		if s.verdict, err = f.verdictInBlock(ctx, below, at, id); err != nil {
			f.cfg.Logger.Warn("whether the scripts of a transaction passed is not known", "tx", id, "block", at, "error", err)
			return chain.At{}, false, false, oldest
		}
	}
	return at, s.verdict == passed, true, oldest
}

// settledPatience bounds how long a question about the past waits for the node.
const settledPatience = 10 * time.Second

// spot is where a transaction is.
type spot struct {
	id      chain.TxID
	height  chain.Height // of its block
	verdict verdict
}

// made finds a transaction by the outputs that are kept of it.
func (f *Follower) made(ctx context.Context, v *store.Snapshot, id chain.TxID) (s spot, ok bool, err error) {
	s.id = id
	n, lowest, era := 0, uint32(0), chain.Byron
	err = v.Made(ctx, id, func(o *chain.Output) error {
		if n++; n == 1 || o.Ref.Index < lowest {
			lowest = o.Ref.Index
		}
		s.height, era = o.Height, o.Era
		return nil
	})
	if err != nil || n == 0 {
		return s, false, err
	}
	switch {
	case era < chain.Babbage, n > 1:
		// One whose scripts failed makes a single output, its collateral return, and
		// before Babbage none (Babbage ledger, collOuts).
		s.verdict = passed
	case lowest > 0 && f.store.State().Archive:
		// The return has the index behind those not made. The outputs of one that
		// passed begin with 0, and an archive has them all.
		s.verdict = failed
	}
	return s, true, nil
}

// linkAt is the block at a height, which may be that of origin.
func (f *Follower) linkAt(v *store.Snapshot, h chain.Height) (chain.At, error) {
	if h < f.cfg.Genesis.FirstHeight {
		return chain.Origin, nil
	}
	l, ok, err := v.LinkAt(chain.Position{Height: h})
	if err == nil && !ok {
		err = fmt.Errorf("no block is kept for height %d", h)
	}
	return l.At(), err
}

// verdictInBlock has the node, or its files, tell what the store does not: it looks
// into the transaction's block, which stands on the one below.
func (f *Follower) verdictInBlock(ctx context.Context, below, at chain.At, id chain.TxID) (verdict, error) {
	past, err := f.dialPast(ctx, below)
	if err != nil {
		return undecided, err
	}
	defer past.conn.Close()
	for {
		m, err := past.conn.Next(ctx)
		if err != nil {
			return undecided, err
		}
		v, err := f.lookInto(m, at, id)
		if m.Release != nil {
			m.Release()
		}
		if v != undecided || err != nil {
			return v, err
		}
	}
}

// lookInto is undecided if the block is not among the messages.
func (f *Follower) lookInto(m chain.Messages, at chain.At, id chain.TxID) (verdict, error) {
	b := ledger.Block{ByronEpochSlots: f.cfg.Genesis.ByronEpochSlots}
	for _, msg := range m.List {
		switch msg.Kind {
		case chain.RollBackward: // the answer to the intersection
			continue
		case chain.AwaitReply:
			return undecided, errors.New("the node says that nothing follows: it is behind us")
		}
		if err := b.Walk(msg.Raw); err != nil {
			return undecided, fmt.Errorf("the node serves a block that cannot be read: %w", err)
		}
		if b.Point != at.Point {
			if b.Boundary {
				continue
			}
			return undecided, fmt.Errorf("the node serves %v instead of %v", b.At(), at)
		}
		for i := range b.Txs {
			if b.Txs[i].ID == id {
				return verdictOf(b.Txs[i].Valid), nil
			}
		}
		return undecided, fmt.Errorf("%w: %v has no transaction %v", store.ErrDamaged, at, id)
	}
	return undecided, nil
}

// decide waits for the node to tell the verdict, as long as waiting can help.
func (f *Follower) decide(ctx context.Context, below, at chain.At, id chain.TxID) (verdict, error) {
	tips, err := f.SubscribeTips()
	if err != nil {
		return undecided, err
	}
	defer tips.Cancel()
	for {
		v, err := f.verdictInBlock(ctx, below, at, id)
		if err == nil || ctx.Err() != nil || !chainsync.Retryable(err) {
			return v, err
		}
		if _, _, ended := tips.Poll(); ended != nil {
			return v, ended
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}
