package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

// childEnv makes this test binary a follower: socket, config, data directory. Its
// value says how: "tip" ends at the node's tip, "stay" does not, "small" is "tip"
// with memtables of 256 KiB.
const childEnv = "OUROTAIL_E2E_CHILD"

// filesEnv names the ImmutableDB folder that the child reads first, if any.
const filesEnv = "OUROTAIL_E2E_FILES"

func TestMain(m *testing.M) {
	if how := os.Getenv(childEnv); how != "" {
		if err := child(how, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(how, socket, config, dir string) error {
	g, err := ledger.LoadGenesis(config)
	if err != nil {
		return err
	}
	cfg := ourotail.Config{SocketPath: socket, Genesis: g, DataDir: dir, Memory: 64 << 20, ExitAtTip: how != "stay"}
	open := context.Background()
	if how == "small" {
		open = trial.With(open, &trial.Trial{MemTable: 256 << 10})
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	f, err := ourotail.Open(open, cfg)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	return errors.Join(f.Run(ctx), f.Close())
}

// TestKilledAnywhere kills a follower with SIGKILL at random moments of a sync,
// with forks between, and reopens: the set is the oracle's at the head that it
// reports, every time.
func TestKilledAnywhere(t *testing.T) {
	kills := 60
	if testing.Short() {
		kills = 20
	}
	n := generated(t, forge.Options{Seed: 21, K: 60, EpochBlocks: 40}, 400)
	dir, config := t.TempDir(), t.TempDir()
	if err := n.chain.Genesis().WriteConfig(config); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(21, 21))
	whole, cut := 0, 0
	longest := 40 * time.Millisecond
	for range kills {
		cmd := exec.CommandContext(t.Context(), self, n.Socket(), config+"/config.json", dir)
		cmd.Env = append(os.Environ(), childEnv+"=tip")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(longest))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			whole++
			longest = longest * 2 / 3
			// It came to the end: give it more to do, and a fork to undo.
			depth := 1 + r.IntN(50)
			if err := n.chain.Fork(depth, depth+40); err != nil {
				t.Fatal(err)
			}
		} else {
			cut++
			longest = min(longest*8/5, 2*time.Second) // until some finish
		}
		d, err := ourotail.OpenDir(dir, nil)
		if err != nil {
			if cut > 0 && whole == 0 { // killed before there was a store
				continue
			}
			t.Fatal(err)
		}
		head := d.State().Head
		v := d.View()
		got := linesOf(t, v, query.Everything())
		v.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		want, err := n.chain.Oracle().Lines(head.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 && head.Point.IsOrigin() {
			continue // killed before the genesis outputs were written
		}
		sameLines(t, fmt.Sprintf("killed at %v", head.At()), got, want)
	}
	t.Logf("%d killed, %d came to the end", cut, whole)
	if cut < kills/4 {
		t.Errorf("only %d of %d were killed: the test does not test what it says", cut, kills)
	}
}
