package hubtest

import (
	"context"
	"errors"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// Metered is a provider that pays for every question: of each block it learns
// only what the sources do that somebody wants, one probe each. Its chain is an
// emulator's, to which it is always one answer behind.
type Metered struct {
	chain *Emulator
	caps  hub.Capabilities
	hub   *hub.Hub
	fed   []chain.At
	// Probes counts the questions asked, by source.
	Probes map[chain.Source]int
	// Heights are the heights reported, Silent those of them where nothing was
	// found.
	Heights, Silent int
}

// NewMetered returns a metered provider of an emulator's chain, from its
// present tip on.
func NewMetered(e *Emulator) (*Metered, error) {
	caps := hub.Capabilities{
		Kinds:   map[hub.Kind]bool{hub.UTxOs: true, hub.Txs: true, hub.Tips: true},
		Partial: true, Idle: true,
		Indexed: query.KindsOf(chain.SourceAddress, chain.SourceAsset, chain.SourceInput),
		Horizon: EmulatorHorizon, MaxConfirmations: EmulatorHorizon,
	}
	m := &Metered{chain: e, caps: caps, hub: hub.New(hub.Config{Capabilities: caps}), Probes: map[chain.Source]int{}}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := hub.State{Tip: chain.Origin, Highest: chain.OriginHeight, Floor: chain.Origin}
	for _, b := range e.blocks {
		m.fed = append(m.fed, b.At)
		s.Tip, s.Highest, s.Floor = b.At, b.At.Height, b.At
	}
	return m, m.hub.Restore(s)
}

// Hub returns the provider's hub.
func (m *Metered) Hub() *hub.Hub { return m.hub }

// Sync catches up with the chain: one block per height with the union of all
// that was probed there, and every height, matched or not (contract 1.4).
func (m *Metered) Sync() error {
	m.chain.mu.Lock()
	blocks := append([]emulated(nil), m.chain.blocks...)
	m.chain.mu.Unlock()
	keep := 0
	for keep < len(m.fed) && keep < len(blocks) && m.fed[keep] == blocks[keep].At {
		keep++
	}
	if keep < len(m.fed) {
		to := chain.Origin
		if keep > 0 {
			to = m.fed[keep-1]
		}
		m.fed = m.fed[:keep]
		if err := m.hub.RollbackTo(to); err != nil {
			return err
		}
	}
	for _, b := range blocks[keep:] {
		if err := m.hub.ApplyBlock(m.probe(b.AppliedBlock)); err != nil {
			return err
		}
		m.fed = append(m.fed, b.At)
	}
	return nil
}

// probe asks every source that is wanted about a block.
func (m *Metered) probe(b *chain.AppliedBlock) *chain.AppliedBlock {
	wanted := m.hub.Sources()
	for s := range wanted {
		m.Probes[s]++
	}
	out := &chain.AppliedBlock{At: b.At, Coverage: chain.Coverage{Sources: wanted}}
	seen := func(list []chain.Effect) (found []chain.Effect) {
		for _, e := range list {
			for s := range wanted {
				if query.MatchSource(s, e.UTxO) {
					found = append(found, e)
					break
				}
			}
		}
		return found
	}
	for _, t := range b.Txs {
		t.Spent, t.Created = seen(t.Spent), seen(t.Created)
		if len(t.Spent)+len(t.Created) > 0 {
			out.Txs = append(out.Txs, t)
		}
	}
	m.Heights++
	if len(out.Txs) == 0 {
		m.Silent++
	}
	return out
}

// Capabilities implements Provider.
func (m *Metered) Capabilities() hub.Capabilities { return m.caps }

// SubscribeUTxOs implements Provider. What exists is read at the chain's own
// tip, of which the hub may not have heard yet.
func (m *Metered) SubscribeUTxOs(_ context.Context, q query.UTxO, o hub.Options) (hub.Stream[chain.UTxOEvent], error) {
	s, err := m.hub.SubscribeUTxO(q, o)
	if err != nil {
		return nil, err
	}
	for o.Seed == hub.SeedLater {
		m.chain.mu.Lock()
		at, rows := chain.Origin, rowsOf(m.chain.set, q)
		if n := len(m.chain.blocks); n > 0 {
			at = m.chain.blocks[n-1].At
		}
		m.chain.mu.Unlock()
		if s.Seed(at, rows) != hub.SeedStale {
			break
		}
		if err := m.Sync(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// SubscribeTxs implements Provider.
func (m *Metered) SubscribeTxs(q query.Tx, o hub.Options) (hub.Stream[chain.TxEvent], error) {
	s, err := m.hub.SubscribeTx(q, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SubscribeBlocks implements Provider: it refuses.
func (m *Metered) SubscribeBlocks(q query.Block, o hub.Options) (hub.Stream[chain.BlockEvent], error) {
	s, err := m.hub.SubscribeBlock(q, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// SubscribeTips implements Provider.
func (m *Metered) SubscribeTips() (hub.Subscription[chain.Tip], error) { return m.hub.SubscribeTip() }

// SubscribeParams implements Provider: it refuses.
func (m *Metered) SubscribeParams() (hub.Subscription[hub.ProtocolParams], error) {
	return m.hub.SubscribeParams()
}

// SubscribeStatus implements Provider: it refuses.
func (m *Metered) SubscribeStatus(id chain.TxID) (hub.Subscription[hub.TxStatus], error) {
	return m.hub.SubscribeStatus(id)
}

// CloseSubscriptions implements Provider.
func (m *Metered) CloseSubscriptions() { m.hub.CloseAll() }

// Submit implements Fixture.
func (m *Metered) Submit(tx Tx) (chain.TxID, error) {
	id, err := m.chain.Submit(tx)
	return id, errors.Join(err, m.Sync())
}

// Tick implements Fixture.
func (m *Metered) Tick(n int) error { return errors.Join(m.chain.Tick(n), m.Sync()) }

// Fork implements Fixture.
func (m *Metered) Fork(n int) error { return errors.Join(m.chain.Fork(n), m.Sync()) }

// Set implements Fixture.
func (m *Metered) Set(q query.UTxO) ([]*chain.UTxO, error) { return m.chain.Set(q) }

// Close implements Fixture.
func (m *Metered) Close() error {
	m.hub.CloseAll()
	return m.chain.Close()
}
