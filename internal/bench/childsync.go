package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	ouroboros "github.com/blinklabs-io/gouroboros"
	gledger "github.com/blinklabs-io/gouroboros/ledger"
	gsync "github.com/blinklabs-io/gouroboros/protocol/chainsync"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"
	"golang.org/x/sys/unix"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/ledger"
)

// serve serves a folder until it is killed.
func serve(j job) (result, error) {
	c, err := devnode.OpenImmutable(j.Data, immutable.Options{})
	if err != nil {
		return result{}, err
	}
	return result{}, devnode.Serve(context.Background(), devnode.Config{Socket: j.Socket, Magic: j.Magic, Chain: c})
}

// serveLive serves all but the newest N blocks, and one more for each line of
// its input; it prints when, in nanoseconds of the machine's monotonic clock.
func serveLive(j job) (result, error) {
	whole, err := devnode.OpenImmutable(j.Data, immutable.Options{})
	if err != nil {
		return result{}, err
	}
	until := whole.Tip().Height - chain.Height(j.N)
	c, err := devnode.OpenImmutable(j.Data, immutable.Options{UntilHeight: &until})
	if err != nil {
		return result{}, err
	}
	served := make(chan error, 1)
	go func() {
		served <- devnode.Serve(context.Background(), devnode.Config{Socket: j.Socket, Magic: j.Magic, Chain: c})
	}()
	at := c.Len()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); at++ {
		raw, err := whole.Raw(at)
		if err != nil {
			return result{}, err
		}
		var b ledger.Block
		if err := b.Walk(raw); err != nil {
			return result{}, err
		}
		now := monotonic()
		if err := c.Append(devnode.Block{Link: b.Link, Raw: raw}); err != nil {
			return result{}, err
		}
		fmt.Println(now)
	}
	return result{}, nil
}

// monotonic is a clock that all processes of a machine share.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the clock exists
	}
	return t.Nano()
}

func (j job) genesis() (*ledger.Genesis, error) {
	if j.Config != "" {
		return ledger.LoadGenesis(j.Config)
	}
	return ledger.Network(j.Network)
}

// sync is a whole first sync, indexes included.
func sync(j job) (r result, err error) {
	g, err := j.genesis()
	if err != nil {
		return r, err
	}
	ctx := context.Background()
	f, err := ourotail.Open(ctx, ourotail.Config{SocketPath: j.Socket, Genesis: g, DataDir: j.Dir, Memory: j.Memory, ExitAtTip: true})
	if err != nil {
		return r, err
	}
	err = f.Run(ctx)
	r.Units = int(f.Progress().Blocks)
	return r, errors.Join(err, f.Close())
}

// discard reads every block and does nothing with it.
func discard(j job) (r result, err error) {
	ctx := context.Background()
	c, err := chainsync.Dial(ctx, chainsync.Config{SocketPath: j.Socket, Magic: j.Magic})
	if err != nil {
		return r, err
	}
	defer c.Close()
	if _, _, _, err := c.Intersect(ctx, []chain.Point{{}}); err != nil {
		return r, err
	}
	for {
		m, err := c.Next(ctx)
		if err != nil {
			return r, err
		}
		for _, x := range m.List {
			switch x.Kind {
			case chain.RollForward:
				r.Units++
			case chain.AwaitReply:
				return r, nil
			}
		}
		m.Release()
	}
}

// gouroborosRaw is that library's client at its best settings, doing nothing with
// the blocks.
func gouroborosRaw(j job) (result, error) {
	return gouroboros(j, func(seen func()) gsync.ChainSyncOptionFunc {
		return gsync.WithRollForwardRawFunc(func(gsync.CallbackContext, uint, []byte, gsync.Tip) error {
			seen()
			return nil
		})
	})
}

// gouroborosDecoded is the same with blocks decoded by it.
func gouroborosDecoded(j job) (result, error) {
	return gouroboros(j, func(seen func()) gsync.ChainSyncOptionFunc {
		return gsync.WithRollForwardFunc(func(_ gsync.CallbackContext, _ uint, b any, _ gsync.Tip) error {
			if _, ok := b.(gledger.Block); !ok {
				return fmt.Errorf("got a %T", b)
			}
			seen()
			return nil
		})
	})
}

func gouroboros(j job, forward func(seen func()) gsync.ChainSyncOptionFunc) (r result, err error) {
	done := make(chan struct{})
	limit := int(j.Tip.Height) + 1
	if j.Limit > 0 {
		limit = min(limit, j.Limit)
	}
	node, err := ouroboros.New(
		ouroboros.WithNetworkMagic(j.Magic),
		ouroboros.WithLogger(slog.New(slog.DiscardHandler)),
		ouroboros.WithChainSyncConfig(gsync.NewConfig(
			gsync.WithPipelineLimit(100),
			forward(func() {
				if r.Units++; r.Units == limit {
					close(done)
				}
			}),
			gsync.WithRollBackwardFunc(func(gsync.CallbackContext, pcommon.Point, gsync.Tip) error { return nil }),
		)),
	)
	if err != nil {
		return r, err
	}
	if err := node.Dial("unix", j.Socket); err != nil {
		return r, err
	}
	if err := node.ChainSync().Client.Sync([]pcommon.Point{pcommon.NewPointOrigin()}); err != nil {
		return r, err
	}
	select {
	case <-done:
		return result{Units: limit}, nil // the process ends, and the connection with it
	case err := <-node.ErrorChan():
		return r, fmt.Errorf("gouroboros: %w", err)
	}
}
