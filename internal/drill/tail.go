package drill

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

// Spec is what a Tail process is told, as JSON in its argument.
type Spec struct {
	Socket    string   `json:"socket"`
	Config    string   `json:"config"`
	Dir       string   `json:"dir"`
	Addresses [][]byte `json:"addresses"` // none: every output
	// After is the text of the cursor behind which the lines go on; if it is empty
	// they begin at origin.
	After string `json:"after"`
	// DieBelow, if not 0, is a height: the process kills itself as soon as a
	// rollback has taken the store below it, between two of its transactions if it
	// takes more than one.
	DieBelow chain.Height `json:"die_below,omitempty"`
}

// Query is what the lines are about.
func (s *Spec) Query() query.UTxO {
	if len(s.Addresses) == 0 {
		return query.Everything()
	}
	var arms []query.UTxO
	for _, a := range s.Addresses {
		arms = append(arms, query.Address(a))
	}
	return query.AnyOf(arms...)
}

// Tail follows and writes JSON lines as the command tail does, and besides an
// idle line for each block without any, by which the drill knows how far it is. It
// ends when stdin ends.
//
// It is the main function of a process of its own: the goroutine that reads stdin
// ends with it.
func Tail(ctx context.Context, spec Spec, stdin io.Reader, out io.Writer, log *slog.Logger) (err error) {
	g, err := ledger.LoadGenesis(spec.Config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var opened atomic.Pointer[ourotail.Follower]
	cfg := ourotail.Config{SocketPath: spec.Socket, Genesis: g, DataDir: spec.Dir, Memory: 64 << 20, Logger: log}
	onTrial := &trial.Trial{Step: func(name string) {
		if f := opened.Load(); f != nil && spec.DieBelow > 0 && (name == "undo" || name == "rolled back") && f.State().Head.Height < spec.DieBelow {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // there is no afterwards in which to report an error
		}
	}}
	f, err := ourotail.Open(trial.With(ctx, onTrial), cfg)
	if err != nil {
		return err
	}
	opened.Store(f)
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewWriterSize(out, 1<<16)
	sub, err := subscribe(ctx, f, spec)
	if err != nil {
		return err
	}
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, stdin) // however it ends, it has ended
	}()
	read := make(chan error, 1)
	go func() {
		defer stop() // nobody reads: nothing to follow for
		read <- write(ctx, f, lines, sub)
	}()
	err = f.Run(ctx)
	sub.Cancel()
	if rerr := <-read; !errors.Is(rerr, context.Canceled) && !errors.Is(rerr, hub.ErrCancelled) {
		err = rerr
	}
	var fatal *follow.FatalError
	if errors.Is(err, context.Canceled) && !errors.As(err, &fatal) {
		return nil // as asked
	}
	return err
}

// subscribe goes on behind the cursor. If a fork undid its block, in this process or
// an earlier one, the undo comes first.
func subscribe(ctx context.Context, f *ourotail.Follower, spec Spec) (hub.Stream[chain.UTxOEvent], error) {
	opts := hub.Options{Start: hub.Origin, Idle: true, Bound: hub.Unbounded}
	if spec.After != "" {
		t, err := chain.ParseToken(spec.After)
		if err != nil {
			return nil, err
		}
		opts.Start, opts.After = hub.Resume, t.Cursor
	}
	return f.SubscribeUTxOs(ctx, spec.Query(), opts)
}

func write(ctx context.Context, f *ourotail.Follower, lines *bufio.Writer, sub hub.Stream[chain.UTxOEvent]) error {
	st := f.State()
	stamp := record.Stamp{Magic: st.Magic, K: st.K, Highest: func() chain.Height { return f.State().Highest }, Time: f.Time}
	enc := json.NewEncoder(lines)
	for {
		ev, err := sub.Next(ctx)
		if err == nil {
			err = enc.Encode(stamp.Of(&ev))
		}
		if err != nil || sub.Pending() == 0 {
			err = errors.Join(err, lines.Flush())
		}
		if err != nil {
			return err
		}
	}
}

// ParseSpec reads a Tail process's argument.
func ParseSpec(text string) (s Spec, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("what to tail: %w", err)
	}
	return s, nil
}
