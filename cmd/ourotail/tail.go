package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

func newTail() *cobra.Command {
	var from, format string
	var exitAtTip bool
	var confirmations int64
	cmd := &cobra.Command{
		Use:   "tail [QUERY...]",
		Short: "Show outputs being created and spent, a line per event, as it happens",
		Long: `Follows the node into a data directory and prints a line for every output that a
query wants when it is created, and when it is spent, with what it held. A fork
is a line of its own: discard everything above the point it names.

` + queryHelp + `
--from says where the lines begin:
  tip         the node's tip as the command starts; what lies before is applied
              without a line
  origin      the first block; the data directory must be empty
  SLOT.HASH   behind this block, if it is among the last k

Formats:
  pretty    for people
  json      one JSON object a line: {"event": seed|apply|undo, "point", "height",
            "record"}; on undo discard every record with a greater height
  effects   the canonical text: "+ OUTPUT", "- OUTPUT by TXID", "! POINT" for a fork

A reader that is slow brakes following, and a signal ends it only after what is
committed has been printed: nothing is lost. After a kill, give the last point that
you have processed to --from, if it is among the last k blocks.

From origin the outputs of the genesis come first (in JSON as event seed; the
canonical text has no line for them).`,
		Example: `  ourotail tail --socket-path node.socket --network preview
  ourotail tail addr_test1... --network preview --format json | consumer
  ourotail tail --from origin --exit-at-tip --format effects --data-dir D`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := parseQueries(args)
			if err != nil {
				return err
			}
			if err := checkFormat(format, "pretty", "json", "effects"); err != nil {
				return err
			}
			start, err := parseFrom(from)
			if err != nil {
				return err
			}
			if confirmations < 0 {
				return usage("--confirmations %d is negative", confirmations)
			}
			cfg, err := followerConfig(cmd)
			if err != nil {
				return err
			}
			cfg.ExitAtTip = exitAtTip
			if confirmations > int64(cfg.Genesis.K) {
				return usage("--confirmations %d is more than k = %d of this network: no rollback is deeper", confirmations, cfg.Genesis.K)
			}
			t := &tail{start: start, query: q, out: newPrinter(cmd.OutOrStdout(), format),
				opts: hub.Options{Confirmations: chain.Height(confirmations), Bound: hub.Unbounded}}
			return ended(cmd.Context(), t.follow(cmd.Context(), cmd, cfg))
		},
	}
	cmd.Flags().StringVar(&from, "from", "tip", "tip, origin, or a point SLOT.HASH")
	cmd.Flags().StringVar(&format, "format", "pretty", "pretty, json or effects")
	cmd.Flags().BoolVar(&exitAtTip, "exit-at-tip", false, "end once the node has no more blocks")
	cmd.Flags().Int64Var(&confirmations, "confirmations", 0, "show an event only once so many blocks are on top of its block")
	addFollowFlags(cmd)
	return cmd
}

// from is where the lines begin.
type startAt struct {
	tip   bool
	point chain.Point // unless tip
}

func parseFrom(text string) (startAt, error) {
	if text == "tip" {
		return startAt{tip: true}, nil
	}
	p, err := chain.ParsePoint(text)
	if err != nil {
		return startAt{}, usage("--from: %w; or tip, or origin", err)
	}
	return startAt{point: p}, nil
}

// tail is one run of the command.
type tail struct {
	start startAt
	query query.UTxO
	opts  hub.Options
	out   *printer
	brake brake
}

// follow opens the data directory, subscribes, and prints until it is done.
func (t *tail) follow(ctx context.Context, cmd *cobra.Command, cfg ourotail.Config) (err error) {
	cfg.Brake = t.brake.wait
	f, err := openFollower(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sub, err := t.subscribe(ctx, cmd, f, cfg)
	if err != nil {
		return err
	}
	t.brake.watch(sub)
	rep := newReporter(f, nil, cfg.Logger)
	following, stop := context.WithCancel(ctx)
	defer stop()
	// A signal ends following, not reading: what is committed is printed, so that
	// the directory never stands above the last line.
	read := make(chan error, 1)
	go func() {
		err := t.read(context.WithoutCancel(ctx), sub)
		t.brake.release()
		if err != nil {
			stop() // nobody reads: nothing to follow for
		}
		read <- err
	}()
	err = ended(following, attended(following, f, rep, f.Run))
	f.CloseSubscriptions() // unless they have failed, the reader gets what is left, then the end
	if rerr := <-read; !errors.Is(rerr, hub.ErrCancelled) {
		err = errors.Join(err, rerr) // its own, or what following failed of
	}
	return err
}

// subscribe brings the directory to where the lines begin, silently, and
// subscribes.
func (t *tail) subscribe(ctx context.Context, cmd *cobra.Command, f *ourotail.Follower, cfg ourotail.Config) (hub.Subscription[chain.UTxOEvent], error) {
	head := f.State().Head
	switch {
	case t.start.tip:
		tip, err := f.NodeTip(ctx)
		if err != nil {
			return nil, err
		}
		if tip.Height > head.Height {
			rep := newReporter(f, cmd.ErrOrStderr(), cfg.Logger)
			if err := attended(ctx, f, rep, func(ctx context.Context) error { return f.CatchUp(ctx, tip.Height) }); err != nil {
				return nil, err
			}
		}
	case t.start.point.IsOrigin():
		if !head.Point.IsOrigin() {
			return nil, coded(exitUsage, fmt.Errorf("--from origin needs the history of spent outputs, which this data directory does not keep: %s is at %s already. Give an empty --data-dir", f.Path(), head.At()))
		}
		t.opts.Start = hub.Origin
	default:
		at, err := f.Ancestor(t.start.point)
		if errors.Is(err, ourotail.ErrForgotten) {
			return nil, coded(exitUsage, fmt.Errorf("--from %s: %w; the head of %s is %s: give an older point of yours", t.start.point, err, f.Path(), head.At()))
		}
		if err != nil {
			return nil, err
		}
		if found, ok, err := f.Find(t.start.point); err != nil {
			return nil, err
		} else if !ok || found != at { // undone meanwhile: what lies above has to be discarded
			if err := t.out.event(&chain.UTxOEvent{Kind: chain.RolledBack, At: at}); err != nil {
				return nil, err
			}
		}
		t.opts.Start, t.opts.After = hub.After, chain.Cursor{At: at, Place: chain.WholeBlock}
	}
	sub, err := f.SubscribeUTxOs(ctx, t.query, t.opts)
	var older *hub.OlderError
	if errors.As(err, &older) {
		err = coded(exitUsage, fmt.Errorf("--from %s lies before %s, the oldest point from which this data directory can replay", t.start.point, older.Oldest))
	}
	return sub, err
}

// read prints events until the subscription ends. Output is flushed whenever
// there is nothing more to print for now.
func (t *tail) read(ctx context.Context, sub hub.Subscription[chain.UTxOEvent]) error {
	for {
		ev, err := sub.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return t.out.flush()
		case ctx.Err() != nil:
			return t.out.flush()
		case err != nil:
			return errors.Join(err, t.out.flush())
		}
		if err := t.out.event(&ev); err != nil {
			return err
		}
		if sub.Pending() == 0 {
			if err := t.out.flush(); err != nil {
				return err
			}
		}
		t.brake.read()
	}
}
