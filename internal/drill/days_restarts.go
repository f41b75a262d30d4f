package drill

import (
	"context"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// restartDays are about ourotail ending and starting again.
func restartDays() []Day {
	return []Day{
		{
			Name:    "restarts",
			Tests:   "ourotail is stopped and started again, at once after forks and between them.",
			Catches: "consumers that take a pause for the end, or that cannot take an undo of what came before the pause",
			chain:   varied, blocks: twiceK, run: restarts,
			tells: []string{"undo"},
		},
		{
			Name:    "fork-while-down",
			Tests:   "The chain forks while ourotail is down, up to k deep; sometimes it was killed.",
			Catches: "consumers that hold what they have when the lines pause for final",
			chain:   varied, blocks: twiceK, run: whileDown,
			tells: []string{"undo", "revive"},
		},
		{
			Name:    "killed",
			Tests:   "ourotail is killed with SIGKILL while it undoes a deep fork of busy blocks, and started again; half undone, it goes on.",
			Catches: "consumers that trust an undo to come once, and to the block where the fork is",
			chain: func(int) forge.Options {
				return forge.Options{K: killedK, Shape: forge.MainnetLike}
			},
			blocks: func(k int) int { return k + 10 }, run: killed,
			tells: []string{"undo"},
		},
		{
			Name:    "consumer-killed",
			Tests:   "Your program is killed with SIGKILL at random moments, and started again behind the cursor that it kept; the chain forks meanwhile.",
			Catches: "consumers that keep the cursor apart from what they made of the lines, before or after",
			chain: func(int) forge.Options {
				return forge.Options{K: heldK, EpochBlocks: 12}
			},
			blocks: func(int) int { return 60 }, run: consumerKilled,
			tells: []string{"undo"},
		},
	}
}

// killedK makes forks deep enough that undoing one takes the store several
// transactions.
const killedK = 110

func restarts(ctx context.Context, s *stage) error {
	for i := range 5 {
		if err := s.fork(1+s.r.IntN(6), 8); err != nil {
			return err
		}
		if i%2 == 0 {
			if err := s.arrive(ctx); err != nil {
				return err
			}
		}
		s.note("ourotail is stopped and started again")
		if err := s.down(ctx, false); err != nil {
			return err
		}
		if err := s.up(ctx); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func whileDown(ctx context.Context, s *stage) error {
	for i, depth := range []int{1, 2 + s.r.IntN(4), s.k / 2, s.k} {
		if err := s.arrive(ctx); err != nil {
			return err
		}
		s.note("ourotail is down")
		if err := s.down(ctx, i%2 == 1); err != nil {
			return err
		}
		if err := s.fork(depth, depth+1+i); err != nil {
			return err
		}
		if err := s.up(ctx); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func killed(ctx context.Context, s *stage) error {
	for i := range 4 {
		old := s.chain.Tip()
		depth := s.k*2/3 + s.r.IntN(s.k/3)
		bottom := old.Height - chain.Height(depth)
		// This one dies below a height somewhere on the way down.
		if err := s.down(ctx, false); err != nil {
			return err
		}
		s.spec.DieBelow = old.Height - chain.Height(s.r.IntN(depth/2))
		if err := s.up(ctx); err != nil {
			return err
		}
		s.spec.DieBelow = 0
		if err := s.arrive(ctx); err != nil {
			return err
		}
		if err := s.fork(depth, depth+2); err != nil {
			return err
		}
		if err := s.death(ctx); err != nil {
			return err
		}
		head, err := s.stored()
		if err != nil {
			return err
		}
		switch {
		case head.Height > bottom:
			s.note("ourotail is killed half way down from block %d to %d: it stands at %d", old.Height, bottom, head.Height)
		default:
			s.note("ourotail is killed when it has undone everything down to block %d", bottom)
		}
		if at, _, _ := s.feed.position(); at != old.Point {
			s.note("the consumer had been told")
		}
		if i%2 == 1 { // more happens while it is down; no deeper than k below what it ever had
			if err := s.fork(1+s.r.IntN(depth/2), depth); err != nil {
				return err
			}
		}
		if err := s.up(ctx); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

// death waits for ourotail to have killed itself.
func (s *stage) death(ctx context.Context) error {
	if err := s.ended(ctx, s.tail); err != nil {
		return err
	}
	return s.down(ctx, true)
}
