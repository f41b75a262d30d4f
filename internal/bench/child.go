package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	ouroboros "github.com/blinklabs-io/gouroboros"
	gsync "github.com/blinklabs-io/gouroboros/protocol/chainsync"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/ledger"
)

// child is one side of a comparison, or the server: mode, socket, then what the
// mode needs.
func child(args []string) error {
	mode, socket := args[0], args[1]
	if mode == "serve" {
		magic, err := strconv.ParseUint(args[3], 10, 32)
		if err != nil {
			return err
		}
		c, err := devnode.OpenImmutable(args[2], immutable.Options{})
		if err != nil {
			return err
		}
		return devnode.Serve(context.Background(), devnode.Config{Socket: socket, Magic: uint32(magic), Chain: c})
	}
	config, data := args[2], args[5]
	magic, err := strconv.ParseUint(args[3], 10, 32)
	if err != nil {
		return err
	}
	slot, err := strconv.ParseUint(args[4], 10, 64)
	if err != nil {
		return err
	}
	if name := os.Getenv("BENCH_PROFILE"); name != "" && mode == "sync" {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	stop := watchMemory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var res result
	switch mode {
	case "sync":
		res.Blocks, err = sync(socket, config, data)
	case "discard":
		res.Blocks, err = discard(socket, uint32(magic))
	case "gouroboros":
		res.Blocks, err = gouroboros(socket, uint32(magic), slot)
	default:
		err = fmt.Errorf("no mode is called %q", mode)
	}
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	res.Allocs = int64(after.Mallocs - before.Mallocs)
	res.Anon = stop()
	res.Disk = written()
	return json.NewEncoder(os.Stdout).Encode(res)
}

// sync is a whole first sync, indexes included.
func sync(socket, config, data string) (int, error) {
	g, err := ledger.Network("preview")
	if config != "" {
		g, err = ledger.LoadGenesis(config)
	}
	if err != nil {
		return 0, err
	}
	f, err := ourotail.Open(context.Background(), ourotail.Config{SocketPath: socket, Genesis: g, DataDir: data, ExitAtTip: true})
	if err != nil {
		return 0, err
	}
	err = f.Run(context.Background())
	n := f.Progress().Blocks
	return int(n), errors.Join(err, f.Close())
}

// discard reads every block and does nothing with it.
func discard(socket string, magic uint32) (n int, err error) {
	ctx := context.Background()
	c, err := chainsync.Dial(ctx, chainsync.Config{SocketPath: socket, Magic: magic})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, _, _, err := c.Intersect(ctx, []chain.Point{{}}); err != nil {
		return 0, err
	}
	for {
		m, err := c.Next(ctx)
		if err != nil {
			return n, err
		}
		for _, x := range m.List {
			switch x.Kind {
			case chain.RollForward:
				n++
			case chain.AwaitReply:
				return n, nil
			}
		}
		m.Release()
	}
}

// gouroboros is that library's own client at its best settings, doing nothing
// with the blocks.
func gouroboros(socket string, magic uint32, slot uint64) (n int, err error) {
	done := make(chan struct{})
	seen := 0
	node, err := ouroboros.New(
		ouroboros.WithNetworkMagic(magic),
		ouroboros.WithLogger(slog.New(slog.DiscardHandler)),
		ouroboros.WithChainSyncConfig(gsync.NewConfig(
			gsync.WithPipelineLimit(100),
			gsync.WithRollForwardRawFunc(func(_ gsync.CallbackContext, _ uint, _ []byte, tip gsync.Tip) error {
				if seen++; uint64(seen) == tip.BlockNumber+1 {
					close(done)
				}
				return nil
			}),
			gsync.WithRollBackwardFunc(func(gsync.CallbackContext, pcommon.Point, gsync.Tip) error { return nil }),
		)),
	)
	if err != nil {
		return 0, err
	}
	if err := node.Dial("unix", socket); err != nil {
		return 0, err
	}
	defer node.Close()
	if err := node.ChainSync().Client.Sync([]pcommon.Point{pcommon.NewPointOrigin()}); err != nil {
		return 0, err
	}
	select {
	case <-done:
		return seen, nil
	case err := <-node.ErrorChan():
		return 0, fmt.Errorf("gouroboros: %w", err)
	}
}

// watchMemory samples anonymous memory until it is stopped, and returns the peak.
func watchMemory() (stop func() int64) {
	var peak atomic.Int64
	end := make(chan struct{})
	go func() {
		t := time.NewTicker(20 * time.Millisecond)
		defer t.Stop()
		for {
			peak.Store(max(peak.Load(), procNumber("status", "RssAnon:")<<10))
			select {
			case <-end:
				return
			case <-t.C:
			}
		}
	}()
	return func() int64 { close(end); return peak.Load() }
}

// written is how many bytes this process sent to disk.
func written() int64 { return procNumber("io", "write_bytes:") }

func procNumber(file, key string) int64 {
	f, err := os.Open(filepath.Join("/proc/self", file))
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), key); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}
