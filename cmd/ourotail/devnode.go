package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/immutable"
)

type devnodeFlags struct {
	socket, immutable, generate, configDir string
	untilChunk                             int
	untilHeight                            int64
	checkCRC                               bool
	blocks, k, maxDepth                    int
	seed                                   uint64
	interval                               time.Duration
	forkRate                               float64
	wallClock                              bool
	out                                    string
	faults                                 []string
}

func newDevnode() *cobra.Command {
	var f devnodeFlags
	cmd := &cobra.Command{
		Use:   "devnode",
		Short: "Serve a chain as a node would: from a node's files, or generated",
		Long: `Serves a chain over the node-to-client protocol on a Unix socket, for any
client: the blocks of a node's ImmutableDB folder, or a generated chain with every
kind of transaction, from Byron to Conway, that grows and forks.

A generated chain has a network magic and genesis of its own: its config.json and
genesis files are written beside the socket, for --config of run and tail. It also
answers what params, time and mempool ask, and takes what submit submits: checked
against its ledger, but for signatures and scripts, it is in the next block.

With --out nothing is served: a chain of --blocks blocks is written to a folder, as
an ImmutableDB in its folder immutable, with config.json, a line for each block in
blocks.txt, and digests of what a follower must find in digests.txt.

--fault makes the node misbehave when it sends the block at a height:
  skip, repeat        the block is left out, comes twice
  silence, hang-up    the request stays unanswered, the connection is closed
  wrong-parent        the block names another parent
  false-origin        a roll backward to origin instead
  malformed-point     a roll backward whose point has one item instead
  corrupt-LAYER       broken bytes, at one of these layers:
                      ` + strings.Join(layerNames(), ", ") + `
NAME@HEIGHT is every time, NAME@HEIGHT*N the first N times.`,
		Example: `  ourotail devnode --immutable db/immutable --network preview --socket /tmp/node.socket
  ourotail devnode --generate varied --interval 1s --fork-rate 0.1 --socket /tmp/node.socket
  ourotail devnode --generate mainnet-like --blocks 20000 --out /tmp/chain
  ourotail devnode --generate varied --socket /tmp/node.socket --fault 'skip@50*1' --fault hang-up@70*2
  ourotail tail --config /tmp/node.socket.config/config.json --socket-path /tmp/node.socket`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(cmd, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if f.out != "" {
				return f.write(cmd, log)
			}
			if f.socket == "" {
				return usage("where to listen? Give --socket")
			}
			if (f.immutable == "") == (f.generate == "") {
				return usage("what to serve? Give --immutable DIR or --generate varied|mainnet-like")
			}
			if f.immutable != "" {
				return f.serveImmutable(cmd, log)
			}
			return f.serveGenerated(cmd, log)
		},
	}
	cmd.Flags().StringVar(&f.socket, "socket", "", "path of the socket to listen on")
	cmd.Flags().StringVar(&f.immutable, "immutable", "", "folder with a node's .chunk, .primary and .secondary files")
	cmd.Flags().IntVar(&f.untilChunk, "until-chunk", 0, "with --immutable: serve no chunk after this one")
	cmd.Flags().Int64Var(&f.untilHeight, "until-height", 0, "with --immutable: serve no block above this height")
	cmd.Flags().BoolVar(&f.checkCRC, "check-crc", false, "with --immutable: check every block's checksum first")
	cmd.Flags().StringVar(&f.generate, "generate", "", "varied or mainnet-like")
	cmd.Flags().IntVar(&f.blocks, "blocks", 100, "with --generate: blocks to begin with")
	cmd.Flags().IntVar(&f.k, "k", 432, "with --generate: security parameter, in blocks")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "with --generate: the same seed gives the same chain")
	cmd.Flags().DurationVar(&f.interval, "interval", 0, "with --generate: a new block so often; 0 for a chain that stands still")
	cmd.Flags().Float64Var(&f.forkRate, "fork-rate", 0, "with --interval: probability of a fork instead of a block")
	cmd.Flags().IntVar(&f.maxDepth, "max-depth", 3, "with --fork-rate: deepest fork, in blocks")
	cmd.Flags().StringVar(&f.configDir, "config-dir", "", "with --generate: where to write config.json and the genesis files (default: SOCKET.config)")
	cmd.Flags().BoolVar(&f.wallClock, "wall-clock", false, "with --generate: the newest block is of now, and each new one of the time it is made at")
	cmd.Flags().StringVar(&f.out, "out", "", "with --generate: write a chain of --blocks blocks to this folder, and end")
	cmd.Flags().StringArrayVar(&f.faults, "fault", nil, "NAME@HEIGHT or NAME@HEIGHT*N, see above; may be given again")
	addNetworkFlags(cmd)
	return cmd
}

func (f *devnodeFlags) serveImmutable(cmd *cobra.Command, log *slog.Logger) error {
	g, err := network(cmd)
	if err != nil {
		return err
	}
	opts := immutable.Options{Logger: log, CheckCRC: f.checkCRC, ByronEpochSlots: g.ByronEpochSlots}
	if cmd.Flags().Changed("until-chunk") {
		opts.UntilChunk = &f.untilChunk
	}
	if cmd.Flags().Changed("until-height") {
		h := chain.Height(f.untilHeight)
		opts.UntilHeight = &h
	}
	c, err := devnode.OpenImmutable(f.immutable, opts)
	if err != nil {
		return coded(exitBadInput, err)
	}
	return f.serve(cmd.Context(), cmd, devnode.Config{Magic: g.Magic, Chain: c, Logger: log})
}

func (f *devnodeFlags) serveGenerated(cmd *cobra.Command, log *slog.Logger) error {
	opts, err := f.options(cmd)
	if err != nil {
		return err
	}
	if f.wallClock {
		span, err := opts.Span(f.blocks)
		if err != nil {
			return coded(exitUsage, err)
		}
		opts.SystemStart = time.Now().Add(-span)
	}
	c, err := devnode.Generate(opts)
	if err != nil {
		return coded(exitUsage, err)
	}
	dir := f.configDir
	if dir == "" {
		dir = f.socket + ".config"
	}
	if err := c.Genesis().WriteConfig(dir); err != nil {
		return err
	}
	if err := c.Extend(f.blocks); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), "config", filepath.Join(dir, "config.json")); err != nil && !readerGone(err) {
		return err
	}
	return f.serve(cmd.Context(), cmd, devnode.Config{Magic: opts.Magic, Chain: c, Logger: log,
		Interval: f.interval, ForkRate: f.forkRate, MaxDepth: f.maxDepth, Seed: f.seed, WallClock: f.wallClock})
}

func (f *devnodeFlags) serve(ctx context.Context, cmd *cobra.Command, cfg devnode.Config) error {
	fault, err := parseFaults(f.faults)
	if err != nil {
		return err
	}
	cfg.Socket, cfg.Behaviour.OnReply = f.socket, fault
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "serving %s up to %s on %s\n", plural(cfg.Chain.Len(), "block"), cfg.Chain.Tip(), f.socket)
	if err != nil && !readerGone(err) { // who has read enough may still want the node
		return err
	}
	return ended(ctx, devnode.Serve(ctx, cfg))
}
