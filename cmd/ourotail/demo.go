package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

// The chain begins with enough blocks, in short epochs, to have seen every era.
const (
	demoEpoch  = 8
	demoBlocks = 90
)

// demoNames are given to the busiest addresses of the generated chain.
var demoNames = []string{"alice", "bob", "carol", "dave"}

func newDemo() *cobra.Command {
	var seed uint64
	var interval, duration time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Follow an embedded node with a generated chain, forks included",
		Long: `Starts a node of its own with a generated chain, follows it over a real socket,
and shows what happens to a few addresses. Nothing has to be set up, and nothing
is left behind. Ctrl-C ends it; at the end the set of unspent outputs is compared
with the generator's own ledger.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval <= 0 {
				return usage("--interval must be above 0")
			}
			ctx := cmd.Context()
			if duration > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, duration)
				defer stop()
			}
			return ended(ctx, demo(ctx, cmd, seed, interval))
		},
	}
	cmd.Flags().Uint64Var(&seed, "seed", 1, "another seed, another chain")
	cmd.Flags().DurationVar(&interval, "interval", 500*time.Millisecond, "time between blocks")
	cmd.Flags().DurationVar(&duration, "duration", 0, "end after so long; 0 for Ctrl-C")
	return cmd
}

func demo(ctx context.Context, cmd *cobra.Command, seed uint64, interval time.Duration) (err error) {
	log, err := newLogger(cmd, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ourotail-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := devnode.Generate(forge.Options{Seed: seed, EpochBlocks: demoEpoch})
	if err != nil {
		return err
	}
	if err := c.Genesis().WriteConfig(dir); err != nil {
		return err
	}
	if err := c.Extend(demoBlocks); err != nil {
		return err
	}
	watched, err := busiest(c, len(demoNames))
	if err != nil {
		return err
	}
	genesis, err := ledger.LoadGenesis(filepath.Join(dir, "config.json"))
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "node.socket")

	// The node outlives the follower: it is what the result is compared with.
	node, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() {
		served <- devnode.Serve(node, devnode.Config{Socket: socket, Magic: genesis.Magic, Chain: c, Interval: interval, ForkRate: 0.12, MaxDepth: 4, Seed: seed})
	}()
	defer func() {
		stopNode()
		err = errors.Join(err, <-served)
	}()

	names := map[string]string{}
	var arms []query.UTxO
	for i, addr := range watched {
		names[string(addr)] = fmt.Sprintf("%-25s", demoNames[i])
		arms = append(arms, query.Address(addr))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "A generated chain on %s, a block every %v, forks now and then.\nWatching %d addresses: green created, red spent, yellow a fork. Ctrl-C ends it.\n\n", socket, interval, len(arms))
	cfg := ourotail.Config{SocketPath: socket, Genesis: genesis, DataDir: filepath.Join(dir, "data"), Memory: 64 << 20, Logger: quieter(log)}
	t := &tail{cmd: cmd, cfg: cfg, sink: newSink(cmd.OutOrStdout()), names: names,
		req: tailRequest{query: query.AnyOf(arms...), format: "pretty", color: isTerminal(cmd.OutOrStdout())}}
	t.cfg.Brake = t.brake.wait
	f, err := ourotail.Open(ctx, t.cfg)
	if err == nil {
		err = ended(ctx, t.follow(ctx, f))
	}
	if err != nil {
		return err
	}
	return demoVerdict(cmd, c, cfg.DataDir)
}

// busiest returns the n addresses that the chain has paid to most.
func busiest(c *devnode.Chain, n int) ([][]byte, error) {
	path, err := c.Oracle().Path(c.Tip().Point.Hash)
	if err != nil {
		return nil, err
	}
	paid := map[string]int{}
	for _, l := range path {
		e, err := c.Oracle().Effects(l.Point.Hash)
		if err != nil {
			return nil, err
		}
		for _, tx := range e.Txs {
			for _, o := range tx.Created {
				paid[string(o.Address)]++
			}
		}
	}
	wallet := c.Wallet()
	slices.SortStableFunc(wallet, func(a, b []byte) int { return cmp.Compare(paid[string(b)], paid[string(a)]) })
	return wallet[:min(n, len(wallet))], nil
}

// demoVerdict compares the set that was followed with the generator's ledger.
func demoVerdict(cmd *cobra.Command, c *devnode.Chain, dataDir string) error {
	d, err := ourotail.OpenDir(dataDir, nil)
	if err != nil {
		return err
	}
	defer d.Close()
	v := d.View()
	defer v.Close()
	head := v.Head()
	if head.Point.IsOrigin() {
		return nil
	}
	got, err := v.Digest(context.WithoutCancel(cmd.Context()))
	if err != nil {
		return err
	}
	want, err := c.Oracle().Summary(head.Point.Hash)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nFollowed to block %d: %d unspent outputs, %s.\n", head.Height, got.UTxOs, ada(got.Lovelace))
	if sum := hex.EncodeToString(want.Accumulator[:]); got.Accumulator != sum {
		return fmt.Errorf("the generator's own ledger differs at %s: %s, we have %s", head.At(), sum, got.Accumulator)
	}
	fmt.Fprintln(cmd.OutOrStdout(), "The generator's own ledger holds exactly the same set.")
	return nil
}
