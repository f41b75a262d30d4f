package ourotail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// Config says what to follow and where to keep it. SocketPath, Genesis and
// DataDir are required.
//
// Open does not ask the node, and following waits for one that is not there, or not at
// this SocketPath: it tries again for as long as it takes, and a loop is silent
// meanwhile. The Logger is told why, and so is Follower.Health: it is Unhealthy, with
// the number of attempts in Reasons and what the last failed of in LastError. Following
// that has never been connected gives up at once only if it would end by itself (Until,
// ExitAtTip), or for what waiting does not mend, such as a node of another network.
type Config struct {
	SocketPath string          // the node's Unix socket
	Genesis    *ledger.Genesis // of the network; see ledger.Network and ledger.LoadGenesis
	DataDir    string          // made if it is not there; one process at a time
	Archive    bool            // keep spent outputs; chosen when the directory is made, which then stays an archive
	Compact    bool            // make of an archive a directory that keeps unspent outputs only
	Memory     int64           // for the store, in bytes; 0 for store.DefaultMemory

	// Resync gives up what the directory holds and follows from origin. It is for
	// a chain that was replaced deeper than k, a damaged directory, or another
	// retention; never automatic. See store.Options.
	Resync bool

	// Immutable, if not empty, is the node's own ImmutableDB folder. What lies there
	// above the head is read from its files, which is faster than most nodes serve;
	// from their end on it goes over the socket. The node may run, or not yet.
	Immutable string

	Until     *chain.Height // end Run once this height is committed; nil for never
	ExitAtTip bool          // end Run once the node has no more blocks

	// Brake, if set, is called between batches and may wait until ctx ends: the owner
	// of a slow reader holds following back, with no lock held.
	Brake func(ctx context.Context) error

	// IndexProgress, if set, is told how much of the first index build is done,
	// from 0 to 1.
	IndexProgress func(done float64)

	Logger *slog.Logger // nil discards; then Follower.Health is all that tells of a node that cannot be reached

}

// Follower keeps one data directory up to date with one node. Make one with
// Open and drive it with Run; everything else may be called from any goroutine.
type Follower struct {
	dir     // its Close would close the store under the hub, so nobody else reaches it
	cfg     Config
	trial   *trial.Trial // this project's own tests; nil for everybody else
	hub     *hub.Hub
	journal *journalBlocks  // made by openHub, like life
	life    context.Context // ends with Close; replays do, too
	die     context.CancelFunc
	follow  *follow.Follower

	node      node
	storage   func(follow.Store) follow.Store // set by tests: what stands between follow and the store
	maxBlocks int                             // of a batch, set by tests; 0 for the default
	overFiles bool                            // the files' turn is over, the socket is next; touched by dial
	room      room
	watch     watch
	calendar  calendar
	followed  chan struct{} // holds one token if a transaction has come to be followed
	policy    func(error, int) (time.Duration, bool)
	pastWait  func(failures int) time.Duration // before a replay asks the node again; nil is with jitter
	connected atomic.Bool                      // a connection to the node was made
	ends      atomic.Bool                      // the present run ends by itself
	driver    driver
	near      chan struct{} // closed when the head first comes within k of the tip
	nearOnce  sync.Once
}

// Open opens the data directory, recovers it if the last process was killed, and
// prepares to follow. Nothing is asked of the node before Run.
func Open(ctx context.Context, cfg Config) (*Follower, error) { return open(ctx, cfg, nil) }

