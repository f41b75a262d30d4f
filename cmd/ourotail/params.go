package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/ledger/params"
)

// paramsFacts are what params prints as JSON.
type paramsFacts struct {
	Point  chain.Point    `json:"point"`
	Height chain.Height   `json:"height"`
	Epoch  uint64         `json:"epoch"`
	Params *params.Params `json:"params"`
	CBOR   string         `json:"cbor"`
}

func newParams() *cobra.Command {
	var asJSON, ofGenesis bool
	cmd := &cobra.Command{
		Use:   "params",
		Short: "Show the protocol parameters in force",
		Long: `Asks a node for the protocol parameters that hold at its newest block: fees,
sizes, deposits, prices of execution, voting thresholds. They change at the
boundary of an epoch only.

Fractions are exact: 577/10000, not 0.0577. --json names everything as
cardano-cli query protocol-parameters does, adds where and when (point, height,
epoch), all cost models, and the node's own bytes as cbor.

--genesis shows the Shelley genesis that the node was started with instead: network,
system start, security parameter, lengths of epochs and slots. Where it differs from
the one that --network or --config stands for, each difference is named, and the
exit code is 5.`,
		Example: `  ourotail params --socket-path node.socket --network preview
  ourotail params --socket-path node.socket --mainnet --json | jq .params.utxoCostPerByte
  ourotail params --genesis --socket-path node.socket --config config.json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := nodeConfig(cmd)
			if err != nil {
				return err
			}
			if ofGenesis {
				return showGenesis(cmd, cfg, asJSON)
			}
			got, err := chainsync.ReadParams(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			p, err := params.Decode(got.Era, got.Raw)
			if err != nil {
				return coded(exitNode, err)
			}
			facts := paramsFacts{Point: got.At.Point, Height: got.At.Height, Epoch: got.Epoch, Params: p, CBOR: hex.EncodeToString(got.Raw)}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(facts)
			}
			return printParams(cmd.OutOrStdout(), facts)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&ofGenesis, "genesis", false, "show the node's genesis, and compare it with ours")
	addNodeFlags(cmd)
	return cmd
}

// printParams prints the fields of the JSON, one a line, in their order; what is
// in them is set off with a dot, and of a list only the length is said.
func printParams(w io.Writer, facts paramsFacts) error {
	fmt.Fprintf(w, "%-46s %s\n%-46s %d, epoch %d\n", "at", facts.Point, "height", facts.Height, facts.Epoch)
	text, err := json.Marshal(facts.Params)
	if err != nil {
		return err
	}
	return printJSON(w, "", text)
}

func printJSON(w io.Writer, name string, text json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	open, err := dec.Token()
	switch {
	case err != nil:
		return err
	case open == json.Delim('['):
		n := 0
		for ; dec.More(); n++ {
			var item json.RawMessage
			if err := dec.Decode(&item); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(w, "%-46s %s, see --json\n", name, plural(n, "value"))
		return err
	case open != json.Delim('{'):
		value := string(text)
		if s, ok := open.(string); ok {
			value = s
		}
		_, err = fmt.Fprintf(w, "%-46s %s\n", name, value)
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		inner := fmt.Sprint(key)
		if name != "" {
			inner = name + "." + inner
		}
		if err := printJSON(w, inner, value); err != nil {
			return err
		}
	}
	return nil
}
