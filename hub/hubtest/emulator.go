package hubtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// Emulator is a chain in memory that applies one transaction at a time, each in
// a block of its own that has no raw form: it serves no block subscriptions.
type Emulator struct {
	caps hub.Capabilities
	hub  *hub.Hub

	mu     sync.Mutex // the publish lock
	blocks []emulated // from the first on
	set    map[chain.TxIn]*chain.UTxO
	serial uint64
}

// emulated is a block with the set after it.
type emulated struct {
	*chain.AppliedBlock
	set map[chain.TxIn]*chain.UTxO
}

// EmulatorHorizon is how deep an emulator can fork.
const EmulatorHorizon chain.Height = 10

// NewEmulator returns an emulator whose set begins with the genesis outputs
// given; their point is set to origin.
func NewEmulator(genesis ...*chain.UTxO) *Emulator {
	e := &Emulator{
		caps: hub.Capabilities{
			Kinds: map[hub.Kind]bool{hub.UTxOs: true, hub.Txs: true, hub.Tips: true, hub.Params: true, hub.Statuses: true},
			Scan:  true, Replay: true, Idle: true,
			Indexed: query.KindsOf(chain.SourceAddress, chain.SourcePayment, chain.SourceStake, chain.SourceInput),
			Horizon: EmulatorHorizon, MaxConfirmations: EmulatorHorizon,
		},
		set: map[chain.TxIn]*chain.UTxO{},
	}
	for _, u := range genesis {
		u.At = chain.Origin
		e.set[u.Ref] = u
	}
	start := maps.Clone(e.set)
	e.hub = hub.New(hub.Config{
		Capabilities: e.caps,
		Genesis: func(q query.UTxO) ([]*chain.UTxO, error) {
			return rowsOf(start, q), nil
		},
	})
	return e
}

func rowsOf(set map[chain.TxIn]*chain.UTxO, q query.UTxO) (rows []*chain.UTxO) {
	for _, u := range set {
		if q.Match(u) {
			rows = append(rows, u)
		}
	}
	slices.SortFunc(rows, func(a, b *chain.UTxO) int { return a.Ref.Compare(b.Ref) })
	return rows
}

// Hub returns the emulator's hub.
func (e *Emulator) Hub() *hub.Hub { return e.hub }

// Capabilities implements Provider.
func (e *Emulator) Capabilities() hub.Capabilities { return e.caps }

// next is the place of the next block. The lock is held.
func (e *Emulator) next() chain.At {
	e.serial++
	at := chain.At{Height: chain.Height(len(e.blocks))}
	at.Point.Slot = chain.Slot(20 * len(e.blocks))
	at.Point.Hash[0] = 'e'
	binary.BigEndian.PutUint64(at.Point.Hash[1:], e.serial)
	return at
}

// add publishes a block. It takes the lock over and releases it.
func (e *Emulator) add(at chain.At, txs ...chain.AppliedTx) error {
	b := &chain.AppliedBlock{At: at, Txs: txs, Coverage: chain.Complete}
	e.blocks = append(e.blocks, emulated{b, maps.Clone(e.set)})
	flush, err := e.hub.BufferBlock(b)
	e.mu.Unlock()
	flush()
	return err
}

// ErrInput refuses a transaction that spends what is not there.
var ErrInput = errors.New("no such unspent output")

