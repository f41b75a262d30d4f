package ourotail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// reservoir keeps a fair choice of at most n of all that is offered.
type reservoir struct {
	n, seen int
	r       *rand.Rand
	kept    []chain.TxIn
}

func (s *reservoir) offer(ref chain.TxIn) {
	s.seen++
	if len(s.kept) < s.n {
		s.kept = append(s.kept, ref)
	} else if i := s.r.IntN(s.seen); i < s.n {
		s.kept[i] = ref
	}
}

// auditChoice chooses what to compare: unspent outputs of the whole set, and
// outputs made by, and spent by, the blocks above the floor. The latter are read
// from the blocks' own bytes, so that an output which the store has lost is
// missed, and one that it should have dropped is noticed. The result is sorted.
func (d *Dir) auditChoice(ctx context.Context, cfg AuditConfig, snap *store.Snapshot, r *AuditReport) ([]chain.TxIn, error) {
	choose := func(stream uint64) *reservoir {
		return &reservoir{n: cfg.Sample, r: rand.New(rand.NewPCG(cfg.Seed, stream))}
	}
	set, made, spent := choose(1), choose(2), choose(3)
	total, _ := snap.UTxOCount()
	if err := snap.UTxOs(ctx, chain.Source{Kind: chain.SourceAll}, func(o *chain.Output) error {
		if set.seen%auditSteps == 0 {
			cfg.Progress(AuditReading, set.seen, int(total))
		}
		set.offer(o.Ref)
		return nil
	}); err != nil {
		return nil, err
	}
	floor, head := d.store.Floor().Height, snap.Head().Height
	b := ledger.Block{Trusted: true}
	var e chain.Effects
	for h := floor + 1; h <= head; h++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cfg.Progress(AuditRecent, int(h-floor-1), int(head-floor))
		// Boundary blocks do nothing. The floor may have risen meanwhile, and some
		// chains begin without a block at height 0.
		err := snap.Effects(chain.Position{Height: h}, &e)
		if errors.Is(err, store.ErrNoRecord) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := b.Walk(e.Raw); err != nil {
			return nil, fmt.Errorf("block %s in the store: %w", e.At(), err)
		}
		r.Blocks++
		for i := range b.Txs {
			tx := &b.Txs[i]
			for _, ref := range tx.Spends() {
				spent.offer(ref)
			}
			first, outs := tx.Creates()
			for j := range outs {
				made.offer(chain.TxIn{ID: tx.ID, Index: first + uint32(j)})
			}
		}
	}
	r.Sampled, r.Recent = len(set.kept), len(made.kept)+len(spent.kept)
	refs := slices.Concat(set.kept, made.kept, spent.kept)
	slices.SortFunc(refs, chain.TxIn.Compare)
	return slices.Compact(refs), nil
}
