package drill

import (
	"context"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
)

// plainDays are about what blocks hold.
func plainDays() []Day {
	return []Day{
		{
			Name:    "calm",
			Tests:   "A chain of every era grows, and nothing goes wrong.",
			Catches: "consumers that misread lines: amounts, spends, the outputs of the genesis",
			chain:   varied, blocks: twiceK, also: genesisAddresses, run: calm,
			tells: []string{"spends"},
		},
		{
			Name:    "failed-scripts",
			Tests:   "Transactions whose scripts failed spend their collateral and create its return; forks undo and repeat them.",
			Catches: "consumers that pass over tx_valid false, as if such a transaction did nothing",
			chain:   modern, blocks: twiceK, run: failedScripts,
			tells: []string{"invalid"},
		},
		{
			Name:    "eras",
			Tests:   "The chain forks across each change of era; at Allegra the ledger itself removes outputs, and the fork brings them back.",
			Catches: "consumers for which a spend needs a transaction, or which keep what one era removed",
			chain:   varied, blocks: func(int) int { return 12 }, also: vouchers, run: eras,
			tells: []string{"ledger", "undo"},
		},
		{
			Name:    "boundary",
			Tests:   "Byron forks end just above, just below and at boundary blocks, which repeat a height and hold no transactions.",
			Catches: "consumers that count heights or expect a record of every block an undo names",
			chain: func(k int) forge.Options {
				return forge.Options{K: k, EpochBlocks: 4, Eras: []forge.EraSpan{{Era: chain.Byron}}}
			},
			blocks: twiceK, run: boundary,
			tells: []string{"undo", "exact"},
		},
		{
			Name:    "burst",
			Tests:   "Hundreds of blocks come at once, then a fork as deep as can be with hundreds more on it.",
			Catches: "consumers that drop lines when many come, or give up reading",
			chain:   modern, blocks: twiceK, run: burst,
			tells: []string{"undo"},
		},
	}
}

// genesisAddresses are those of the genesis outputs that are no vouchers.
func genesisAddresses(c *devnode.Chain) (out [][]byte) {
	for _, o := range c.Oracle().Genesis() {
		if !o.AVVM() {
			out = append(out, o.Address)
		}
	}
	return out
}

// vouchers are the addresses of the genesis outputs that Allegra removes.
func vouchers(c *devnode.Chain) (out [][]byte) {
	for _, o := range c.Oracle().Genesis() {
		if o.AVVM() {
			out = append(out, o.Address)
		}
	}
	return out
}

func calm(ctx context.Context, s *stage) error {
	for range 8 {
		if err := s.grow(15); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func failedScripts(ctx context.Context, s *stage) error {
	for i := range 5 {
		if err := s.grow(12); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
		if err := s.fork(3+i, 5+i); err != nil {
			return err
		}
	}
	return nil
}

func eras(ctx context.Context, s *stage) error {
	era, err := s.era()
	if err != nil {
		return err
	}
	for range 100 {
		if err := s.grow(1); err != nil {
			return err
		}
		now, err := s.era()
		if err != nil {
			return err
		}
		if now == era {
			continue
		}
		s.note("%s begins", now)
		for depth := 1; depth <= 4; depth += 3 {
			if err := s.arrive(ctx); err != nil {
				return err
			}
			if err := s.fork(depth, depth+1); err != nil {
				return err
			}
		}
		if era, err = s.era(); err != nil {
			return err
		}
	}
	return nil
}

// era is that of the newest block.
func (s *stage) era() (chain.Era, error) {
	path, err := s.chain.Oracle().Path(s.chain.Tip().Point.Hash)
	if err != nil || len(path) == 0 {
		return 0, err
	}
	return path[len(path)-1].Era, nil
}

func boundary(ctx context.Context, s *stage) error {
	for i := range 16 {
		if err := s.grow(1 + i%3); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
		if err := s.fork(1+i%6, 2+i%6); err != nil {
			return err
		}
	}
	return nil
}

func burst(ctx context.Context, s *stage) error {
	s.note("300 blocks at once")
	if err := s.grow(300); err != nil {
		return err
	}
	if err := s.arrive(ctx); err != nil {
		return err
	}
	return s.fork(s.k, 300)
}
