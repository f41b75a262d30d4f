package ourotail_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// within fails the test if fn does not return.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// untilTip returns once the follower, which somebody drives, is where its node is.
func (n *node) untilTip(t *testing.T, f *ourotail.Follower) {
	t.Helper()
	for tip, err := range f.Tips(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tip.Height == n.chain.Tip().Height {
			return
		}
	}
}

// go f.Run(ctx) and defer f.Close() is what everybody writes.
func TestCloseEndsRun(t *testing.T) {
	n, f := opened(t)
	ran := make(chan error, 1)
	go func() { ran <- f.Run(t.Context()) }()
	n.untilTip(t, f)
	within(t, "Close", func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	n.Pay(1_000_000) // of which nobody hears
	within(t, "Run", func() {
		if err := <-ran; !errors.Is(err, ourotail.ErrClosed) || errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
	for name, again := range map[string]func() error{
		"Run":     func() error { return f.Run(t.Context()) },
		"CatchUp": func() error { return f.CatchUp(t.Context(), 1<<20) },
	} {
		if err := again(); !errors.Is(err, ourotail.ErrClosed) {
			t.Errorf("%s of a closed follower: %v", name, err)
		}
	}
	next, err := ourotail.Open(t.Context(), n.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// A context that ends is still the reason that Run gives, whoever closes after it.
func TestRunEndsWithItsContextsError(t *testing.T) {
	n, f := opened(t)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	n.untilTip(t, f)
	stop()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCloseFromABrake(t *testing.T) {
	n := startNode()
	defer n.Stop()
	var f *ourotail.Follower
	closed := make(chan error, 1)
	n.Config.Brake = func(ctx context.Context) error {
		closed <- f.Close()
		return ctx.Err()
	}
	f, err := ourotail.Open(t.Context(), n.Config)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "Run", func() {
		if err := f.Run(t.Context()); !errors.Is(err, ourotail.ErrClosed) {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// Whatever a loop gives just then, its body may close the follower.
func TestCloseFromALoop(t *testing.T) {
	for name, opts := range map[string][]ourotail.UTxOOption{
		"existing":               {ourotail.Existing()},
		"existing, one by one":   {ourotail.Existing(), ourotail.AutoResume()},
		"from origin":            {ourotail.FromOrigin()},
		"from origin, resuming":  {ourotail.FromOrigin(), ourotail.AutoResume()},
		"buffer of one, resumed": {ourotail.FromOrigin(), ourotail.AutoResume(), ourotail.Buffer(1)},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := opened(t)
			got := 0
			within(t, "the loop", func() {
				for _, err := range f.UTxOs(t.Context(), query.Everything(), opts...) {
					if err != nil {
						if !errors.Is(err, ourotail.ErrClosed) {
							t.Error(err)
						}
						return
					}
					if got++; got == 1 {
						if err := f.Close(); err != nil {
							t.Error(err)
						}
					}
				}
			})
			if got == 0 {
				t.Error("it gave nothing")
			}
		})
	}
}

// A loop over a follower that is closed says so.
func TestLoopsOfAClosedFollower(t *testing.T) {
	_, f := opened(t)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]ourotail.UTxOOption{
		"from the tip": nil,
		"existing":     {ourotail.Existing(), ourotail.AutoResume()},
		"from origin":  {ourotail.FromOrigin()},
	} {
		var last error
		for ev, err := range f.UTxOs(t.Context(), query.Everything(), opts...) {
			if last = err; ev.Kind.String() != "none" {
				t.Errorf("with the error comes %v", ev.Kind)
			}
		}
		if !errors.Is(last, ourotail.ErrClosed) {
			t.Errorf("%s: %v", name, last)
		}
	}
	for ev, err := range f.WatchTx(t.Context(), chain.TxID{}, 0) {
		if !errors.Is(err, ourotail.ErrClosed) || ev.Kind.String() != "none" {
			t.Errorf("a watch: %v, %v", ev.Kind, err)
		}
	}
}
