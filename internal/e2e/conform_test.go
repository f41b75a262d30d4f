package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub/hubtest"
	"github.com/ourotail/ourotail/query"
)

// TestContract_5_5_NodeFollowerConforms holds the follower, over a real socket, to
// the suite that every provider is held to.
func TestContract_5_5_NodeFollowerConforms(t *testing.T) {
	hubtest.Run(t, func(t *testing.T) hubtest.Fixture { return newFixture(t) })
}

// fixture is a follower of a served chain that transactions can be ordered on.
type fixture struct {
	*ourotail.Follower
	t      *testing.T
	n      *node
	seen   chan chain.Point // the head after the newest batch, once that is delivered
	at     chain.Point
	cancel context.CancelFunc
	ran    chan error
}

func newFixture(t *testing.T) *fixture {
	n := generated(t, forge.Options{Seed: 55, K: 12, EpochBlocks: 10, Eras: []forge.EraSpan{{Era: chain.Babbage, Epochs: 3}, {Era: chain.Conway}}}, 30)
	f := &fixture{t: t, n: n, seen: make(chan chain.Point, 1), ran: make(chan error, 1)}
	cfg := n.config(t, t.TempDir())
	// The brake is asked between batches, after what they did has been delivered.
	cfg.Brake = func(context.Context) error {
		select {
		case <-f.seen:
		default:
		}
		f.seen <- f.State().Head.Point
		return nil
	}
	f.Follower = open(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	f.cancel = cancel
	go func() { f.ran <- f.Run(ctx) }()
	if err := f.settled(nil); err != nil {
		t.Fatal(err)
	}
	// Before the indexes are built a seed may read everything.
	for !f.State().Index.Built {
		if err := f.Tick(1); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// settled waits until what the chain did has been published.
func (f *fixture) settled(err error) error {
	for at := f.at; err == nil && at != f.n.chain.Tip().Point; f.at = at {
		select {
		case at = <-f.seen:
		case err = <-f.ran:
			f.ran <- err
			err = fmt.Errorf("following ended: %w", err)
		}
	}
	return err
}

// Submit implements hubtest.Fixture.
func (f *fixture) Submit(tx hubtest.Tx) (chain.TxID, error) {
	order := forge.Order{Spend: tx.Spend, Fails: tx.Fails}
	for _, p := range tx.Pay {
		order.Pay = append(order.Pay, forge.Payment{Address: p.Address, Lovelace: p.Lovelace})
	}
	ids, err := f.n.chain.Include(order)
	if err != nil {
		return chain.TxID{}, err
	}
	return ids[0], f.settled(nil)
}

// Tick implements hubtest.Fixture.
func (f *fixture) Tick(n int) error { return f.settled(f.n.chain.Extend(n)) }

// Fork implements hubtest.Fixture.
func (f *fixture) Fork(n int) error { return f.settled(f.n.chain.Fork(n, n+1)) }

// Set implements hubtest.Fixture: the oracle knows.
func (f *fixture) Set(q query.UTxO) (rows []*chain.UTxO, err error) {
	set, err := f.n.chain.Oracle().Set(f.n.chain.Tip().Point.Hash)
	if err != nil {
		return nil, err
	}
	for ref, o := range set {
		if u := (&chain.UTxO{Ref: ref, Out: chain.TxOut{Address: o.Address, Lovelace: o.Lovelace, Assets: o.Assets}}); q.Match(u) {
			rows = append(rows, u)
		}
	}
	slices.SortFunc(rows, func(a, b *chain.UTxO) int { return a.Ref.Compare(b.Ref) })
	return rows, nil
}

// Close implements hubtest.Fixture.
func (f *fixture) Close() error {
	f.cancel()
	if err := <-f.ran; !errors.Is(err, context.Canceled) {
		return err
	}
	return f.Follower.Close()
}