// Submit implements Fixture: the transaction is in a block of its own when it
// returns.
func (e *Emulator) Submit(tx Tx) (chain.TxID, error) {
	e.mu.Lock()
	e.serial++
	t := chain.AppliedTx{Valid: !tx.Fails}
	t.ID[0] = 't'
	binary.BigEndian.PutUint64(t.ID[1:], e.serial)
	for _, r := range tx.Spend {
		u := e.set[r]
		if u == nil {
			e.mu.Unlock()
			return chain.TxID{}, fmt.Errorf("%w: %v", ErrInput, r)
		}
		t.Spent = append(t.Spent, chain.Effect{UTxO: u})
	}
	slices.SortFunc(t.Spent, func(a, b chain.Effect) int { return a.UTxO.Ref.Compare(b.UTxO.Ref) })
	at := e.next()
	for i, p := range tx.Pay {
		if tx.Fails && i < len(tx.Pay)-1 {
			continue // only the collateral return is made
		}
		u := &chain.UTxO{Ref: chain.TxIn{ID: t.ID, Index: uint32(i)}, At: at, Out: chain.TxOut{Address: p.Address, Lovelace: p.Lovelace}}
		t.Created = append(t.Created, chain.Effect{UTxO: u})
	}
	place := uint32(0)
	for _, list := range [...][]chain.Effect{t.Spent, t.Created} {
		for i := range list {
			list[i].Place = place
			place++
		}
	}
	for _, s := range t.Spent {
		delete(e.set, s.UTxO.Ref)
	}
	for _, c := range t.Created {
		e.set[c.UTxO.Ref] = c.UTxO
	}
	return t.ID, e.add(at, t)
}

// Announce says that a transaction was submitted, before it is in any block.
func (e *Emulator) Announce(id chain.TxID) { e.hub.Submitted(id) }

// Tick implements Fixture.
func (e *Emulator) Tick(n int) error {
	for range n {
		e.mu.Lock()
		if err := e.add(e.next()); err != nil {
			return err
		}
	}
	return nil
}

// Fork implements Fixture.
func (e *Emulator) Fork(n int) error {
	if err := e.Rollback(n); err != nil {
		return err
	}
	return e.Tick(n + 1)
}

// Rollback takes the newest n blocks back.
func (e *Emulator) Rollback(n int) error {
	e.mu.Lock()
	to, set := chain.Origin, map[chain.TxIn]*chain.UTxO{}
	if n > len(e.blocks) {
		e.mu.Unlock()
		return fmt.Errorf("%d blocks back: there are %d", n, len(e.blocks))
	}
	e.blocks = e.blocks[:len(e.blocks)-n]
	if len(e.blocks) > 0 {
		last := e.blocks[len(e.blocks)-1]
		to, set = last.At, last.set
	}
	e.set = maps.Clone(set)
	flush, err := e.hub.BufferRollback(to)
	e.mu.Unlock()
	flush()
	return err
}

// Set implements Fixture.
func (e *Emulator) Set(q query.UTxO) ([]*chain.UTxO, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return rowsOf(e.set, q), nil
}

// SubscribeUTxOs implements Provider. The seed is read at the tip, under the
// lock that publishing takes.
func (e *Emulator) SubscribeUTxOs(_ context.Context, q query.UTxO, o hub.Options) (hub.Stream[chain.UTxOEvent], error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.Seed == hub.SeedLater {
		o.Seed, o.Rows = hub.SeedNow, rowsOf(e.set, q)
	}
	s, err := e.hub.SubscribeUTxO(q, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SubscribeTxs implements Provider.
func (e *Emulator) SubscribeTxs(q query.Tx, o hub.Options) (hub.Stream[chain.TxEvent], error) {
	s, err := e.hub.SubscribeTx(q, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SubscribeBlocks implements Provider: it refuses.
func (e *Emulator) SubscribeBlocks(q query.Block, o hub.Options) (hub.Stream[chain.BlockEvent], error) {
	s, err := e.hub.SubscribeBlock(q, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SubscribeTips implements Provider.
func (e *Emulator) SubscribeTips() (hub.Subscription[chain.Tip], error) { return e.hub.SubscribeTip() }

// SubscribeParams implements Provider.
func (e *Emulator) SubscribeParams() (hub.Subscription[hub.ProtocolParams], error) {
	return e.hub.SubscribeParams()
}

// SubscribeStatus implements Provider.
func (e *Emulator) SubscribeStatus(id chain.TxID) (hub.Subscription[hub.TxStatus], error) {
	return e.hub.SubscribeStatus(id)
}

// CloseSubscriptions implements Provider.
func (e *Emulator) CloseSubscriptions() { e.hub.CloseAll() }

// Close implements Fixture.
func (e *Emulator) Close() error {
	e.hub.CloseAll()
	return nil
}
