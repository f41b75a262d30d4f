// Package txwatch looks for transactions in a node's mempool and tells when one
// enters it and when it leaves.
//
// A mempool is not a history: the node says what is in it now and no more. So
// one that enters and leaves between two looks is not seen, and one that has
// left may be in a block, or replaced, or found invalid, or lost with a node
// that restarted: whoever follows the chain knows which.
package txwatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
)

// DefaultInterval is the time between two looks unless Config says another.
const DefaultInterval = time.Second

// slowest is the longest time between two attempts to reach the node.
const slowest = 30 * time.Second

// Event is that a transaction entered the mempool, or left it.
type Event struct {
	ID      chain.TxID
	Pending bool // it is in the mempool now; otherwise it was, and is no longer
}

// Snapshot is a mempool at one moment; a *chainsync.Mempool is one.
type Snapshot interface {
	Has(ctx context.Context, id chain.TxID) (bool, error)
	Release()
}

// Conn is a connection to a node.
type Conn interface {
	Snapshot(ctx context.Context) (Snapshot, error)
	Close() error
}

// Node returns what connects to a node, for Config.Dial.
func Node(cfg chainsync.Config) func(context.Context) (Conn, error) {
	return func(ctx context.Context) (Conn, error) {
		c, err := chainsync.Dial(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return nodeConn{c}, nil
	}
}

type nodeConn struct{ *chainsync.Conn }

func (c nodeConn) Snapshot(ctx context.Context) (Snapshot, error) {
	m, err := c.Mempool(ctx)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Config says where to look and whom to tell. Dial and Report have to be set.
type Config struct {
	// Dial connects to the node. It is called when there is something to look
	// for, and again after a connection failed.
	Dial func(context.Context) (Conn, error)
	// Report is told each event, in order, from the goroutine of Run. It may call
	// Follow and Unfollow.
	Report func(Event)
	// Problem is told when the node can no longer be asked, once until it can be
	// again; nil for nobody. No event says anything about the time between.
	Problem  func(error)
	Interval time.Duration // between two looks; default DefaultInterval
}

// Watcher looks for a set of transactions that may change at any time. Its
// methods may be called from any goroutine; Run once.
type Watcher struct {
	cfg  Config
	wake chan struct{} // holds one token if there is something new to look for

	mu  sync.Mutex
	ids map[chain.TxID]bool // those followed, and whether they were in the mempool; guarded by mu
}

// New returns a watcher that does nothing before Run.
func New(cfg Config) *Watcher {
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Problem == nil {
		cfg.Problem = func(error) {}
	}
	return &Watcher{cfg: cfg, wake: make(chan struct{}, 1), ids: map[chain.TxID]bool{}}
}

// Follow adds transactions to look for; at once, if Run can. One that is
// followed already goes on as it is.
func (w *Watcher) Follow(ids ...chain.TxID) {
	w.mu.Lock()
	for _, id := range ids {
		if _, ok := w.ids[id]; !ok {
			w.ids[id] = false
		}
	}
	w.mu.Unlock()
	w.stir()
}

// Expect is Follow for transactions that are in the mempool as far as the caller
// knows, because the node has just accepted them for instance: one that a look
// begun after this call does not find there is reported to have left.
func (w *Watcher) Expect(ids ...chain.TxID) {
	w.mu.Lock()
	for _, id := range ids {
		w.ids[id] = true
	}
	w.mu.Unlock()
	w.stir()
}

func (w *Watcher) stir() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Unfollow forgets transactions. An event about one that Run has already seen
// may still come.
func (w *Watcher) Unfollow(ids ...chain.TxID) {
	w.mu.Lock()
	for _, id := range ids {
		delete(w.ids, id)
	}
	w.mu.Unlock()
}

// Run looks until ctx ends, and returns its error. While nothing is followed it
// asks the node nothing; it connects again, ever more slowly, while it cannot.
func (w *Watcher) Run(ctx context.Context) error {
	var conn Conn
	defer func() {
		if conn != nil {
			_ = conn.Close() // what was asked has been answered
		}
	}()
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = w.cfg.Interval, max(slowest, w.cfg.Interval)
	retry.Reset()
	down := false
	for {
		wait := w.cfg.Interval
		err := w.look(ctx, &conn)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			down = false
			retry.Reset()
		default:
			if conn != nil {
				_ = conn.Close() // it has failed
				conn = nil
			}
			if !down {
				down = true
				w.cfg.Problem(err)
			}
			wait = retry.NextBackOff()
		}
		timer := time.NewTimer(wait)
		wake := w.wake
		if down {
			wake = nil // what is new waits with the rest
		}
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look asks about everything followed and reports what changed.
func (w *Watcher) look(ctx context.Context, conn *Conn) error {
	w.mu.Lock()
	known := maps.Clone(w.ids)
	w.mu.Unlock()
	if len(known) == 0 {
		if *conn != nil {
			_ = (*conn).Close() // what was asked has been answered
			*conn = nil
		}
		return ctx.Err()
	}
	if *conn == nil {
		c, err := w.cfg.Dial(ctx)
		if err != nil {
			return err
		}
		*conn = c
	}
	snap, err := (*conn).Snapshot(ctx)
	if err != nil {
		return err
	}
	events, err := w.compare(ctx, snap, known)
	snap.Release()
	for _, e := range events {
		w.cfg.Report(e)
	}
	return err
}

// compare asks about what was known before the snapshot was taken: what was said
// since about a transaction is newer than the snapshot, and the next look's.
func (w *Watcher) compare(ctx context.Context, snap Snapshot, known map[chain.TxID]bool) (events []Event, err error) {
	for _, id := range slices.SortedFunc(maps.Keys(known), func(a, b chain.TxID) int { return slices.Compare(a[:], b[:]) }) {
		now, err := snap.Has(ctx, id)
		if err != nil {
			return events, err
		}
		w.mu.Lock()
		before, followed := w.ids[id]
		if followed && before == known[id] && now != before {
			w.ids[id] = now
			events = append(events, Event{ID: id, Pending: now})
		}
		w.mu.Unlock()
	}
	return events, nil
}

// ErrNotFollowed is returned by Pending for a transaction that is not followed.
var ErrNotFollowed = errors.New("this transaction is not followed")

// Pending tells whether a transaction was in the mempool at the last look.
func (w *Watcher) Pending(id chain.TxID) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, ok := w.ids[id]
	if !ok {
		return false, ErrNotFollowed
	}
	return in, nil
}
