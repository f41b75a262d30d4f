package ourotail_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
)

// A reader that holds following back for more than a moment is no good health, though
// the last tip that was heard is the head.
func TestAFollowerThatIsHeldBackIsNotWell(t *testing.T) {
	n := startNode()
	defer n.Stop()
	var hold atomic.Bool
	held, goOn := make(chan struct{}), make(chan struct{})
	n.Config.Brake = func(ctx context.Context) error {
		if hold.CompareAndSwap(true, false) {
			close(held)
			<-goOn
		}
		return ctx.Err()
	}
	f, err := ourotail.Open(t.Context(), n.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go func() { _ = f.Run(t.Context()) }()
	n.untilTip(t, f)
	later := func() time.Time { return time.Now().Add(9 * time.Second) }
	says := func(h ourotail.Health) bool {
		return slices.ContainsFunc(h.Reasons, func(r string) bool { return strings.Contains(r, "held back by a reader") })
	}
	within(t, "the brake that holds nothing", func() {
		for says(f.HealthAt(later())) { // it may just have been asked
			time.Sleep(time.Millisecond)
		}
	})
	hold.Store(true)
	n.Pay(1_000_000)
	within(t, "the brake", func() { <-held })
	if h := f.Health(); says(h) || h.HeldBackSeconds == 0 {
		t.Errorf("at once: %+v", h)
	}
	if h := f.HealthAt(later()); h.Grade == ourotail.Healthy || !says(h) || h.HeldBackSeconds < 9 {
		t.Errorf("later: %+v", h)
	}
	close(goOn)
	n.Pay(1_000_000)
	n.untilTip(t, f)
	within(t, "following on", func() {
		for f.Health().HeldBackSeconds != 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// A socket path with nobody behind it is waited for in silence: health tells.
func TestHealthTellsOfASocketThatIsNotThere(t *testing.T) {
	n := startNode()
	defer n.Stop()
	n.Config.SocketPath += ".wrong"
	f, err := ourotail.Open(t.Context(), n.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ran := make(chan error, 1)
	go func() { ran <- f.Run(t.Context()) }()
	within(t, "the first attempt", func() {
		for h := f.Health(); h.Grade != ourotail.Unhealthy || !strings.Contains(h.LastError, "wrong"); h = f.Health() {
			time.Sleep(time.Millisecond)
		}
	})
	select {
	case err := <-ran:
		t.Errorf("Run gave up: %v", err)
	default:
	}
}
