package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/procs"
	"github.com/ourotail/ourotail/query"
)

// tipLatency follows a node up to its tip, builds the indexes, and then measures N
// times how long after the node has a new block a subscriber has it. Between the
// blocks the disk itself is measured: as much as a block, in place, and
// fdatasync.
func tipLatency(j job) (r result, err error) {
	ctx := context.Background()
	procs.Raise() // as the command does
	g, err := j.genesis()
	if err != nil {
		return r, err
	}
	live := j
	live.Mode = "live"
	live.Socket = filepath.Join(filepath.Dir(j.Socket), "live")
	defer func() { _ = os.Remove(live.Socket) }()
	ask, answer, stop, err := liveServer(ctx, live)
	if err != nil {
		return r, err
	}
	defer stop()
	f, err := ourotail.Open(ctx, ourotail.Config{SocketPath: live.Socket, Genesis: g, DataDir: j.Dir, Archive: j.Archive})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	defer func() {
		cancel()
		if rerr := <-ran; !errors.Is(rerr, context.Canceled) {
			err = errors.Join(err, rerr)
		}
		err = errors.Join(err, f.Close())
	}()
	want := j.Tip.Height - chain.Height(j.N)
	for s := f.State(); s.Head.Height != want || !s.Index.Built; s = f.State() {
		select {
		case err := <-ran:
			ran <- err
			return r, fmt.Errorf("following ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	sub, err := f.SubscribeBlocks(query.EveryBlock(), hub.Options{})
	if err != nil {
		return r, err
	}
	disk, err := newDisk(j.Dir)
	if err != nil {
		return r, err
	}
	defer disk.Close()
	if j.Replay {
		over, left := context.WithCancel(ctx)
		events := make(chan int, 1)
		go func() { events <- readPast(over, f) }()
		defer func() {
			left()
			r.More = append(r.More, figure{"replayed beside", float64(<-events), "events"})
		}()
	}
	if j.Pace == 0 {
		j.Pace = 30 * time.Millisecond
	}
	var wakes, syncs []time.Duration
	for range j.N {
		time.Sleep(j.Pace / 2)
		if _, err := fmt.Fprintln(ask); err != nil {
			return r, err
		}
		e, err := sub.Next(ctx)
		woke := monotonic()
		if err != nil {
			return r, err
		}
		line, err := answer.ReadString('\n')
		if err != nil {
			return r, err
		}
		sent, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return r, err
		}
		wakes = append(wakes, time.Duration(woke-sent))
		time.Sleep(j.Pace / 2)
		took, err := disk.sync(len(e.Block.Block))
		if err != nil {
			return r, err
		}
		syncs = append(syncs, took)
	}
	sub.Cancel()
	r.Units = j.N
	r.More = append(quantiles("wake", wakes), quantiles("fdatasync", syncs)...)
	return r, nil
}

// readPast reads the chain from origin, again and again, until ctx ends, and
// counts what it got.
func readPast(ctx context.Context, f *ourotail.Follower) (events int) {
	for ctx.Err() == nil {
		head := f.State().Head.Point
		sub, err := f.SubscribeUTxOs(ctx, query.Everything(), hub.Options{Start: hub.Origin, Idle: true, Bound: hub.Unbounded})
		if err != nil {
			return events
		}
		for e, err := range sub.All(ctx) {
			if err != nil || e.At.Point == head {
				break
			}
			events++
		}
		sub.Cancel()
	}
	return events
}

// quantiles of durations, in milliseconds.
func quantiles(name string, d []time.Duration) (f []figure) {
	slices.Sort(d)
	for _, p := range []int{10, 25, 50, 75, 90, 95, 99} {
		f = append(f, figure{fmt.Sprintf("%s p%d", name, p), float64(d[len(d)*p/100].Microseconds()) / 1000, "ms"})
	}
	return f
}

func liveServer(ctx context.Context, j job) (ask *os.File, answer *bufio.Reader, stop func(), err error) {
	cmd, err := start(ctx, j)
	if err != nil {
		return nil, nil, nil, err
	}
	in, ask, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, err
	}
	in.Close()
	stop = func() { ask.Close(); _ = kill(cmd) }
	return ask, bufio.NewReader(out), stop, awaitSocket(j.Socket)
}

func kill(cmd *exec.Cmd) error {
	_ = cmd.Process.Kill() // it may have ended
	return cmd.Wait()
}

// disk is a file of fixed size that is written in place.
type disk struct{ *os.File }

func newDisk(dir string) (disk, error) {
	f, err := os.Create(filepath.Join(filepath.Dir(dir), "disk"))
	if err != nil {
		return disk{}, err
	}
	if _, err = f.Write(make([]byte, 1<<20)); err == nil {
		err = f.Sync()
	}
	return disk{f}, err
}

// sync writes n bytes and waits until they are on the disk.
func (d disk) sync(n int) (time.Duration, error) {
	began := time.Now()
	if _, err := d.WriteAt(make([]byte, n), 0); err != nil {
		return 0, err
	}
	err := unix.Fdatasync(int(d.Fd()))
	return time.Since(began), err
}
