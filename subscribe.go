package ourotail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
	"github.com/ourotail/ourotail/resolve"
)

// openHub makes the hub and fills its window from the journal, so that what it
// knows does not depend on when this process started.
func (f *Follower) openHub(ctx context.Context) error {
	g, st := f.cfg.Genesis, f.store.State()
	f.life, f.die = context.WithCancel(context.WithoutCancel(ctx))
	f.journal = &journalBlocks{f: f, builder: resolve.Builder{ByronEpochSlots: g.ByronEpochSlots}}
	f.hub = hub.New(f.hubConfig(f.journal))
	m := f.moment()
	defer m.close()
	floor, err := m.published(st.Floor)
	if err != nil {
		return err
	}
	orphans, err := m.orphans()
	if err != nil {
		return fmt.Errorf("filling the hub: %w", err)
	}
	if err := f.hub.Restore(hub.State{Tip: floor, Highest: st.Highest, Floor: floor, Orphans: orphans}); err != nil {
		return fmt.Errorf("filling the hub: %w", err)
	}
	// The names are enough: contents are read when somebody needs them.
	links, _, err := f.store.Links(2*int(st.Head.Height-floor.Height) + 64)
	if err != nil {
		return fmt.Errorf("filling the hub from the journal: %w", err)
	}
	for _, l := range links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.Boundary || l.Height <= floor.Height {
			continue
		}
		txs, err := m.v.Txs(l.Position())
		if err == nil {
			_, _, err = f.hub.Pass(l.At(), txs)
		}
		if err != nil {
			return fmt.Errorf("filling the hub from the journal: %w", err)
		}
	}
	return nil
}

// hubConfig is that of the live hub, and of those that replay.
func (f *Follower) hubConfig(contents hub.Contents) hub.Config {
	g := f.cfg.Genesis
	k := chain.Height(g.K)
	return hub.Config{
		Capabilities: hub.Capabilities{
			Kinds:            map[hub.Kind]bool{hub.UTxOs: true, hub.Txs: true, hub.Blocks: true, hub.Tips: true, hub.Params: true, hub.Statuses: true},
			Indexed:          query.KindsOf(chain.SourceAddress, chain.SourcePayment, chain.SourceStake, chain.SourcePolicy, chain.SourceAsset, chain.SourceTx, chain.SourceInput),
			Scan:             true,
			Replay:           true,
			Horizon:          k,
			MaxConfirmations: k,
			Idle:             true,
		},
		FirstHeight: g.FirstHeight,
		BehindFirst: true,
		Genesis:     f.genesisRows,
		History:     f.settledTx,
		Contents:    contents,
		Logger:      f.cfg.Logger,
	}
}

// journalBlocks rebuilds blocks from the journal for the hub, which holds only what
// its deepest gate needs: those of our chain, and those that were undone.
type journalBlocks struct {
	f       *Follower
	mu      sync.Mutex
	builder resolve.Builder
}

// Block implements hub.Contents.
func (c *journalBlocks) Block(at chain.At) (*chain.AppliedBlock, error) {
	m := c.f.moment()
	defer m.close()
	return c.block(m, at)
}

func (c *journalBlocks) block(m moment, at chain.At) (*chain.AppliedBlock, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e chain.Effects
	l, ok, err := m.main(at.Height)
	switch {
	case err != nil:
		return nil, err
	case ok && l.Point == at.Point:
		if err := m.v.Effects(chain.Position{Height: at.Height}, &e); err != nil {
			return nil, err
		}
		return c.builder.Build(&e, m.createdAt)
	}
	if err := m.v.Orphan(at.Point.Hash, &e); err != nil {
		return nil, err
	}
	if e.Point != at.Point || e.Height != at.Height {
		return nil, fmt.Errorf("the undone block is %v, not %v", e.At(), at)
	}
	return c.builder.Build(&e, func(h chain.Height) (chain.At, error) { return m.createdBelow(e.Link, h) })
}

