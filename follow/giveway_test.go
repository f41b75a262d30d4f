package follow

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestWorkGivesWayToABlockAtTheTip: whoever gives way waits exactly while a block at
// the tip is in hand, and never far from it.
func TestWorkGivesWayToABlockAtTheTip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Follower{}
		f.GiveWay(t.Context()) // nothing is in hand
		f.workBegins()
		f.GiveWay(t.Context()) // far from the tip
		f.workEnds()
		f.status.update(func(s *Status) { s.Phase = Following })
		f.workBegins()
		gave := false
		go func() { f.GiveWay(t.Context()); gave = true }()
		synctest.Wait()
		if gave {
			t.Error("it did not wait")
		}
		f.workEnds()
		synctest.Wait()
		if !gave {
			t.Error("it waits for nothing")
		}
		f.workBegins()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		f.GiveWay(ctx) // its patience is at its end
	})
}