// open is Open with a word of the tests before anything is read.
func open(ctx context.Context, cfg Config, adapt func(*Follower)) (*Follower, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := cfg.Genesis
	if g == nil || cfg.DataDir == "" || cfg.SocketPath == "" {
		return nil, errors.New("ourotail: a socket path, a genesis and a data directory are required")
	}
	k := chain.Height(g.K)
	if cfg.Immutable != "" { // before anything is made
		if _, err := openFiles(cfg); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, err
	}
	opts := store.Options{Dir: cfg.DataDir, Magic: g.Magic, K: k, Archive: cfg.Archive, Compact: cfg.Compact, Memory: cfg.Memory, Resync: cfg.Resync, Terms: ledger.Terms, Logger: cfg.Logger}
	onTrial := trial.Of(ctx)
	opts = opts.WithTrial(onTrial)
	room := newRoom(opts)
	opts.Room = room.check
	if !cfg.Resync { // starting over makes room
		if err := room.check(); err != nil {
			return nil, err
		}
	}
	st, err := store.Open(opts)
	if err != nil {
		return nil, err
	}
	f := &Follower{dir: Dir{store: st, path: cfg.DataDir}, room: room, cfg: cfg, near: make(chan struct{}), policy: follow.NewRetry(), trial: onTrial, watch: newWatch(onTrial.Waits()),
		calendar: newCalendar(g), followed: make(chan struct{}, 1)}
	f.node = socketNode{f.nodeConfig()}
	if adapt != nil {
		adapt(f)
	}
	if err := f.prepare(ctx); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return f, nil
}

func (f *Follower) prepare(ctx context.Context) error {
	g, st := f.cfg.Genesis, f.store
	if !st.State().Seeded {
		if err := g.Complete(); err != nil {
			return err
		}
		if err := st.Genesis(g.Outputs); err != nil {
			return fmt.Errorf("writing the genesis outputs: %w", err)
		}
	}
	if err := f.openHub(ctx); err != nil {
		return err
	}
	var storage follow.Store = st
	if f.storage != nil {
		storage = f.storage(storage)
	}
	var avvm []chain.TxIn
	for _, o := range g.Outputs[:g.AVVM] {
		avvm = append(avvm, o.Ref)
	}
	var brake func(context.Context) error
	if f.cfg.Brake != nil {
		brake = f.brake
	}
	f.follow = follow.New(follow.Config{
		Dial:            f.dial,
		Store:           storage,
		Hub:             f.hub,
		MaxBlocks:       f.maxBlocks,
		K:               chain.Height(g.K),
		ByronEpochSlots: g.ByronEpochSlots,
		AVVM:            avvm,
		Brake:           brake,
		Near:            func() { f.nearOnce.Do(func() { close(f.near) }) },
		Quarantine:      f.quarantine,
		Retry:           f.retry,
		Step:            f.trial.At,
		Logger:          f.cfg.Logger,
	})
	return nil
}

// node is how the node is reached.
type node interface {
	// dial connects and agrees on a version.
	dial(ctx context.Context) (follow.Conn, error)
	// tip asks for the node's tip over a connection of its own.
	tip(ctx context.Context) (chain.Tip, error)
}

// socketNode is a node behind its socket.
type socketNode struct{ cfg chainsync.Config }

func (n socketNode) dial(ctx context.Context) (follow.Conn, error) {
	c, err := chainsync.Dial(ctx, n.cfg)
	if err != nil {
		return nil, err // not c: an interface around a nil pointer is not nil
	}
	return c, nil
}

func (n socketNode) tip(ctx context.Context) (chain.Tip, error) { return chainsync.Probe(ctx, n.cfg) }

func (f *Follower) dial(ctx context.Context) (follow.Conn, error) {
	if c, err := f.dialFiles(ctx); c != nil || err != nil {
		return c, err
	}
	c, err := f.node.dial(ctx)
	if err != nil {
		return nil, err
	}
	f.connected.Store(true)
	return f.watch.watches(c), nil
}

func (f *Follower) nodeConfig() chainsync.Config {
	limits := f.trial.Waits()
	return chainsync.Config{SocketPath: f.cfg.SocketPath, Magic: f.cfg.Genesis.Magic, Logger: f.cfg.Logger,
		HandshakeTimeout: limits.Handshake, AnswerTimeout: limits.Answer}
}

// NodeTip asks the node for its tip, over a connection of its own.
func (f *Follower) NodeTip(ctx context.Context) (chain.Tip, error) {
	return f.node.tip(ctx)
}

// slowRetry is how long to wait, after a few quicker attempts, when only a person
// can mend it: a wrong network, a missing permission, a node that talks nonsense.
// Not giving up lets them mend it while we run.
const slowRetry = 30 * time.Second