// genesisRows are the genesis outputs that a query wants.
func (f *Follower) genesisRows(q query.UTxO) ([]*chain.UTxO, error) {
	if err := f.cfg.Genesis.Complete(); err != nil {
		return nil, err
	}
	var rows []*chain.UTxO
	for i := range f.cfg.Genesis.Outputs {
		o := &f.cfg.Genesis.Outputs[i]
		out, err := ledger.DecodeOutput(o.Era, bytes.Clone(o.Raw))
		if err != nil {
			return nil, fmt.Errorf("genesis output %s: %w", o.Ref, err)
		}
		if u := (&chain.UTxO{Ref: o.Ref, Out: out, At: chain.Origin}); q.Match(u) {
			rows = append(rows, u)
		}
	}
	return rows, nil
}

// SubscribeUTxOs subscribes to outputs. With opts.Seed set to hub.SeedLater the
// outputs that exist are read and handed in here: registration and the view they
// are read from belong to the same block.
//
// A start in the past (hub.Origin, hub.After, hub.Resume) reaches as far as history
// does: in an archive to origin, otherwise to the floor, k below the highest block.
// What lies further back than a few blocks is replayed while it is read; it needs the
// node. Refusals wrap *hub.OlderError, *hub.OrphanedError, hub.ErrUnknownPoint,
// ErrForgotten or ErrFuture. When following has ended as Config asked such a start is
// given what there is, and ends; one at the tip is refused with ErrEnded.
func (f *Follower) SubscribeUTxOs(ctx context.Context, q query.UTxO, opts hub.Options) (hub.Stream[chain.UTxOEvent], error) {
	if opts.Seed == hub.SeedNow {
		return nil, errors.New("ourotail: ask for hub.SeedLater; the rows are read here")
	}
	return anywhere(f, opts, func(h *hub.Hub, o hub.Options) (hub.Stream[chain.UTxOEvent], error) { return h.SubscribeUTxO(q, o) },
		func() (hub.Stream[chain.UTxOEvent], error) {
			for {
				sub, result, err := f.subscribeUTxOs(ctx, q, opts)
				if err != nil {
					return nil, err
				}
				if result == hub.SeedIgnored { // the hub may have ended, and would end without the rows
					err = f.over()
				}
				if result != hub.SeedStale && err == nil {
					return sub, nil
				}
				sub.Cancel()
				if err != nil {
					return nil, err
				}
				// A fork came between; read again.
			}
		})
}

// hasPassed tells whether the hub could no longer begin where begin had just said that
// it could: following has gone on, and an archive replays from there; or it has ended,
// and what was committed is given all the same.
func (f *Follower) hasPassed(o *hub.Options, err error) bool {
	if o.Start == hub.Tip || err == nil {
		return false
	}
	if errors.Is(err, hub.ErrClosed) {
		return !f.closed()
	}
	var older *hub.OlderError
	return f.store.State().Archive && (errors.As(err, &older) || errors.Is(err, hub.ErrReach))
}

// lost tells whether the hub knows the beginning no more that it was just said to have:
// a fork took it, and the blocks in its place are not kept.
func lost(err error) bool {
	var older *hub.OlderError
	return (errors.Is(err, hub.ErrUnknownPoint) || errors.Is(err, hub.ErrResync)) && !errors.As(err, &older)
}

func (f *Follower) subscribeUTxOs(ctx context.Context, q query.UTxO, opts hub.Options) (sub *hub.UTxOSubscription, result hub.SeedResult, err error) {
	var v *View
	f.follow.Locked(func() {
		if sub, err = f.hub.SubscribeUTxO(q, opts); err == nil && opts.Seed == hub.SeedLater {
			v = f.View()
		}
	})
	if err != nil || v == nil {
		return sub, hub.SeedTaken, err
	}
	defer v.Close()
	var rows []*chain.UTxO
	at, err := moment{f, v.snap}.published(v.Head().At())
	if err == nil {
		err = v.UTxOs(ctx, q, func(u *chain.UTxO) error {
			rows = append(rows, u)
			return nil
		})
	}
	if err != nil {
		sub.SeedFailed(err)
		return sub, hub.SeedFatal, nil // the subscription tells its reader
	}
	return sub, sub.Seed(at, rows), nil
}

