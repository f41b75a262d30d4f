package ourotail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/internal/trial"
)

// ErrFrozen is wrapped when the node has new blocks, but our connection to it no
// longer brings them.
var ErrFrozen = errors.New("the connection to the node is frozen")

// Watching begins after quietBefore without a word: on mainnet one gap in 400
// is longer. A connection is given up when the node, asked over another one, has
// had another tip for frozenAfter.
const (
	quietBefore = 2 * time.Minute
	frozenAfter = 30 * time.Second
)

// watch tells a quiet chain from a frozen node. A node that waits for a block
// says nothing, for as long as it takes, and one that hangs says nothing either.
type watch struct {
	quiet, frozen time.Duration

	mu   sync.Mutex
	conn *watchedConn
	said string
	err  error
	at   time.Time // of both
}

func newWatch(limits trial.Limits) watch {
	return watch{quiet: cmp.Or(limits.Quiet, quietBefore), frozen: cmp.Or(limits.Frozen, frozenAfter)}
}

// watchedConn is a connection that can be given up with a reason.
type watchedConn struct {
	follow.Conn
	mu      sync.Mutex
	cause   error
	waiting time.Time // since when Next has waited; zero while it does not
}

func (c *watchedConn) Next(ctx context.Context) (chain.Messages, error) {
	c.mu.Lock()
	c.waiting = time.Now()
	c.mu.Unlock()
	m, err := c.Conn.Next(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = time.Time{}
	if err != nil && c.cause != nil {
		err = c.cause
	}
	return m, err
}

// silent is how long the node has been listened to without a word. While nobody
// listens, because a slow owner brakes or the disk does, it is not the node that
// is silent.
func (c *watchedConn) silent() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting.IsZero() {
		return 0
	}
	return time.Since(c.waiting)
}

func (c *watchedConn) giveUp(cause error) {
	c.mu.Lock()
	c.cause = cause
	c.mu.Unlock()
	c.Conn.Close()
}

func (w *watch) watches(c follow.Conn) follow.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = &watchedConn{Conn: c}
	return w.conn
}

func (w *watch) answer() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

// failure is what was wrong when the node was asked last; nil if it has said
// something since.
func (w *watch) failure(heard time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if heard.After(w.at) {
		return nil
	}
	return w.err
}

func (w *watch) note(said string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said, w.err, w.at = said, err, time.Now()
}

// watchNode probes while the chain is quiet, until ctx ends.
func (f *Follower) watchNode(ctx context.Context) error {
	tick := time.NewTicker(f.watch.quiet / 4)
	defer tick.Stop()
	var differs time.Time // since when the node has had another tip than we
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		f.watch.mu.Lock()
		conn := f.watch.conn
		f.watch.mu.Unlock()
		now := f.Progress()
		if now.Phase != follow.Following || conn.silent() < f.watch.quiet {
			differs = time.Time{}
			f.watch.note("", nil)
			continue
		}
		tip, err := f.NodeTip(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			f.watch.note("", fmt.Errorf("the node does not answer: %w", err))
		case conn.silent() < f.watch.quiet: // it spoke meanwhile
			differs = time.Time{}
		case tip.Point == f.Progress().Head.Point:
			differs = time.Time{}
			f.watch.note("the chain is quiet: its tip is our head", nil)
		case differs.IsZero():
			differs = time.Now()
		case time.Since(differs) >= f.watch.frozen:
			differs = time.Time{}
			err := fmt.Errorf("%w: its tip is %v, we were told nothing since %v", ErrFrozen, tip, now.TipSeen.UTC().Format(time.RFC3339))
			f.watch.note("", err)
			conn.giveUp(err)
		}
	}
}
