package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
)

// mempoolFacts are what mempool prints as JSON.
type mempoolFacts struct {
	Slot     chain.Slot          `json:"slot"`
	Capacity uint32              `json:"capacity"`
	Size     uint32              `json:"size"`
	Txs      []pendingTx         `json:"txs"`
	Measures []chainsync.Measure `json:"measures,omitempty"`
}

type pendingTx struct {
	ID   chain.TxID `json:"id"`
	Era  string     `json:"era"`
	Size int        `json:"size"`
}

func newMempool() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mempool",
		Short: "Show what waits in a node's mempool",
		Long: `Takes a snapshot of a node's mempool: the transactions that this node would put
into a block, in that order, and how full the mempool is. Other nodes may have
others. What is not here was never submitted, or is in a block, or was found
invalid.

--json also has the measures of newer nodes: bytes, memory, steps, reference
scripts.`,
		Example: `  ourotail mempool --socket-path node.socket --network preview
  ourotail mempool --socket-path node.socket --network preview --json | jq -r '.txs[].id'`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withNode(cmd, func(ctx context.Context, conn *chainsync.Conn) error {
				facts, err := readMempool(ctx, conn)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(facts)
				}
				return printMempool(cmd.OutOrStdout(), facts)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	addNodeFlags(cmd)
	return cmd
}

func readMempool(ctx context.Context, conn *chainsync.Conn) (facts mempoolFacts, err error) {
	m, err := conn.Mempool(ctx)
	if err != nil {
		return facts, err
	}
	defer m.Release()
	sizes, err := m.Sizes(ctx)
	if err != nil {
		return facts, err
	}
	facts = mempoolFacts{Slot: m.Slot(), Capacity: sizes.Capacity, Size: sizes.Size, Txs: []pendingTx{}}
	for {
		tx, ok, err := m.Next(ctx)
		if err != nil {
			return facts, err
		}
		if !ok {
			break
		}
		facts.Txs = append(facts.Txs, pendingTx{ID: tx.ID, Era: tx.Era.String(), Size: len(tx.Raw)})
	}
	facts.Measures, err = m.Measures(ctx)
	if errors.Is(err, chainsync.ErrNoQuery) { // an older node
		err = nil
	}
	return facts, err
}

func printMempool(w io.Writer, facts mempoolFacts) error {
	for _, tx := range facts.Txs {
		if _, err := fmt.Fprintf(w, "%s  %s bytes  %s\n", tx.ID, thousands(uint64(tx.Size)), tx.Era); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s of %s bytes, for slot %d\n", plural(len(facts.Txs), "transaction"),
		thousands(uint64(facts.Size)), thousands(uint64(facts.Capacity)), facts.Slot)
	return err
}
