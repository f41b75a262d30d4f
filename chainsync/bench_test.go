package chainsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	ouroboros "github.com/blinklabs-io/gouroboros"
	gsync "github.com/blinklabs-io/gouroboros/protocol/chainsync"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"

	"github.com/ourotail/ourotail/chain"
)

// benchServerEnv makes the test binary a server: "socket blocks size batch".
const benchServerEnv = "OUROTAIL_CHAINSYNC_BENCH_SERVER"

// benchServer answers as fast as it can: n requests in a segment get n blocks,
// in one write if batch is set, in one write each otherwise.
func benchServer(path string, blocks, size int, batch bool) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	msg := rollForward(block(1, 20, size), tipAt(1<<30))
	frames := frame(5, msg, 0)
	one := len(frames)
	for len(frames) < 512*one {
		frames = append(frames, frames[:one]...)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		p := &peer{conn: conn}
		if p.shake() != nil {
			continue
		}
		if _, err := p.find(); err != nil {
			return err
		}
		if err := p.send(5, intersectFound(chain.Point{}, tipAt(1<<30))); err != nil {
			return err
		}
		sent := 0
		for sent < blocks {
			n, err := p.requests()
			if err != nil {
				return err
			}
			n = min(n, blocks-sent)
			if batch {
				_, err = conn.Write(frames[:n*one])
			} else {
				for range n {
					_, err = conn.Write(frames[:one])
				}
			}
			if err != nil {
				return err
			}
			sent += n
		}
		_ = p.hold()
		conn.Close()
	}
}

func startBenchServer(b *testing.B, blocks, size int, batch bool) string {
	path := filepath.Join(b.TempDir(), "s")
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %t", benchServerEnv, path, blocks, size, batch))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 500 {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return path
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("the server does not listen")
	return ""
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func followOurs(path string, blocks int) error {
	ctx := context.Background()
	cfg := testConfig(path)
	cfg.MaxInFlight, _ = strconv.Atoi(os.Getenv("BENCH_INFLIGHT"))
	cfg.QueueBytes, _ = strconv.Atoi(os.Getenv("BENCH_QUEUE"))
	c, err := Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, _, _, err := c.Intersect(ctx, []chain.Point{{}}); err != nil {
		return err
	}
	for n := 0; n < blocks; {
		m, err := c.Next(ctx)
		if err != nil {
			return err
		}
		n += len(m.List)
		m.Release()
	}
	return nil
}

func followTheirs(path string, blocks int) error {
	done := make(chan struct{})
	n := 0
	node, err := ouroboros.New(
		ouroboros.WithNetworkMagic(testMagic),
		ouroboros.WithLogger(slog.New(slog.DiscardHandler)),
		ouroboros.WithChainSyncConfig(gsync.NewConfig(
			gsync.WithPipelineLimit(100),
			gsync.WithRollForwardRawFunc(func(gsync.CallbackContext, uint, []byte, gsync.Tip) error {
				if n++; n == blocks {
					close(done)
				}
				return nil
			}),
			gsync.WithRollBackwardFunc(func(gsync.CallbackContext, pcommon.Point, gsync.Tip) error { return nil }),
		)),
	)
	if err != nil {
		return err
	}
	if err := node.Dial("unix", path); err != nil {
		return err
	}
	defer node.Close()
	if err := node.ChainSync().Client.Sync([]pcommon.Point{pcommon.NewPointOrigin()}); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case err, ok := <-node.ErrorChan():
		return fmt.Errorf("error channel: %w %t", err, ok)
	case <-time.After(2 * time.Minute):
		return errors.New("timeout")
	}
}

// BenchmarkTransport discards blocks of a server in another process, with our
// client and with gouroboros' own at its best settings, in turns. It reports
// CPU time per block of the client's process, allocations, and the ratio.
func BenchmarkTransport(b *testing.B) {
	for _, v := range []struct {
		size, blocks int
		batch        bool
	}{{1300, 100_000, true}, {1300, 100_000, false}, {32_000, 10_000, true}, {32_000, 10_000, false}} {
		b.Run(fmt.Sprintf("size=%d/batch=%t", v.size, v.batch), func(b *testing.B) {
			path := startBenchServer(b, v.blocks, v.size, v.batch)
			type sample struct{ cpu, wall, allocs float64 }
			measure := func(f func(string, int) error) sample {
				runtime.GC()
				var m0, m1 runtime.MemStats
				runtime.ReadMemStats(&m0)
				t0, c0 := time.Now(), cpu()
				if err := f(path, v.blocks); err != nil {
					b.Fatal(err)
				}
				c1, t1 := cpu(), time.Now()
				runtime.ReadMemStats(&m1)
				n := float64(v.blocks)
				return sample{float64(c1-c0) / n, float64(t1.Sub(t0)) / n, float64(m1.Mallocs-m0.Mallocs) / n}
			}
			var ours, theirs sample
			var ratios []float64
			for b.Loop() {
				ours = measure(followOurs)
				if os.Getenv("BENCH_OURS") != "" {
					continue
				}
				theirs = measure(followTheirs)
				ratios = append(ratios, ours.cpu/theirs.cpu)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours.cpu, "cpu-ns/block")
			b.ReportMetric(ours.wall, "wall-ns/block")
			b.ReportMetric(ours.allocs, "allocs/block")
			if len(ratios) > 0 {
				slices.Sort(ratios)
				b.ReportMetric(theirs.cpu, "theirs-cpu-ns/block")
				b.ReportMetric(theirs.wall, "theirs-wall-ns/block")
				b.ReportMetric(theirs.allocs, "theirs-allocs/block")
				b.ReportMetric(ratios[len(ratios)/2], "ratio")
			}
		})
	}
}