// retry decides how to go on after a session. Before the first connection what
// waiting cannot mend is final: somebody has just typed it. A follower that ends
// by itself does not wait for a node that was never there either.
func (f *Follower) retry(err error, failures int) (wait time.Duration, again bool) {
	if most := f.trial.Waits().Retry; most > 0 {
		defer func() { wait = min(wait, most) }()
	}
	wait, again = f.policy(err, failures)
	var files *immutabledb.Error
	if errors.As(err, &files) {
		return 0, false
	}
	var node *chainsync.Error
	if !again || !errors.As(err, &node) {
		return wait, again
	}
	mends := chainsync.Retryable(err)
	if !f.connected.Load() && (!mends || f.ends.Load()) {
		return 0, false
	}
	if !mends {
		wait = min(slowRetry, time.Second<<min(failures, 5))
	}
	return wait, true
}

// quarantine keeps the bytes of a block that does not decode.
func (f *Follower) quarantine(raw []byte) (string, error) {
	dir := filepath.Join(f.cfg.DataDir, "undecodable")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(dir, fmt.Sprintf("after-height-%d.cbor", f.store.State().Head.Height))
	return name, os.WriteFile(name, raw, 0o600)
}

// Run follows until ctx ends, Close is called (ErrClosed), what Config asked for is
// reached (nil), or a person must act. Once the head comes within k of the node's tip the indexes
// are built beside it; a Run that ends at the tip waits for them.
// While Run drives nobody else does: a second call is refused with ErrFollowing. So
// is one after a loop's following has ended as Config asked, with ErrEnded, or of an
// error, with that.
func (f *Follower) Run(ctx context.Context) error { return f.drive(ctx, f.configured()) }

// configured is where Config ends following.
func (f *Follower) configured() follow.Stop {
	stop := follow.Stop{Until: chain.OriginHeight, AtTip: f.cfg.ExitAtTip}
	if f.cfg.Until != nil {
		stop.Until = *f.cfg.Until
	}
	return stop
}

// CatchUp follows until the block at the height is committed.
func (f *Follower) CatchUp(ctx context.Context, until chain.Height) error {
	return f.drive(ctx, follow.Stop{Until: until})
}

func (f *Follower) run(ctx context.Context, stop follow.Stop) error {
	f.ends.Store(stop != follow.Never)
	f.overFiles = false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside := besides{ctx: ctx, cancel: cancel}
	built := beside.start(f.buildIndexes)
	others := []<-chan struct{}{beside.start(f.scrub), beside.start(f.watchStore), beside.start(f.watchNode),
		beside.start(f.learn), beside.start(f.watchMempool)}
	err := f.follow.Run(ctx, stop)
	if err != nil || !f.isNear() {
		cancel() // far from the tip the next run goes on
	}
	<-built
	cancel()
	for _, other := range others {
		<-other
	}
	if serr := f.store.Err(); serr != nil { // it may have come to light with the end
		beside.fail(serr)
	}
	if err = beside.join(err); len(beside.errs) > 0 {
		f.hub.FailAll(err) // unless following has
	}
	return err
}

func (f *Follower) isNear() bool {
	select {
	case <-f.near:
		return true
	default:
		return false
	}
}

func (f *Follower) buildIndexes(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.near:
	}
	if f.store.State().Index.Built {
		return nil
	}
	f.cfg.Logger.Info("building the indexes")
	began := time.Now()
	if err := f.store.BuildIndexes(ctx, f.cfg.IndexProgress); err != nil {
		return err
	}
	f.cfg.Logger.Info("the indexes are built", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// brake is Config.Brake, which is left to itself once ctx has ended: it may be the
// one that closes the follower, and Close waits for Run.
func (f *Follower) brake(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- f.cfg.Brake(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends following, waits until Run or CatchUp have returned, which they do with
// ErrClosed, ends the subscriptions, and closes the data directory. Calling it again
// does nothing. It may be called from the body of a loop and from Config.Brake, but
// neither from a function that a View calls nor from Config.IndexProgress: those hold
// the directory open.
func (f *Follower) Close() error {
	f.halt()
	f.hub.CloseAll()
	f.die()
	return f.dir.Close()
}
