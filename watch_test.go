package ourotail_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
)

// following starts a follower on a generated chain that notices silence within
// milliseconds.
func following(t *testing.T) (*ourotail.Follower, *devnode.Server) {
	t.Helper()
	s := serve(t, forge.Options{Seed: 9, EpochBlocks: 10, K: 50}, 60)
	f, err := ourotail.Open(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.WatchEvery(40*time.Millisecond, 100*time.Millisecond)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ran
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	devtest.Eventually(t, "the tip", func() bool { return f.State().Head.Point == s.chain.Tip().Point })
	return f, s.node
}

// TestQuietChainIsHealthy: no block for a long time, and the node, asked, has
// none: that is no fault.
func TestQuietChainIsHealthy(t *testing.T) {
	f, srv := following(t)
	devtest.Eventually(t, "the node to be asked", func() bool { return strings.Contains(f.Health().Probe, "quiet") })
	if h := f.Health(); h.Grade != ourotail.Healthy || !h.Connected {
		t.Errorf("%+v", h)
	}
	if n := srv.Clients(); n < 1 {
		t.Errorf("%d connections: the quiet one was cut", n)
	}
}

// TestFrozenConnectionIsGivenUp: the node has new blocks and answers others, but
// our connection brings nothing.
func TestFrozenConnectionIsGivenUp(t *testing.T) {
	f, srv := following(t)
	// What is sent on this connection from here on is swallowed.
	srv.Behave(devnode.Behaviour{OnReply: func(r *devnode.Reply) {
		if r.Kind == devnode.RollForward || r.Kind == devnode.AwaitReply {
			r.Drop = true
		}
	}})
	if err := srv.Chain().Extend(3); err != nil {
		t.Fatal(err)
	}
	devtest.Eventually(t, "health to turn", func() bool {
		h := f.Health()
		return h.Grade != ourotail.Healthy && strings.Contains(h.LastError+strings.Join(h.Reasons, " "), "frozen")
	})
	srv.Behave(devnode.Behaviour{})
	devtest.Eventually(t, "the tip", func() bool { return f.State().Head.Point == srv.Chain().Tip().Point })
	devtest.Eventually(t, "health to recover", func() bool { return f.Health().Grade == ourotail.Healthy })
}

// TestFrozenNodeTurnsHealth: the node accepts and says nothing.
func TestFrozenNodeTurnsHealth(t *testing.T) {
	f, srv := following(t)
	srv.Behave(devnode.Behaviour{MuteHandshake: true})
	srv.Freeze()
	devtest.Eventually(t, "health to turn", func() bool { return f.Health().Grade == ourotail.Unhealthy })
	srv.Behave(devnode.Behaviour{})
	srv.Thaw()
	devtest.Eventually(t, "health to recover", func() bool { return f.Health().Grade == ourotail.Healthy })
}
