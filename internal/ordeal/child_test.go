package ordeal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

// childEnv makes this test binary a follower that lives the life it names.
const childEnv = "OUROTAIL_ORDEAL_LIFE"

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		if err := child(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// life is what a child is told.
type life struct {
	Socket, Config, Dir string
	Archive             bool
	MemTable            int64

	// Step and Nth say before which step the process kills itself; with an empty
	// Step it does not.
	Step string
	Nth  int

	// Watch subscribes to everything and writes it down, block by block: behind
	// After if Begun, where that can still be had.
	Watch bool
	Begun bool
	After chain.Point

	AtTip bool // end there; else when the standard input ends
}

func (l life) open(ctx context.Context, log *slog.Logger, tr *trial.Trial) (*ourotail.Follower, error) {
	g, err := ledger.LoadGenesis(l.Config)
	if err != nil {
		return nil, err
	}
	tr.MemTable = l.MemTable
	tr.Limits = trial.Limits{Retry: 100 * time.Millisecond}
	return ourotail.Open(trial.With(ctx, tr), ourotail.Config{SocketPath: l.Socket, Genesis: g, DataDir: l.Dir, Archive: l.Archive,
		Memory: 64 << 20, ExitAtTip: l.AtTip, Logger: log})
}

// child follows and writes lines:
//
//	from AT     the stream begins behind this block
//	ready       the follower is open, and about to run
//	+ …, - …    an effect of the block that ends next
//	block AT    a block is whole
//	back AT     a rollback
//	steps JSON  at a clean end: how often each step was taken
func child(arg string) (err error) {
	var l life
	if err := json.Unmarshal([]byte(arg), &l); err != nil {
		return err
	}
	var mu sync.Mutex
	steps := map[string]int{}
	tr := &trial.Trial{Step: func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if steps[name]++; name == l.Step && steps[name] == l.Nth {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	f, err := l.open(ctx, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), tr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	read := make(chan error, 1)
	read <- nil
	if l.Watch {
		sub, from, err := l.subscribe(ctx, f)
		if err != nil {
			return err
		}
		fmt.Println("from", from)
		<-read
		go func() { read <- write(ctx, os.Stdout, sub) }()
	}
	fmt.Println("ready")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := f.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	f.CloseSubscriptions()
	if err := <-read; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	text, err := json.Marshal(maps.Clone(steps))
	fmt.Printf("steps %s\n", text)
	return err
}

// subscribe goes on behind the last block that was written down, or where a fork
// left it; if that is too long ago the stream begins at the head.
func (l life) subscribe(ctx context.Context, f *ourotail.Follower) (hub.Subscription[chain.UTxOEvent], chain.At, error) {
	from, opts := chain.Origin, hub.Options{Start: hub.Origin, Idle: true, Bound: hub.Unbounded}
	var err error
	if l.Begun {
		if from, err = f.Ancestor(l.After); err == nil {
			opts.Start, opts.After = hub.After, chain.Cursor{At: from, Place: chain.WholeBlock}
		}
	}
	if err == nil {
		var sub hub.Subscription[chain.UTxOEvent]
		if sub, err = f.SubscribeUTxOs(ctx, query.Everything(), opts); err == nil {
			return sub, from, nil
		}
	}
	fmt.Fprintf(os.Stderr, "the stream begins anew: %v\n", err)
	from, _, err = f.Find(f.State().Head.Point)
	if err != nil {
		return nil, from, err
	}
	opts.Start = hub.Tip
	sub, err := f.SubscribeUTxOs(ctx, query.Everything(), opts)
	return sub, from, err
}

// write writes each block as soon as it is whole.
func write(ctx context.Context, out io.Writer, sub hub.Subscription[chain.UTxOEvent]) error {
	var b bytes.Buffer
	for e, err := range sub.All(ctx) {
		if err != nil {
			return err
		}
		whole := true
		switch {
		case e.Kind == chain.RolledBack:
			fmt.Fprintln(&b, "back", e.At)
		case e.Kind == chain.Idle:
			fmt.Fprintln(&b, "block", e.At)
		case e.Because != chain.Live:
		default:
			fmt.Fprintln(&b, effectLine(e.Kind, e.UTxO, e.Tx))
			if whole = e.LastOfBlock; whole {
				fmt.Fprintln(&b, "block", e.At)
			}
		}
		if whole {
			if _, err := out.Write(b.Bytes()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
