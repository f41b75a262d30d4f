package drill

import (
	"context"
	"time"

	"github.com/ourotail/ourotail/devnode"
)

// nodeDays are about a node that is not well.
func nodeDays() []Day {
	return []Day{
		{
			Name:    "node-restarts",
			Tests:   "The node restarts again and again, with another socket at the same path and another chain.",
			Catches: "consumers that take a pause for the end of the stream",
			chain:   varied, blocks: twiceK, run: nodeRestarts,
			tells: []string{"undo"},
		},
		{
			Name:    "frozen",
			Tests:   "The node stays connected and says nothing for a while; behind the silence the chain forks twice.",
			Catches: "consumers with a timeout on quiet",
			chain:   varied, blocks: twiceK, run: frozen,
			tells: []string{"undo"},
		},
		{
			Name:    "silent",
			Tests:   "The node swallows its answers, forks, and is restarted by its operator.",
			Catches: "consumers that hold what they have for final when nothing comes",
			chain:   varied, blocks: twiceK, run: silent,
			tells: []string{"undo"},
		},
	}
}

func nodeRestarts(ctx context.Context, s *stage) error {
	for i := range 4 {
		s.note("the node restarts")
		s.node.Stop()
		if err := s.fork(1+s.r.IntN(8), 9+i); err != nil {
			return err
		}
		if err := s.node.Start(); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func frozen(ctx context.Context, s *stage) error {
	s.note("the node freezes")
	s.node.Freeze()
	for range 2 {
		if err := s.fork(3+s.r.IntN(6), 10); err != nil {
			return err
		}
		if err := s.pause(ctx, time.Second); err != nil {
			return err
		}
	}
	s.note("the node thaws")
	s.node.Thaw()
	return s.arrive(ctx)
}

func silent(ctx context.Context, s *stage) error {
	s.note("the node swallows its answers")
	s.node.Behave(devnode.Behaviour{OnReply: func(r *devnode.Reply) { r.Drop = true }})
	if err := s.grow(2); err != nil {
		return err
	}
	if err := s.fork(4+s.r.IntN(6), 12); err != nil {
		return err
	}
	if err := s.pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	s.note("the node is restarted")
	s.node.Stop()
	s.node.Behave(devnode.Behaviour{})
	if err := s.node.Start(); err != nil {
		return err
	}
	return s.arrive(ctx)
}
