package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/resolve"
	"github.com/ourotail/ourotail/rollback"
)

// Follower follows one node into one store. Run drives it; Status and Locked
// may be called from any goroutine.
type Follower struct {
	cfg Config
	log *slog.Logger

	publish sync.Mutex // held over commit (or undo) and buffering in the hub

	stop     Stop             // of the present Run
	points   *rollback.Points // the committed chain and, above it, the open batch
	resolver *resolve.Resolver
	walked   ledger.Block
	builder  resolve.Builder
	open     batch
	gathered atomic.Pointer[gathered] // what the store has not written; nil is the ordinary case
	status   status
	work     atomic.Pointer[chan struct{}] // closed when the blocks at the tip in hand are out; nil while there are none
}

// errDone ends a session that reached what was asked for.
var errDone = errors.New("done")

// New returns a follower that has not started.
func New(cfg Config) *Follower {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxBlocks == 0 {
		cfg.MaxBlocks = DefaultMaxBlocks
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.Retry == nil {
		cfg.Retry = NewRetry()
	}
	if cfg.Step == nil {
		cfg.Step = func(string) {}
	}
	f := &Follower{cfg: cfg, log: cfg.Logger, resolver: resolve.New(cfg.Store)}
	f.walked.ByronEpochSlots = cfg.ByronEpochSlots
	f.builder.ByronEpochSlots = cfg.ByronEpochSlots
	f.status.now = Status{Phase: Starting, Head: cfg.Store.Head(), Newest: cfg.Store.Head(), Tip: chain.Origin}
	return f
}

// Status returns a picture of the follower now.
func (f *Follower) Status() Status { return f.status.get() }

// Locked runs fn under the publish lock: while it runs the store's head is the
// hub's tip and neither moves. fn must not wait for a reader.
func (f *Follower) Locked(fn func()) {
	f.publish.Lock()
	defer f.publish.Unlock()
	if err := f.flushLocked(); err != nil {
		f.log.Error("what was gathered could not be written", "error", err) // the next commit says so too
	}
	fn()
}

// Run follows until ctx ends (its error), what stop asks for is reached (nil),
// or a person must act (*FatalError or the store's error); then the hub has
// failed. Only one Run at a time; another may follow one that returned nil.
func (f *Follower) Run(ctx context.Context, stop Stop) error {
	f.stop = stop
	defer f.status.update(func(s *Status) { s.Phase = Stopped })
	if err := f.load(); err != nil {
		return err
	}
	if f.reached() {
		return nil
	}
	for failures := 0; ; {
		before := f.status.get().Blocks
		err := f.session(ctx)
		var fatal *FatalError
		switch {
		case errors.Is(err, errDone):
			return nil
		case ctx.Err() != nil:
			if errors.As(err, &fatal) { // the last commit failed: that is no clean end
				f.cfg.Hub.FailAll(fatal) // without what ended it: nobody should take this for that
				return fatal
			}
			return ctx.Err()
		case errors.Is(err, ErrHandover) && !errors.As(err, &fatal): // what came before it is committed
			f.log.Info("going on over the next connection", "because", err)
			continue
		}
		if f.status.get().Blocks > before {
			failures = 0
		}
		failures++
		wait, retry := f.cfg.Retry(err, failures)
		if !retry {
			f.cfg.Hub.FailAll(err)
			return err
		}
		f.note(err, failures, wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// note records and logs a session's end, the same error once.
func (f *Follower) note(err error, failures int, wait time.Duration) {
	last := f.status.get().LastError
	phase := Disconnected
	if errors.Is(err, ErrBehind) {
		phase = NodeBehind
	}
	f.status.update(func(s *Status) { s.Phase, s.LastError, s.Failures = phase, err, failures })
	level := slog.LevelWarn
	if last != nil && last.Error() == err.Error() {
		level = slog.LevelDebug
	} else if phase == NodeBehind {
		level = slog.LevelInfo
	}
	f.log.Log(context.Background(), level, "session ended, trying again", "error", err, "failures", failures, "wait", wait.Round(time.Millisecond))
}

// NewRetry returns a policy for one follower: it waits from a quarter of a second,
// growing to 30 s, with jitter, and begins anew after every success; a
// *FatalError and an input that does not resolve are final.
func NewRetry() func(err error, failures int) (time.Duration, bool) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier, b.MaxInterval = 250*time.Millisecond, 2, 30*time.Second
	return func(err error, failures int) (time.Duration, bool) {
		var fatal *FatalError
		var input *resolve.InputError
		if errors.As(err, &fatal) || errors.As(err, &input) {
			return 0, false
		}
		if failures <= 1 {
			b.Reset()
		}
		wait := b.NextBackOff()
		if errors.Is(err, ErrBehind) || errors.Is(err, ErrUndecodable) {
			wait = max(wait, 2*time.Second)
		}
		return wait, true
	}
}

// load takes the newest points from the store.
func (f *Follower) load() error {
	// What can be rolled back, boundary blocks and a step of slack; above that the
	// open batch, which must be cut back to what is below it.
	keep := int(f.cfg.K) + 64 + f.cfg.MaxBlocks
	f.points = rollback.New(keep)
	links, whole, err := f.cfg.Store.Links(keep)
	if err != nil {
		return fmt.Errorf("reading the last points: %w", err)
	}
	if err := f.points.Load(links, whole); err != nil {
		return &FatalError{Op: "reading the last points", At: f.cfg.Store.Head().At(), Cause: err,
			Hint: "the store is damaged: ourotail check tells how, --resync starts over"}
	}
	if head, ok := f.points.Head(); ok && head != f.cfg.Store.Head() {
		return &FatalError{Op: "reading the last points", At: f.cfg.Store.Head().At(), Cause: fmt.Errorf("they end at %s", head.At()),
			Hint: "the store is damaged: ourotail check tells how, --resync starts over"}
	}
	return nil
}

// reached tells whether Until lies at or below the committed head.
func (f *Follower) reached() bool {
	head := f.cfg.Store.Head()
	return f.stop.Until > chain.OriginHeight && head.Height >= f.stop.Until && !head.Point.IsOrigin()
}

// session is one connection, from dial to its end. Blocks that joined the open
// batch but were not committed are forgotten with it.
func (f *Follower) session(ctx context.Context) (err error) {
	f.status.update(func(s *Status) { s.Phase = Connecting })
	conn, err := f.cfg.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() {
		conn.Close()
		f.drop()
		if ferr := f.flush(); ferr != nil {
			err = errors.Join(err, ferr)
		}
	}()
	if err := f.intersect(ctx, conn); err != nil {
		return err
	}
	defer f.workEnds()
	for {
		if err := f.brake(ctx); err != nil {
			return err
		}
		f.workEnds()
		msgs, err := conn.Next(ctx)
		f.workBegins()
		if err != nil {
			// What came before the end is good: keep it.
			return errors.Join(err, f.commit())
		}
		err = f.messages(ctx, msgs.List)
		f.open.own(msgs.Release) // only now: a commit in the middle must not free what is still to come
		if err == nil {
			err = f.settle(msgs.List)
		}
		if err != nil {
			return err
		}
	}
}

func (f *Follower) workBegins() {
	if f.status.get().Phase == Following {
		done := make(chan struct{})
		f.work.Store(&done)
	}
}

func (f *Follower) workEnds() {
	if done := f.work.Swap(nil); done != nil {
		close(*done)
	}
}

// GiveWay waits while a block at the tip is on its way from the node to the
// subscribers, for whoever has work of its own that can wait so long. Far from the tip
// it does not wait: there would be no end.
func (f *Follower) GiveWay(ctx context.Context) {
	if done := f.work.Load(); done != nil {
		select {
		case <-*done:
		case <-ctx.Done():
		}
	}
}

func (f *Follower) messages(ctx context.Context, list []chain.Message) error {
	for _, m := range list {
		if err := f.message(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// refinePoints is how many points are offered at a time when an intersection is
// narrowed down.
const refinePoints = 128

// intersect finds where to go on: the newest block that we and the node share.
func (f *Follower) intersect(ctx context.Context, conn Conn) error {
	ladder := f.points.Ladder()
	found, ok, tip, err := conn.Intersect(ctx, ladder)
	if err != nil {
		return err
	}
	f.heard(tip)
	head, _ := f.points.Head()
	behind, err := f.behind(tip)
	switch {
	case err != nil:
		return err
	case behind:
		return fmt.Errorf("%w: its tip is %s, our head is %s", ErrBehind, tip, head.At())
	case !ok:
		return f.diverged("none of our points", tip, "it shares none of our last blocks")
	}
	high := head.Point
	if i := slices.Index(ladder, found); i > 0 {
		high = ladder[i-1]
	}
	for found != head.Point {
		points := f.points.Between(found, high, refinePoints)
		if len(points) == 0 {
			break
		}
		better, ok, _, err := conn.Intersect(ctx, append(slices.Clone(points), found))
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: it no longer knows %s", ErrNonsense, found) // it switched forks meanwhile
		}
		i := slices.Index(points, better)
		switch {
		case i < 0: // found itself
			high = points[len(points)-1]
		case i > 0:
			high = points[i-1]
			fallthrough
		default:
			found = better
		}
	}
	if found.IsOrigin() && !f.cfg.Store.Floor().IsOrigin() {
		// A young chain: all our points are in memory, and origin is offered too.
		return f.diverged("origin", tip, "it shares none of our blocks")
	}
	f.log.Info("connected", "intersection", found, "head", head.At(), "tip", int64(tip.Height))
	return nil
}

func (f *Follower) diverged(to string, tip chain.Tip, why string) error {
	head := f.cfg.Store.Head()
	return &FatalError{Op: "following the node", At: head.At(),
		Cause: fmt.Errorf("%w: %s (its tip is %s, we can roll back to %s, it wants %s)", ErrDiverged, why, tip, f.cfg.Store.Floor(), to),
		Hint:  "is this socket the right node, on the right network? If its chain really was replaced, --resync starts over"}
}

// behind tells whether the node's tip is one of our blocks below our head: then
// its chain is a part of ours, and it is still catching up.
func (f *Follower) behind(tip chain.Tip) (bool, error) {
	head := f.cfg.Store.Head()
	switch {
	case tip.Point == head.Point, tip.Height > head.Height: // even if only the height is known
		return false, nil
	case tip.IsOrigin():
		return true, nil
	}
	for _, boundary := range []bool{false, true} {
		l, ok, err := f.cfg.Store.LinkAt(chain.Position{Height: tip.Height, Boundary: boundary})
		if err != nil {
			return false, &FatalError{Op: "looking up the node's tip", At: head.At(), Cause: err}
		}
		if ok && l.Point == tip.Point {
			return true, nil
		}
	}
	return false, nil
}

func (f *Follower) heard(tip chain.Tip) {
	f.status.update(func(s *Status) { s.Tip, s.TipSeen = tip, time.Now() })
}
