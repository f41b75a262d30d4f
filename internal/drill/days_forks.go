package drill

import (
	"context"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
)

// forkDays are about the chain changing its mind.
func forkDays() []Day {
	return []Day{
		{
			Name:    "depths",
			Tests:   "The chain forks once at every depth from k down to 1.",
			Catches: "consumers that ignore undo, undo only one side of it, or stop one block too early or too late",
			chain:   varied, blocks: twiceK, run: depths,
			tells: []string{"undo", "revive", "remove", "exact", "inclusive"},
		},
		{
			Name:    "deepest",
			Tests:   "The chain forks k blocks deep, twice in a row.",
			Catches: "consumers that keep too little history to bring back what was spent k blocks ago",
			chain:   varied, blocks: twiceK, run: deepest,
			tells: []string{"undo", "revive"},
		},
		{
			Name:    "two-in-a-row",
			Tests:   "A fork, and before the first block of the new branch another fork, deeper: two undo lines with nothing between.",
			Catches: "consumers that expect a block behind every undo",
			chain:   modern, blocks: twiceK, run: twoInARow,
			tells: []string{"twice"},
		},
		{
			Name:    "there-and-back",
			Tests:   "The chain goes over to another branch, back to the first, and over again: the very same blocks come twice.",
			Catches: "consumers that drop events or outputs they have had before, though these were undone meanwhile",
			chain:   modern, blocks: twiceK, run: thereAndBack,
			tells: []string{"id", "output"},
		},
		{
			Name:    "origin",
			Tests:   "A young chain forks at its very root: an undo without a point, after which only the genesis outputs are left.",
			Catches: "consumers that need a point in every undo, or that forget the genesis outputs",
			chain:   varied, blocks: func(k int) int { return k / 2 }, also: genesisAddresses, run: toOrigin,
			tells: []string{"origin", "seed"},
		},
	}
}

func depths(ctx context.Context, s *stage) error {
	// The shallow ones last: a deep fork wipes out what went wrong before.
	for depth := s.k; depth >= 1; depth-- {
		if err := s.fork(depth, depth+1); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func deepest(ctx context.Context, s *stage) error {
	for range 2 {
		if err := s.fork(s.k, s.k+1); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// twoInARow keeps the first branch's blocks back while the second fork happens.
func twoInARow(ctx context.Context, s *stage) error {
	for i := range 5 {
		s.node.Behave(devnode.Behaviour{OnReply: devnode.OfKind(devnode.RollForward, devnode.Skip)})
		first, more := 2+i, 1+i
		to, err := s.ancestor(first)
		if err != nil {
			return err
		}
		if err := s.fork(first, first+1); err != nil {
			return err
		}
		if err := s.given(ctx, to); err != nil {
			return err
		}
		s.node.Behave(devnode.Behaviour{})
		// The branch that nobody was shown gives way too, and more below it.
		if err := s.fork(first+1+more, first+more+2); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
		if err := s.grow(10); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ancestor returns the block that stands depth below the tip.
func (s *stage) ancestor(depth int) (chain.Point, error) {
	path, err := s.chain.Oracle().Path(s.chain.Tip().Point.Hash)
	if err != nil {
		return chain.Point{}, err
	}
	return path[len(path)-1-depth].Point, nil
}

func thereAndBack(ctx context.Context, s *stage) error {
	for i := range 3 {
		depth := 3 + 2*i
		to, err := s.ancestor(depth)
		if err != nil {
			return err
		}
		first, err := s.newest(depth)
		if err != nil {
			return err
		}
		if err := s.fork(depth, depth); err != nil {
			return err
		}
		second, err := s.newest(depth)
		if err != nil {
			return err
		}
		for _, branch := range [][]devnode.Block{first, second} {
			if err := s.arrive(ctx); err != nil {
				return err
			}
			if err := s.chain.Switch(to, branch...); err != nil {
				return err
			}
			s.forked(depth)
			s.note("fork: back to the branch of %d blocks that was left", depth)
		}
		if err := s.grow(6); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newest returns the newest n blocks.
func (s *stage) newest(n int) (out []devnode.Block, err error) {
	path, err := s.chain.Oracle().Path(s.chain.Tip().Point.Hash)
	if err != nil {
		return nil, err
	}
	for i := len(path) - n; i < len(path); i++ {
		raw, err := s.chain.Raw(i)
		if err != nil {
			return nil, err
		}
		out = append(out, devnode.Block{Link: path[i], Raw: raw})
	}
	return out, nil
}

func toOrigin(ctx context.Context, s *stage) error {
	for range 2 {
		all := int(s.chain.Tip().Height) + 1
		if all > s.k { // as deep as can be, then
			all = s.k
		}
		if err := s.fork(all, all+1); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}
