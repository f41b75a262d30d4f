package devnode

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Serve serves the chain until ctx ends, letting a generated one grow and fork
// as the configuration says. It returns nil when ctx ends.
func Serve(ctx context.Context, cfg Config) error {
	srv, err := NewServer(cfg)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return srv.Run(ctx) })
	if cfg.Interval > 0 {
		g.Go(func() error { return srv.grow(ctx) })
	}
	return g.Wait()
}
