package model

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/trial"
)

// life is one follower from open to end.
type life struct {
	w         *world
	app       *ourotail.Follower
	cancel    context.CancelFunc
	ran       chan error
	over      error // what Run returned
	began     time.Time
	connected bool // a dial was answered
	met       bool // connected when a session failed last: a replay may dial behind the end

	mu      sync.Mutex
	kill    int    // steps until it is killed, 0 for never
	killIn  string // the only step that counts, or empty for any but the index's
	image   string // what the kill left
	killed  string // at which step
	fault   fault
	faulted bool
	durable chain.At  // what the store acknowledged last
	undoing *chain.At // where a rollback under way goes
	atKill  chain.At  // durable then
	lowest  *chain.At // undoing then
}

// fault is how a disk fails.
type fault uint8

const (
	noFault fault = iota
	failCommit
	failRollback
	failHalfRollback
)

// step is told of each step of the follower, by the goroutine that takes it.
func (l *life) step(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.image != "" || l.kill == 0 || l.killIn == "" && name == "index" || l.killIn != "" && name != l.killIn {
		return
	}
	if l.kill--; l.kill > 0 {
		return
	}
	l.imageLocked(name)
}

// storage is the store as the loop sees it, with the faults of a disk.
type storage struct {
	follow.Store
	l *life
}

func (s *storage) take(f fault) bool {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.l.fault != f {
		return false
	}
	s.l.fault, s.l.faulted = noFault, true
	return true
}

func (s *storage) acknowledged() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.durable, s.l.undoing = originOr(s.Head()), nil
}

func (s *storage) Commit(blocks []*chain.Effects) error {
	return s.commit(func() error { return s.Store.Commit(blocks) })
}

func (s *storage) Append(block *chain.Effects) error {
	return s.commit(func() error { return s.Store.Append(block) })
}

func (s *storage) commit(write func() error) error {
	if s.take(failCommit) {
		return errDisk
	}
	if err := write(); err != nil {
		return err
	}
	s.acknowledged()
	s.l.step("committed")
	return nil
}

func (s *storage) Rollback(ctx context.Context, to chain.Point) error {
	if s.take(failRollback) {
		return errDisk
	}
	at := chain.Origin
	if !to.IsOrigin() {
		s.l.w.linksMu.Lock()
		at = s.l.w.links[to.Hash].At()
		s.l.w.linksMu.Unlock()
	}
	s.l.mu.Lock()
	s.l.undoing = &at
	s.l.mu.Unlock()
	s.l.w.willUndo(s.Head(), to)
	s.l.step("rolling back")
	// Half way: the store would be there between two of its transactions.
	if head := s.Head(); head.Height > at.Height+1 {
		if l, ok, err := s.LinkAt(chain.Position{Height: at.Height + (head.Height-at.Height)/2}); err == nil && ok && l.Point != to {
			if err := s.Store.Rollback(ctx, l.Point); err != nil {
				return err
			}
			s.l.step("half rolled back")
			if s.take(failHalfRollback) {
				return errDisk
			}
		}
	}
	if err := s.Store.Rollback(ctx, to); err != nil {
		return err
	}
	s.acknowledged()
	s.l.step("rolled back")
	return nil
}

// willUndo remembers in which order blocks are undone: of orphans, the store keeps
// the last k.
func (w *world) willUndo(head chain.Link, to chain.Point) {
	w.linksMu.Lock()
	defer w.linksMu.Unlock()
	for l, ok := head, true; ok && l.Point != to && !l.Point.IsOrigin(); l, ok = w.links[l.Parent] {
		w.undone++
		w.undoneAt[l.Point] = w.undone
	}
}

// remembered tells whether the store owes us a block that it has undone.
func (w *world) remembered(p chain.Point) bool {
	w.linksMu.Lock()
	defer w.linksMu.Unlock()
	when, undone := w.undoneAt[p]
	return !undone || chain.Height(w.undone-when) < w.k
}

func originOr(l chain.Link) chain.At {
	if l.Point.IsOrigin() {
		return chain.Origin
	}
	return l.At()
}

