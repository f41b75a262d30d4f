package ourotail

import (
	"context"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
)

// WatchEvery makes silence noticed sooner than a person could wait for. Call it
// before Run.
func (f *Follower) WatchEvery(quiet, frozen time.Duration) {
	f.watch.quiet, f.watch.frozen = quiet, frozen
}

// Hooks put a test between a follower and the world.
type Hooks struct {
	Dial    func(ctx context.Context) (follow.Conn, error)
	Tip     func(ctx context.Context) (chain.Tip, error)
	Storage func(follow.Store) follow.Store
	Retry   func(err error, failures int) (wait time.Duration, again bool) // instead of follow.NewRetry's
	// MaxBlocks bounds batches; 0 for the default.
	MaxBlocks int
}

// OpenWith is Open with hooks.
func OpenWith(ctx context.Context, cfg Config, h Hooks) (*Follower, error) {
	return open(ctx, cfg, func(f *Follower) {
		f.node, f.storage, f.maxBlocks = hookedNode{h}, h.Storage, h.MaxBlocks
		if h.Retry != nil {
			f.policy = h.Retry
			f.pastWait = func(failures int) time.Duration { // never when the follower itself does
				return min(170*time.Millisecond<<min(failures-1, 8), 29*time.Second) + 3*time.Nanosecond
			}
		}
	})
}

type hookedNode struct{ h Hooks }

func (n hookedNode) dial(ctx context.Context) (follow.Conn, error) { return n.h.Dial(ctx) }
func (n hookedNode) tip(ctx context.Context) (chain.Tip, error)    { return n.h.Tip(ctx) }

// HealthAt is Health as it would be at another time, were nothing to happen until then.
func (f *Follower) HealthAt(clock time.Time) Health { return f.healthAt(clock) }
