package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

// blockFacts is what inspect says of a block. Quantities are JSON numbers
// written in full; a reader that keeps numbers as doubles loses digits above 2^53.
type blockFacts struct {
	Era    string    `json:"era"`
	Hash   string    `json:"hash"`
	Prev   string    `json:"prev"`
	Slot   uint64    `json:"slot"`
	Height int64     `json:"height"`
	Size   int       `json:"size"` // of the block in storage form, in bytes
	Txs    []txFacts `json:"txs"`
}

type txFacts struct {
	ID        string        `json:"id"`
	Valid     bool          `json:"valid"`
	Spent     []string      `json:"spent"`
	Reference []string      `json:"reference"`
	Produced  []outputFacts `json:"produced"`
}

type outputFacts struct {
	Ref      string                       `json:"ref"`
	Address  string                       `json:"address"` // hexadecimal
	Lovelace uint64                       `json:"lovelace"`
	Assets   map[string]map[string]uint64 `json:"assets"`
	Datum    string                       `json:"datum_hash,omitempty"`
	Inline   string                       `json:"inline_datum_hash,omitempty"`
	Script   string                       `json:"script_hash,omitempty"`
}

func newInspect() *cobra.Command {
	var asJSON bool
	var era string
	cmd := &cobra.Command{
		Use:   "inspect [FILE|-]",
		Short: "Show what a raw block does",
		Long: `Reads one block, as hexadecimal text or as bytes, and shows its facts: hash,
parent, slot, height, and of every transaction its id, validity, inputs,
reference inputs and outputs. No node and no data directory are needed.

The block is in the form that a node stores and sends, [era tag, block]; with
--era NAME a bare block of that era is taken (byron-ebb for a boundary block).`,
		Example: `  ourotail inspect block.hex
  xxd -p block.cbor | ourotail inspect --json -`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := readBlock(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			if era != "" {
				boundary := strings.EqualFold(era, "byron-ebb")
				if boundary {
					era = "byron"
				}
				e, err := chain.ParseEra(era)
				if err != nil {
					return usage("--era: %w", err)
				}
				raw = ledger.Wrap(e, boundary, raw)
			}
			facts, err := inspectBlock(raw)
			if err != nil {
				return coded(exitBadInput, err)
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", " ")
				return enc.Encode(facts)
			}
			return printBlock(cmd.OutOrStdout(), facts)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&era, "era", "", "the input is a bare block of this era")
	return cmd
}

// maxBlockFile bounds what inspect reads: no block comes near it.
const maxBlockFile = 64 << 20

func readBlock(stdin io.Reader, args []string) ([]byte, error) {
	in := stdin
	if len(args) == 1 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, coded(exitBadInput, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBlockFile+1))
	if err != nil {
		return nil, coded(exitBadInput, fmt.Errorf("reading the block: %w", err))
	}
	if len(data) > maxBlockFile {
		return nil, coded(exitBadInput, fmt.Errorf("the input is longer than %d bytes: not a block", maxBlockFile))
	}
	// A block begins with an array of two (0x82, or 0x9f where its length is not
	// given): no hexadecimal digit.
	text := bytes.Join(bytes.Fields(data), nil)
	if raw, err := hex.DecodeString(string(text)); err == nil && len(raw) > 0 {
		return raw, nil
	}
	return data, nil
}

func inspectBlock(raw []byte) (*blockFacts, error) {
	var b ledger.Block
	if err := b.Walk(raw); err != nil {
		return nil, err
	}
	f := &blockFacts{Era: b.Era.String(), Hash: b.Point.Hash.String(), Prev: b.Parent.String(), Slot: uint64(b.Point.Slot),
		Height: int64(b.Height), Size: len(raw), Txs: []txFacts{}}
	if b.Boundary {
		f.Era = "byron-ebb"
	}
	for i := range b.Txs {
		t := &b.Txs[i]
		tx := txFacts{ID: t.ID.String(), Valid: t.Valid, Spent: refTexts(t.Inputs), Reference: refTexts(t.Reference), Produced: []outputFacts{}}
		if !t.Valid {
			tx.Spent = refTexts(t.Collateral)
		}
		first, outs := t.Creates()
		for j := range outs {
			raw := b.Bytes(outs[j].Span)
			o, err := ledger.DecodeOutput(b.Era, raw)
			if err != nil {
				return nil, err
			}
			out := outputFacts{Ref: chain.TxIn{ID: t.ID, Index: first + uint32(j)}.String(), Address: hex.EncodeToString(o.Address),
				Lovelace: o.Lovelace, Assets: map[string]map[string]uint64{}}
			for _, a := range o.Assets {
				policy := a.Policy.String()
				if out.Assets[policy] == nil {
					out.Assets[policy] = map[string]uint64{}
				}
				out.Assets[policy][hex.EncodeToString(a.Name)] = a.Quantity
			}
			if id, ok := o.DatumID(); ok && o.DatumKind == chain.InlineDatum {
				out.Inline = id.String()
			} else if ok {
				out.Datum = id.String()
			}
			if o.Script != nil {
				out.Script = o.Script.Hash().String()
			}
			tx.Produced = append(tx.Produced, out)
		}
		f.Txs = append(f.Txs, tx)
	}
	return f, nil
}

// refTexts keeps the order in which the references stand; a repeat counts once.
func refTexts(refs []chain.TxIn) []string {
	out := make([]string, 0, len(refs))
	for i, r := range refs {
		if !slices.Contains(refs[:i], r) {
			out = append(out, r.String())
		}
	}
	return out
}

func printBlock(w io.Writer, f *blockFacts) error {
	fmt.Fprintf(w, "%s block %s\n  parent %s\n  slot %d, height %d, %d bytes, %d transactions\n", f.Era, f.Hash, f.Prev, f.Slot, f.Height, f.Size, len(f.Txs))
	for _, t := range f.Txs {
		note := ""
		if !t.Valid {
			note = "  (scripts failed: spends its collateral)"
		}
		fmt.Fprintf(w, "\ntransaction %s%s\n", t.ID, note)
		for _, r := range t.Spent {
			fmt.Fprintf(w, "  - %s\n", r)
		}
		for _, r := range t.Reference {
			fmt.Fprintf(w, "  ? %s (read only)\n", r)
		}
		for _, o := range t.Produced {
			raw, _ := hex.DecodeString(o.Address)
			fmt.Fprintf(w, "  + %s  %s  %s lovelace%s\n", o.Ref, address.Text(raw), thousands(o.Lovelace), assetNote(o.Assets))
		}
	}
	return nil
}

func assetNote(assets map[string]map[string]uint64) string {
	n := 0
	for _, names := range assets {
		n += len(names)
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " and 1 asset"
	}
	return fmt.Sprintf(" and %d assets", n)
}
