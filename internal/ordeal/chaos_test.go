package ordeal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/query"
)

// day is a bad day: a node, its chain, a follower and its readers.
type day struct {
	t   *testing.T
	r   *rand.Rand
	k   int
	n   *node
	dir string

	f       *ourotail.Follower // nil while it is down
	stop    context.CancelFunc
	ran     chan error
	readers readers

	mu    sync.Mutex
	steps map[string]int // that followers took
	brake chan struct{}  // not nil: the follower's owner waits for its end

	answer time.Duration // that a node may take for an answer
	before int64         // blocks that earlier followers applied
}

// act is something that happens on a bad day. It begins with a follower at the
// tip, and once it is over the follower comes to the tip again.
type act struct {
	name string
	do   func(*day) error
	long bool // takes a time that only the long form has
}

// TestChaos is a scripted bad day: everything that a node, a chain and an owner
// can do to a follower, one thing after the other in an order that the seed says,
// with readers of all kinds. After each the set is the oracle's; every reader was
// told of each rollback before the new fork's first block; in the end what each
// has folded is the oracle's.
func TestChaos(t *testing.T) {
	t.Parallel()
	r, seed := random(t, 4)
	k, blocks, answer := 40, 0, time.Second
	cfg := devnode.Config{WriteTimeout: 5 * time.Second}
	if *long {
		k, blocks, answer = 216, 10_000, 5*time.Second
		cfg.WriteTimeout = devnode.DefaultWriteTimeout
	}
	d := &day{t: t, r: r, k: k, answer: answer, dir: filepath.Join(dataDir(t, *long), "data"), steps: map[string]int{},
		n: generated(t, cfg, forge.Options{Seed: seed, K: k, EpochBlocks: 30}, k/2)}
	wallet := d.n.chain.Wallet()
	d.readers = readers{t: t, oracle: d.n.chain.Oracle(), watch: query.AnyOf(query.Address(wallet[0]), query.Address(wallet[1]), query.Address(wallet[len(wallet)-1]))}
	began := time.Now()
	d.up()
	d.arrive()
	done := 0
	perform := func(a act) {
		at := time.Now()
		if err := a.do(d); err != nil {
			t.Fatalf("act %d, %s: %v", done, a.name, err)
		}
		d.n.Behave(devnode.Behaviour{})
		d.arrive()
		if *long || done%3 == 0 {
			if err := verify(t, d.f, d.readers.oracle); err != nil {
				t.Fatalf("after act %d, %s: %v", done, a.name, err)
			}
		}
		done++
		if took := time.Since(at); *long || took > 2*time.Second {
			t.Logf("%6d blocks, height %5d  %-50s %v", d.applied(), d.n.chain.Tip().Height, a.name, took.Round(time.Millisecond))
		}
	}
	for _, a := range young {
		perform(a)
	}
	for round := 0; round == 0 || d.applied() < blocks; round++ {
		all := slices.Clone(acts)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i, a := range all {
			if a.long && (!*long || round > 0) || testing.Short() && i%3 > 0 {
				continue
			}
			perform(a)
		}
	}
	if err := d.deeperThanK(); err != nil {
		t.Fatalf("a fork deeper than k: %v", err)
	}
	d.down()
	w := d.readers.walks["outputs"]
	t.Logf("%d acts in %v: %d blocks were applied, %d with %d effects were read, %d rollbacks of up to %d blocks; the chain ends at height %d",
		done, time.Since(began).Round(100*time.Millisecond), d.before, w.blocks, w.effects, w.rollbacks, w.deepest, d.n.chain.Tip().Height)
}

// applied is how many blocks followers have applied.
func (d *day) applied() int { return int(d.before + d.f.Progress().Blocks) }

