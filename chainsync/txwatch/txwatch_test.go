package txwatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync/txwatch"
)

// node is a mempool that a test fills, and that can be unreachable.
type node struct {
	mu    sync.Mutex
	in    map[chain.TxID]bool
	down  error
	dials int
	asked int
	open  int

	during, after func() // called once, as a snapshot is taken and released
}

func (n *node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *node) dial(context.Context) (txwatch.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.down != nil {
		return nil, n.down
	}
	n.open++
	return n, nil
}

func (n *node) Snapshot(context.Context) (txwatch.Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if f := n.during; f != nil {
		n.during = nil
		f()
	}
	return n, n.down
}

func (n *node) Has(_ context.Context, id chain.TxID) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return n.in[id], n.down
}

func (n *node) Release() {
	n.set(func() {
		if f := n.after; f != nil {
			n.after = nil
			f()
		}
	})
}

func (n *node) Close() error {
	n.set(func() { n.open-- })
	return nil
}

var a, b = chain.TxID{1}, chain.TxID{2}

// watch runs a watcher in a bubble with a clock of its own; said returns what it
// reported since the last call, after the given time.
func watch(t *testing.T, n *node, body func(w *txwatch.Watcher, said func(time.Duration) []string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		say := func(s string) {
			mu.Lock()
			log = append(log, s)
			mu.Unlock()
		}
		w := txwatch.New(txwatch.Config{Dial: n.dial, Interval: time.Second,
			Report:  func(e txwatch.Event) { say(fmt.Sprintf("%x %v", e.ID[0], e.Pending)) },
			Problem: func(err error) { say(err.Error()) }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		body(w, func(d time.Duration) []string {
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			out := log
			log = nil
			return out
		})
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n.open != 0 {
			t.Errorf("%d connections are left open", n.open)
		}
	})
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

// TestEntersAndLeaves: each of the two is reported once, within an interval, for
// what is followed and nothing else.
func TestEntersAndLeaves(t *testing.T) {
	n := &node{in: map[chain.TxID]bool{b: true}}
	watch(t, n, func(w *txwatch.Watcher, said func(time.Duration) []string) {
		want(t, said(10*time.Second))
		if n.dials != 0 {
			t.Error("the node was asked although nothing is followed")
		}
		w.Follow(a)
		want(t, said(5*time.Second))
		n.set(func() { n.in[a] = true })
		want(t, said(time.Second), "1 true")
		if in, err := w.Pending(a); !in || err != nil {
			t.Error(in, err)
		}
		want(t, said(5*time.Second))
		n.set(func() { delete(n.in, a) })
		want(t, said(time.Second), "1 false")
		n.set(func() { n.in[a] = true }) // it may come again: its block was undone
		want(t, said(time.Second), "1 true")
		w.Unfollow(a)
		n.set(func() { delete(n.in, a) })
		want(t, said(5*time.Second))
		if _, err := w.Pending(a); !errors.Is(err, txwatch.ErrNotFollowed) {
			t.Error(err)
		}
		if n.dials != 1 {
			t.Errorf("%d connections", n.dials)
		}
	})
}

// TestFollowLooksAtOnce: one that is in the mempool already is reported without
// waiting for the next look.
func TestFollowLooksAtOnce(t *testing.T) {
	n := &node{in: map[chain.TxID]bool{a: true, b: true}}
	watch(t, n, func(w *txwatch.Watcher, said func(time.Duration) []string) {
		said(1500 * time.Millisecond)
		w.Follow(b, a)
		want(t, said(0), "1 true", "2 true")
	})
}

// TestNodeAway: while the node is away nothing is reported as gone, the trouble
// is told once, and afterwards only what really changed.
func TestNodeAway(t *testing.T) {
	n := &node{in: map[chain.TxID]bool{a: true, b: true}}
	watch(t, n, func(w *txwatch.Watcher, said func(time.Duration) []string) {
		w.Follow(a, b)
		want(t, said(time.Second), "1 true", "2 true")
		n.set(func() { n.down = errors.New("away"); n.in = nil })
		want(t, said(5*time.Minute), "away")
		if n.dials < 5 || n.dials > 60 {
			t.Errorf("%d attempts in five minutes", n.dials)
		}
		n.set(func() { n.down = nil; n.in = map[chain.TxID]bool{b: true} })
		want(t, said(time.Minute), "1 false")
		n.set(func() { n.down = errors.New("again") })
		want(t, said(time.Minute), "again")
	})
}

// TestExpected: what is believed to be in the mempool and is not has left; a look
// that began before somebody said so does not count.
func TestExpected(t *testing.T) {
	n := &node{in: map[chain.TxID]bool{b: true}}
	watch(t, n, func(w *txwatch.Watcher, said func(time.Duration) []string) {
		w.Expect(a, b)
		want(t, said(5*time.Second), "1 false")
		n.set(func() { n.in[a] = true })
		w.Expect(a)
		want(t, said(5*time.Second))
		w.Unfollow(a)
		n.set(func() { delete(n.in, a) })
		w.Follow(a)
		n.set(func() {
			n.during = func() { // accepted while a look goes on that began before
				w.Expect(a)
				n.after = func() { n.in[a] = true }
			}
		})
		want(t, said(5*time.Second))
		if in, err := w.Pending(a); !in || err != nil {
			t.Error(in, err)
		}
	})
}

// TestNobodyFollowsNobodyIsAsked: the connection goes with the last transaction.
func TestNobodyFollowsNobodyIsAsked(t *testing.T) {
	n := &node{in: map[chain.TxID]bool{}}
	watch(t, n, func(w *txwatch.Watcher, said func(time.Duration) []string) {
		w.Follow(a)
		said(2 * time.Second)
		w.Unfollow(a)
		said(2 * time.Second)
		n.set(func() {
			if n.open != 0 || n.dials != 1 {
				t.Errorf("%d connections open of %d", n.open, n.dials)
			}
		})
	})
}
