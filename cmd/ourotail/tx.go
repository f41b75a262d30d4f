package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store"
)

func newTx() *cobra.Command {
	var asJSON, wait bool
	var confirmations int64
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "tx TXID",
		Short: "Show what becomes of a transaction",
		Long: `Says what is known of a transaction:

  pending    it waits in the node's mempool
  confirmed  it is in a block; how many blocks are on top of that is said too
  failed     it is in a block, but its scripts failed, and its collateral was taken
  notfound   it is neither on the chain nor in the node's mempool
  unknown    not seen, but it may be in a block older than what is kept: a pruned
             directory can tell of the last k blocks, and of older ones as long as
             outputs of the transaction are unspent

With --wait every change is a line, a fork that takes its block back included, until
so many blocks as --confirmations says are on top of its block: 0 is content with
being in one, and may yet be undone. A transaction that is not found is waited for.

The answer comes from the follower that runs on the data directory, over its control
socket. Without one the command follows the node itself, into that directory, for
as long as it takes.

Exit code 0: confirmed, and as deep as --confirmations. 17: failed. 18: pending, or
not as deep (yet, when --timeout ended it). 19: not found, or unknown.`,
		Example: `  ourotail tx 3f2a... --network preview
  id=$(ourotail submit tx.signed ...) && ourotail tx $id --network preview --wait --confirmations 3 --timeout 10m`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseTxID(args[0])
			if err != nil {
				return coded(exitUsage, err)
			}
			if confirmations < 0 || confirmations > 1<<30 {
				return usage("--confirmations %d: want a number of blocks", confirmations)
			}
			t := &txCommand{cmd: cmd, out: cmd.OutOrStdout(), asJSON: asJSON, timeout: timeout,
				req: txRequest{id: id, wait: wait, depth: chain.Height(confirmations)}}
			if t.dir, err = readDir(cmd); err != nil {
				return err
			}
			if t.magic, err = wantedMagic(cmd); err != nil {
				return err
			}
			t.cfg, t.cannot = followerConfig(cmd)
			return t.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, a line per report")
	cmd.Flags().BoolVar(&wait, "wait", false, "report changes until it is confirmed (or failed) and deep enough")
	cmd.Flags().Int64Var(&confirmations, "confirmations", 0, "how many blocks have to be on top of its block")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after so long, as in 90s or 10m (default: never)")
	addFollowFlags(cmd)
	return cmd
}

// txCommand is one run of the command.
type txCommand struct {
	cmd     *cobra.Command
	out     io.Writer
	asJSON  bool
	timeout time.Duration
	req     txRequest
	dir     string
	magic   uint32 // 0 for any
	cfg     ourotail.Config
	cannot  error // why we cannot follow ourselves
	last    *txReport
}

func (t *txCommand) run(ctx context.Context) error {
	limited := ctx
	if t.timeout > 0 {
		var stop context.CancelFunc
		limited, stop = context.WithTimeout(ctx, t.timeout)
		defer stop()
	}
	err := t.ask(limited)
	if ctx.Err() == nil && limited.Err() != nil && ended(limited, err) == nil { // the time is up
		if v := t.req.verdict(t.last); v != nil {
			return fmt.Errorf("after %s: %w", t.timeout, v)
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return t.req.verdict(t.last)
}

// ask asks the follower that holds the directory or, if nobody does, becomes it.
func (t *txCommand) ask(ctx context.Context) error {
	began := time.Now()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 400*time.Millisecond) {
		err := t.req.remote(ctx, t.dir, t.magic, t.emit)
		if !errors.Is(err, errNoAnswer) {
			return err
		}
		f, oerr := t.open(ctx)
		switch {
		case oerr == nil:
			return errors.Join(t.follow(ctx, f), f.Close())
		case !errors.Is(oerr, store.ErrHeld):
			return oerr
		case time.Since(began) > askPatience && t.last == nil:
			return coded(exitHeld, fmt.Errorf("%w, which does not answer: it is starting, ending, or only reads; try again", oerr))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// open opens the directory to follow into it, if that is possible.
func (t *txCommand) open(ctx context.Context) (*ourotail.Follower, error) {
	if t.cannot == nil {
		return ourotail.Open(ctx, t.cfg)
	}
	d, err := ourotail.OpenDir(t.dir, nil)
	if errors.Is(err, store.ErrHeld) {
		return nil, err
	}
	if err == nil {
		err = d.Close()
	} else if errors.Is(err, store.ErrNoStore) {
		err = nil
	}
	return nil, errors.Join(fmt.Errorf("no follower runs on %s: %w", t.dir, t.cannot), err)
}

// follow comes to the node's tip, and reports from there.
func (t *txCommand) follow(ctx context.Context, f *ourotail.Follower) error {
	rep := newReporter(f, t.cmd.ErrOrStderr(), t.cfg.Logger)
	return attended(ctx, f, rep, nil, func(ctx context.Context) error {
		tip, err := f.NodeTip(ctx)
		if err != nil {
			return err
		}
		if tip.Height > f.State().Head.Height {
			if err := f.CatchUp(ctx, tip.Height); err != nil {
				return err
			}
		}
		if !t.req.wait {
			return t.req.now(ctx, f, t.emit)
		}
		following, stop := context.WithCancel(ctx)
		defer stop()
		ran := make(chan error, 1)
		go func() {
			ran <- f.Run(following)
			stop() // there is nothing more to wait for
		}()
		err = t.req.watch(following, f, t.emit)
		stop()
		if rerr := ended(following, <-ran); rerr != nil && !errors.Is(err, rerr) {
			err = errors.Join(rerr, ended(following, err))
		}
		return err
	})
}

func (t *txCommand) emit(r txReport) error {
	again := t.last != nil && t.last.State == r.State && t.last.OnTop == r.OnTop && t.last.Height == r.Height
	t.last = &r
	if again { // of another follower
		return nil
	}
	if t.asJSON {
		return json.NewEncoder(t.out).Encode(r)
	}
	_, err := fmt.Fprintln(t.out, r.text())
	return err
}