// up starts the follower, and its readers go on.
func (d *day) up() {
	d.t.Helper()
	cfg := ourotail.Config{SocketPath: d.n.Socket(), Genesis: d.n.genesis, DataDir: d.dir, Memory: 64 << 20,
		Logger: slog.New(slog.NewTextHandler(d.t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
		Brake:  d.wait}
	ctx := trial.With(d.t.Context(), &trial.Trial{
		Step: func(name string) {
			d.mu.Lock()
			d.steps[name]++
			d.mu.Unlock()
		},
		// An honest answer takes less, mostly, on a slow machine too; where it does not,
		// the follower connects again.
		Limits: trial.Limits{Handshake: time.Second, Answer: d.answer, Quiet: 400 * time.Millisecond, Frozen: 100 * time.Millisecond,
			Retry: 50 * time.Millisecond},
	})
	f, err := ourotail.Open(ctx, cfg)
	if err != nil {
		d.t.Fatal(err)
	}
	d.f, d.ran = f, make(chan error, 1)
	d.readers.subscribe(f)
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	go func() { d.ran <- f.Run(ctx) }()
}

// wait is the brake of an owner who is slow.
func (d *day) wait(ctx context.Context) error {
	d.mu.Lock()
	brake := d.brake
	if brake != nil {
		d.steps["braked"]++
	}
	d.mu.Unlock()
	if brake == nil {
		return nil
	}
	select {
	case <-brake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// down ends the follower and looks at what its readers know.
func (d *day) down() {
	d.t.Helper()
	d.stop()
	if err := <-d.ran; !errors.Is(err, context.Canceled) {
		d.t.Fatalf("the follower ended: %v", err)
	}
	d.f.CloseSubscriptions()
	d.closed(false)
}

func (d *day) closed(failed bool) {
	d.t.Helper()
	head := d.f.State().Head
	d.before += d.f.Progress().Blocks
	if err := d.readers.finish(head, failed); err != nil {
		d.t.Fatal(err)
	}
	if err := d.f.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.readers.stop()
	d.f = nil
}

// until waits for something that is to become true of a follower that runs.
func (d *day) until(what string, ok func() bool) {
	d.t.Helper()
	deadline := time.Now().Add(4 * time.Minute)
	for !ok() {
		select {
		case err := <-d.ran:
			d.t.Fatalf("waiting for %s: the follower ended: %v", what, err)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			now := d.f.Progress()
			d.t.Fatalf("waiting for %s: head %v, %s, tip %v, last error %v", what, now.Head.At(), now.Phase, d.n.chain.Tip(), now.LastError)
		}
	}
}

// arrive waits until the follower is at the tip.
func (d *day) arrive() {
	d.t.Helper()
	d.until("the tip", func() bool {
		now := d.f.Progress()
		return d.f.State().Head.Point == d.n.chain.Tip().Point && now.Phase == follow.Following
	})
}

// fails waits until following has failed for a reason.
func (d *day) fails(want error) {
	d.t.Helper()
	d.until(want.Error(), func() bool { return errors.Is(d.f.Progress().LastError, want) })
}

// health waits until the follower's health is of a grade, for a reason if one is
// given.
func (d *day) health(g ourotail.Grade, reason string) {
	d.t.Helper()
	d.until("health "+string(g)+" "+reason, func() bool {
		h := d.f.Health()
		return h.Grade == g && strings.Contains(h.LastError+" "+h.Probe+" "+strings.Join(h.Reasons, " "), reason)
	})
}

func (d *day) took(step string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.steps[step]
}

// fork replaces the newest blocks by others and puts more on them; as deep as can
// be undone and as there are blocks.
func (d *day) fork(depth, more int) error {
	depth = max(1, min(depth, d.k, int(d.n.chain.Tip().Height)+1))
	return d.n.chain.Fork(depth, depth+more)
}

func (d *day) grow(n int) error { return d.n.chain.Extend(n) }

// misbehave lets the node treat replies in a way.
func (d *day) misbehave(f devnode.Fault) { d.n.Behave(devnode.Behaviour{OnReply: f}) }

// deeperThanK: the node is on another chain from deeper than can be undone. The
// follower stops, says what to do, and has touched nothing; when the node has come
// back it goes on.
func (d *day) deeperThanK() error {
	if err := d.grow(max(0, 2*d.k-int(d.n.chain.Tip().Height))); err != nil {
		return err
	}
	d.arrive()
	path, err := d.n.chain.Oracle().Path(d.n.chain.Tip().Point.Hash)
	if err != nil {
		return err
	}
	depth := d.k + 1 + d.r.IntN(3)
	at := len(path)
	for path[at-1].Height > d.n.chain.Tip().Height-chain.Height(depth) {
		at--
	}
	var old []devnode.Block
	for i := at; i < len(path); i++ {
		raw, err := d.n.chain.Raw(i)
		if err != nil {
			return err
		}
		old = append(old, devnode.Block{Link: path[i], Raw: raw})
	}
	// A failure drops what was not read.
	d.until("the readers", func() bool { return d.readers.all(path[len(path)-1].At()) })
	before, rolled := d.f.State(), d.took("rollback")
	if err := d.n.chain.Fork(depth, depth+5); err != nil {
		return err
	}
	err = <-d.ran
	var fatal *follow.FatalError
	if !errors.As(err, &fatal) || !errors.Is(err, follow.ErrDiverged) || fatal.Hint == "" {
		return fmt.Errorf("the follower ended with %w, which is not what it should say", err)
	}
	if now := d.f.State(); now != before || d.took("rollback") != rolled {
		return fmt.Errorf("it was %+v, and is %+v", before, now)
	}
	d.closed(true)
	if f, err := ourotail.Open(d.t.Context(), ourotail.Config{SocketPath: d.n.Socket(), Genesis: d.n.genesis, DataDir: d.dir, Memory: 64 << 20}); err != nil {
		return err
	} else if err := errors.Join(verify(d.t, f, d.readers.oracle), f.Close()); err != nil {
		return err
	}
	if err := d.n.chain.Switch(path[at-1].Point, old...); err != nil {
		return err
	}
	d.up()
	d.arrive()
	return nil
}