// SubscribeTxs subscribes to transactions.
func (f *Follower) SubscribeTxs(q query.Tx, opts hub.Options) (hub.Stream[chain.TxEvent], error) {
	subscribe := func(h *hub.Hub, o hub.Options) (hub.Stream[chain.TxEvent], error) { return h.SubscribeTx(q, o) }
	return anywhere(f, opts, subscribe, locked(f, opts, subscribe))
}

// SubscribeBlocks subscribes to blocks.
func (f *Follower) SubscribeBlocks(q query.Block, opts hub.Options) (hub.Stream[chain.BlockEvent], error) {
	subscribe := func(h *hub.Hub, o hub.Options) (hub.Stream[chain.BlockEvent], error) { return h.SubscribeBlock(q, o) }
	return anywhere(f, opts, subscribe, locked(f, opts, subscribe))
}

// errForked tells that a fork has taken the place that was just found.
var errForked = errors.New("a fork came between")

// anywhere subscribes to the live hub, where it has what the reader begins with, or in
// the past.
func anywhere[E any](f *Follower, opts hub.Options, subscribe func(*hub.Hub, hub.Options) (hub.Stream[E], error), live func() (hub.Stream[E], error)) (_ hub.Stream[E], err error) {
	defer func() { err = f.named(err) }()
	for refused := false; ; {
		at, direct, err := f.begin(&opts)
		if err != nil {
			return nil, fmt.Errorf("subscribing: %w", err)
		}
		if direct {
			sub, err := live()
			if lost(err) && !refused { // begin says what that means
				refused = true
				continue
			}
			if !f.hasPassed(&opts, err) {
				return sub, err
			}
		}
		sub, err := splice(f, at, opts, subscribe)
		if !errors.Is(err, errForked) {
			return sub, err
		}
	}
}

// locked subscribes to the live hub at a moment when nothing moves.
func locked[E any](f *Follower, opts hub.Options, subscribe func(*hub.Hub, hub.Options) (hub.Stream[E], error)) func() (hub.Stream[E], error) {
	return func() (sub hub.Stream[E], err error) {
		f.follow.Locked(func() { sub, err = subscribe(f.hub, opts) })
		return sub, err
	}
}

// Capabilities declares what the follower serves; every Subscribe refuses exactly
// what they do not support.
func (f *Follower) Capabilities() hub.Capabilities { return f.hub.Capabilities() }

// SubscribeParams subscribes to the protocol parameters, where Capabilities say so.
func (f *Follower) SubscribeParams() (hub.Subscription[hub.ProtocolParams], error) {
	sub, err := f.hub.SubscribeParams()
	return sub, f.named(err)
}

// SubscribeStatus subscribes to what becomes of a transaction, where Capabilities
// say so.
func (f *Follower) SubscribeStatus(id chain.TxID) (sub hub.Subscription[hub.TxStatus], err error) {
	f.follow.Locked(func() { sub, err = f.hub.SubscribeStatus(id) })
	f.lookIntoMempool()
	return sub, f.named(err)
}

// SubscribeTips subscribes to the newest committed block.
func (f *Follower) SubscribeTips() (hub.Subscription[chain.Tip], error) {
	sub, err := f.hub.SubscribeTip()
	return sub, f.named(err)
}

// Progress tells how following gets on.
func (f *Follower) Progress() follow.Status { return f.follow.Status() }

// CloseSubscriptions ends every subscription cleanly: readers get what is
// buffered, then the end. Afterwards nothing can be subscribed to but the past, which
// ends with the newest block, and nobody can follow: errors wrap ErrEnded.
func (f *Follower) CloseSubscriptions() { f.hub.CloseAll() }

// Find returns our block with exactly this point, as subscriptions know it: a
// boundary block is replaced by the block below it. False if it is not on our
// chain.
func (f *Follower) Find(p chain.Point) (at chain.At, ok bool, err error) {
	m := f.moment()
	defer m.close()
	l, ok, err := m.v.Find(p)
	if err != nil || !ok {
		return chain.Origin, false, err
	}
	at, err = m.published(l.At())
	return at, err == nil, err
}
