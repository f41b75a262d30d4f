package main

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/procs"
	"github.com/ourotail/ourotail/store"
)

func newRun() *cobra.Command {
	var exitAtTip bool
	var until int64
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Follow a node and keep the set of unspent outputs",
		Long: `Follows the node for ever: every block, every fork, with all spent outputs
resolved, into a data directory. It may be killed at any time; the next start
goes on where this one stopped.

While it runs, status and utxos on the same directory are answered by it. A tail that
follows into the directory gives it up to run, and goes on reading from it.

What following cannot mend, a chain that was replaced deeper than k blocks or a
damaged directory, ends it and stays as it is; --resync then starts over. Leave
that flag out of anything that restarts by itself.

With --immutable the blocks that the node has put away for good are read from its
own files, while it runs or before it is up, and the rest comes over the socket:
much faster where the node serves slowly, with the same result. The folder is
called immutable, in the node's --database-path; it is only read. Every block's
checksum, hash and parent are checked, and the node is asked whether the files
are of its chain. Leave the flag in: once the files end below the directory's
head they are not looked at.

A node that is away, starting, or still synchronising is waited for. What waiting
cannot mend (the wrong network, no permission) ends the command if it stands in
the way of the first connection.`,
		Example: `  ourotail run --socket-path /run/cardano-node/node.socket --network preview
  ourotail run --socket-path node.socket --config config.json --data-dir D --exit-at-tip
  ourotail run --socket-path node.socket --config config.json --immutable /path/to/db/immutable`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := followerConfig(cmd)
			if err != nil {
				return err
			}
			cfg.ExitAtTip = exitAtTip
			if cmd.Flags().Changed("until") {
				if until < 0 {
					return usage("--until %d: heights begin at 0", until)
				}
				h := chain.Height(until)
				cfg.Until = &h
			}
			return ended(cmd.Context(), runFollower(cmd, cfg))
		},
	}
	cmd.Flags().BoolVar(&exitAtTip, "exit-at-tip", false, "end once the node has no more blocks and the indexes are built")
	cmd.Flags().Int64Var(&until, "until", 0, "end once the block at this height is committed")
	addFollowFlags(cmd)
	return cmd
}

// addFollowFlags adds the flags of every command that follows a node.
func addFollowFlags(cmd *cobra.Command) {
	addSocketFlag(cmd)
	addNetworkFlags(cmd)
	addDataDirFlag(cmd)
	cmd.Flags().String("memory", "256MiB", "memory for the store; pages that the kernel keeps mapped come on top")
	cmd.Flags().Bool("archive", false, "keep spent outputs too, for replay from any point; chosen when the data directory is made")
	cmd.Flags().Bool("compact", false, "make of an archive a directory that keeps unspent outputs only")
	cmd.Flags().String("immutable", "", "the node's own ImmutableDB folder: read what is there from its files, then go on over the socket")
	cmd.Flags().Bool("resync", false, "start over: remove what the data directory holds and follow from the first block")
}

// followerConfig reads the flags of addFollowFlags.
func followerConfig(cmd *cobra.Command) (cfg ourotail.Config, err error) {
	if cfg.SocketPath, err = socketPath(cmd); err != nil {
		return cfg, err
	}
	if cfg.Genesis, err = network(cmd); err != nil {
		return cfg, err
	}
	if cfg.DataDir, err = dataDir(cmd, cfg.Genesis); err != nil {
		return cfg, err
	}
	text, err := cmd.Flags().GetString("memory")
	if err != nil {
		return cfg, err
	}
	bytes, err := humanize.ParseBytes(text)
	if err != nil || bytes > 1<<50 {
		return cfg, usage("--memory %q is not an amount of memory (want for instance 256MiB)", text)
	}
	cfg.Memory = int64(bytes)
	limitMemory(cfg.Memory)
	procs.Raise()
	if cfg.Compact, err = cmd.Flags().GetBool("compact"); err != nil {
		return cfg, err
	}
	if cfg.Archive, err = cmd.Flags().GetBool("archive"); err != nil {
		return cfg, err
	}
	if cfg.Archive && cfg.Compact {
		return cfg, usage("--archive keeps spent outputs, --compact gives them up: which is it to be?")
	}
	if cfg.Resync, err = cmd.Flags().GetBool("resync"); err != nil {
		return cfg, err
	}
	if cfg.Immutable, err = cmd.Flags().GetString("immutable"); err != nil {
		return cfg, err
	}
	cfg.Logger, err = newLogger(cmd, cmd.ErrOrStderr())
	return cfg, err
}

// limitMemory has the garbage collector work harder before the process takes much
// more than the store was given. The variable that Go reads goes before.
func limitMemory(memory int64) {
	if os.Getenv("GOMEMLIMIT") == "" && memory > 0 {
		debug.SetMemoryLimit(max(memory, store.MinMemory) + 16<<20)
	}
}

// runFollower opens, serves the control socket, reports, and follows.
func runFollower(cmd *cobra.Command, cfg ourotail.Config) error {
	f, err := openFollower(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	rep := newReporter(f, cmd.ErrOrStderr(), cfg.Logger)
	err = attended(cmd.Context(), f, rep, nil, f.Run)
	if err == nil || f.Progress().Blocks > 0 {
		rep.summary()
	}
	return errors.Join(err, f.Close())
}

// How long whoever wants to follow waits for a directory that another process has:
// longer where a tail has said that it gives it up.
const (
	heldPatience  = 1500 * time.Millisecond
	leavePatience = 15 * time.Second
)

// openFollower opens a data directory, waiting a little where another process
// has it: a command that reads, such as status, lets go of it at once, and a tail
// that follows gives it up when it is asked.
func openFollower(ctx context.Context, cfg ourotail.Config) (*ourotail.Follower, error) {
	until, leaving := time.Now().Add(heldPatience), false
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 400*time.Millisecond) {
		f, err := ourotail.Open(ctx, cfg)
		if !errors.Is(err, store.ErrHeld) || time.Now().After(until) {
			return f, err
		}
		if !leaving && askToLeave(ctx, cfg.DataDir) {
			until, leaving, wait = time.Now().Add(leavePatience), true, 20*time.Millisecond
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// attended runs fn with the control socket served and progress reported. lead is of a
// tail that follows, nil of a run.
func attended(ctx context.Context, f *ourotail.Follower, rep *reporter, lead *leading, fn func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	endControl, err := serveControl(ctx, f, lead)
	if err != nil {
		return err
	}
	defer endControl()
	var wg sync.WaitGroup
	wg.Go(func() { rep.run(ctx) })
	err = fn(ctx)
	stop()
	wg.Wait()
	return err
}