// open opens the data directory, checks what is in it, and lets the follower run.
func (w *world) open() {
	w.t.Helper()
	for {
		l := &life{w: w, ran: make(chan error, 1), durable: chain.Origin, began: time.Now()}
		if w.rnd.IntN(12) == 0 && w.tables == 0 {
			l.kill = 1 + w.rnd.IntN(3) // while it opens
		}
		policy := follow.NewRetry()
		cfg := ourotail.Config{SocketPath: "list", Genesis: w.genesis, DataDir: w.dir, Archive: w.archive, Memory: 64 << 20}
		ctx := trial.With(w.t.Context(), &trial.Trial{Step: l.step, MemTable: w.memTable(), Unmerged: w.unmerged()})
		app, err := w.o.Open(ctx, cfg, Hooks{
			Dial: func(ctx context.Context) (follow.Conn, error) {
				c, err := w.node.dial(ctx)
				if err == nil {
					l.connected = true
				}
				return c, err
			},
			Tip:     w.node.tip,
			Storage: func(s follow.Store) follow.Store { return &storage{s, l} },
			// Small batches, so that far from the tip many of them are gathered.
			MaxBlocks: []int{0, 1, 2, 5, 20}[w.rnd.IntN(5)],
			// The same waits each time: those of a real follower are drawn.
			Retry: func(err error, failures int) (time.Duration, bool) {
				wait, again := policy(err, failures)
				l.met = l.connected
				d := min(250*time.Millisecond<<min(failures-1, 8), 30*time.Second)
				if wait >= 2*time.Second && (errors.Is(err, follow.ErrBehind) || errors.Is(err, follow.ErrUndecodable)) {
					d = max(d, 2*time.Second)
				}
				return d, again
			},
		})
		if err != nil {
			w.fail("opening: %v", err)
		}
		w.report.Lives++
		if l.image != "" {
			w.note("killed while opening, at %q", l.killed)
			w.report.Kills["opening: "+l.killed]++
			if err := app.Close(); err != nil {
				w.fail("closing: %v", err)
			}
			w.moveTo(l.image)
			continue
		}
		l.kill = 0
		l.app, l.durable = app, originOr(app.State().Head)
		w.life = l
		break
	}
	w.compareStore(true)
	for _, r := range append([]*reader(nil), w.readers...) {
		r.resume()
	}
	l := w.life
	ctx, cancel := context.WithCancel(w.t.Context())
	l.cancel = cancel
	go func() { l.ran <- l.app.Run(ctx) }()
}

// ended tells whether Run has returned: it may do so while a reader waits for its
// past.
func (l *life) ended() bool {
	if l.over == nil {
		synctest.Wait()
		select {
		case l.over = <-l.ran:
		default:
		}
	}
	return l.over != nil
}

// dead tells whether it has been killed: what comes after the image never was.
func (l *life) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.image != ""
}

// patience is how long a follower may take, in virtual time, to end once it was
// told to: it waits for nothing but the disk.
const patience = time.Minute

// within waits for the end of what must not hang.
func (w *world) within(what string, f func()) {
	w.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		w.fail("%s hangs", what)
	}
}

// stop ends the follower cleanly, or kills it.
func (w *world) stop(kill bool) {
	w.t.Helper()
	l := w.life
	if l == nil {
		return
	}
	if kill {
		l.mu.Lock()
		if l.image == "" {
			l.imageLocked("any time")
		}
		l.mu.Unlock()
	}
	l.cancel()
	if l.over == nil {
		w.within("Run", func() { l.over = <-l.ran })
		l.mu.Lock()
		kill, l.kill = kill || l.image != "", 0 // it may have been killed while it stopped
		l.mu.Unlock()
		if !kill && !errors.Is(l.over, context.Canceled) {
			w.ended() // and stop
			return
		}
	}
	if !kill {
		l.app.CloseSubscriptions()
		for _, r := range w.readers {
			r.finish()
		}
	}
	w.within("Close", func() {
		if err := l.app.Close(); err != nil {
			w.fail("closing: %v", err)
		}
	})
	for _, r := range w.readers {
		r.s = nil
	}
	synctest.Wait()
	w.life = nil
	if l.image != "" {
		w.moveTo(l.image)
		w.report.Kills[l.killed]++
		w.checkImage(l)
	}
}

// finish reads what is left of a subscription that was closed: it is true.
func (r *reader) finish() {
	r.w.t.Helper()
	if r.s == nil || r.rate == 0 {
		return
	}
	for tries := 0; ; tries++ {
		past := r.s.replaying()
		e, ok, err := r.s.poll(wait * wholeWait)
		switch {
		case errors.Is(err, io.EOF):
			return
		case !ok && err == nil && past: // the rest of the past, if the node serves it
			if tries > endurance/wholeWait {
				return
			}
			continue
		case err != nil:
			if r.w.life.over != nil && !errors.Is(r.w.life.over, context.Canceled) {
				return // everything failed before
			}
			if isA[*hub.OverflowError](err) || isA[*hub.OlderError](err) && !r.w.archive {
				return // before the close
			}
			r.fail("a clean close ends with %v", err)
		case !ok:
			r.fail("a closed subscription has no end")
		}
		r.take(&e)
	}
}
