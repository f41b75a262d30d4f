package ourotail_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// spoon is a connection that is fed by hand.
type spoon struct {
	food chan []chain.Message
	ate  chan struct{} // receives each time the follower asks for more
}

func (s *spoon) Intersect(_ context.Context, points []chain.Point) (chain.Point, bool, chain.Tip, error) {
	return points[0], true, chain.Origin, nil
}

func (s *spoon) Next(ctx context.Context) (chain.Messages, error) {
	select {
	case s.ate <- struct{}{}:
	case <-ctx.Done():
		return chain.Messages{}, ctx.Err()
	}
	select {
	case list := <-s.food:
		return chain.Messages{List: list}, nil
	case <-ctx.Done():
		return chain.Messages{}, ctx.Err()
	}
}

func (s *spoon) Close() error { return nil }

// feed gives messages and waits until they are dealt with.
func (s *spoon) feed(list ...chain.Message) {
	s.food <- list
	<-s.ate
}

func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkRollback compares one roll backward, published and on disk, with what
// the same blocks cost when they came: one by one, as at the tip, and run by run,
// as after a fork. The blocks are as busy as mainnet's, the indexes are built. One
// operation is both ways.
func BenchmarkRollback(b *testing.B) {
	const k, most = 2160, 2160
	fg, err := forge.New(forge.Options{Shape: forge.MainnetLike, K: k, Lean: true})
	if err != nil {
		b.Fatal(err)
	}
	g := genesisOf(b, fg.Genesis())
	const below = 300
	blocks := make([]forge.Block, below+most)
	for i := range blocks {
		if blocks[i], err = fg.Next(); err != nil {
			b.Fatal(err)
		}
	}
	forward := func(from, to int) (list []chain.Message) {
		for _, x := range blocks[from:to] {
			list = append(list, chain.Message{Kind: chain.RollForward, Raw: x.Raw, Tip: x.At()})
		}
		return list
	}
	for _, c := range []struct{ depth, run, readers int }{
		{1, 1, 0}, {10, 1, 0}, {10, 20, 0}, {10, 20, 1}, {100, 1, 0}, {100, 20, 0}, {100, 20, 1}, {most, 20, 0},
	} {
		depth, run, readers := c.depth, c.run, c.readers
		b.Run(fmt.Sprintf("depth=%d/applied=%d/readers=%d", depth, run, readers), func(b *testing.B) {
			s := &spoon{make(chan []chain.Message), make(chan struct{})}
			f, err := ourotail.OpenWith(b.Context(), ourotail.Config{SocketPath: "none", Genesis: g, DataDir: b.TempDir()},
				ourotail.Hooks{Dial: func(context.Context) (follow.Conn, error) { return s, nil }})
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			ran := make(chan error, 1)
			go func() { ran <- f.Run(ctx) }()
			<-s.ate
			s.feed(forward(0, below)...)
			for !f.State().Index.Built {
				time.Sleep(time.Millisecond)
			}
			read := make(chan int, readers)
			for range readers {
				sub, err := f.SubscribeUTxOs(ctx, query.Everything(), hub.Options{Bound: hub.Unbounded})
				if err != nil {
					b.Fatal(err)
				}
				go func() {
					n := 0
					for range sub.All(ctx) {
						n++
					}
					read <- n
				}()
			}
			back := chain.Message{Kind: chain.RollBackward, Point: blocks[below-1].Point, Tip: blocks[below+depth-1].At()}
			var up, down, upCPU, downCPU time.Duration
			for range b.N {
				t0, c0 := time.Now(), processorTime(b)
				for i := below; i < below+depth; i += run {
					s.feed(forward(i, min(i+run, below+depth))...)
				}
				t1, c1 := time.Now(), processorTime(b)
				s.feed(back)
				up, down = up+t1.Sub(t0), down+time.Since(t1)
				upCPU, downCPU = upCPU+c1-c0, downCPU+processorTime(b)-c1
				if f.State().Head.Point != back.Point {
					b.Fatalf("the head is %v", f.State().Head.At())
				}
			}
			per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(b.N*depth) }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(per(up), "apply-µs/block")
			b.ReportMetric(per(down), "undo-µs/block")
			b.ReportMetric(float64(down)/float64(up), "undo/apply")
			b.ReportMetric(float64(downCPU)/float64(upCPU), "undo/apply-cpu")
			stop()
			if err := <-ran; !errors.Is(err, context.Canceled) {
				b.Error(err)
			}
			for range readers {
				if <-read == 0 {
					b.Error("the reader was told nothing")
				}
			}
			if err := f.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
