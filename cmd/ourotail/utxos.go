package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
	"github.com/ourotail/ourotail/query"
)

const queryHelp = `A query is a Kupo pattern or a combination of them:
  *                        every output
  addr1..., addr_test1..., DdzFF..., hexadecimal   an address
  stake1...                a stake address
  CRED/*, */CRED, CRED/CRED   payment and stake credential (hash, key, or bech32)
  POLICY.*, POLICY.ASSET   a policy, an asset
  *@TXID, IX@TXID          the outputs of a transaction, one output
joined by and, or, not and parentheses. Several queries want what any of them wants.
`

func newUTxOs() *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "utxos [QUERY...]",
		Short: "List unspent outputs",
		Long: `Lists the unspent outputs that a query wants, from a data directory. While a
follower runs on it the answer comes from that follower.

` + queryHelp + `
Formats:
  pretty   one line each, for people
  json     one JSON object a line, in the shape of Kupo's matches, amounts as strings
  lines    the canonical text, sorted bytewise: txid#ix address lovelace assets datum script`,
		Example: `  ourotail utxos --data-dir D addr_test1...
  ourotail utxos --network preview --json 'POLICY.* and not */*'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := parseQueries(args)
			if err != nil {
				return err
			}
			if format, err = jsonFormat(cmd, asJSON, format); err != nil {
				return err
			}
			if err := checkFormat(format, "pretty", "json", "lines"); err != nil {
				return err
			}
			dir, err := readDir(cmd)
			if err != nil {
				return err
			}
			magic, err := wantedMagic(cmd)
			if err != nil {
				return err
			}
			log, err := newLogger(cmd, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return askOrRead(cmd.Context(), dir, log, askPatience, func() error {
				return remoteUTxOs(cmd.Context(), cmd.OutOrStdout(), dir, magic, args, format)
			}, func(d *ourotail.Dir) error {
				if err := sameNetwork(dir, d.State().Magic, magic); err != nil {
					return err
				}
				v := d.View()
				defer v.Close()
				return writeUTxOs(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), v, q, format)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "pretty", "pretty, json or lines")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	addDataDirFlag(cmd)
	addNetworkFlags(cmd)
	return cmd
}

// jsonFormat is the format once --json has been looked at.
func jsonFormat(cmd *cobra.Command, asJSON bool, format string) (string, error) {
	if !asJSON {
		return format, nil
	}
	if cmd.Flags().Changed("format") && format != "json" {
		return "", usage("--json and --format %s contradict each other", format)
	}
	return "json", nil
}

func checkFormat(format string, known ...string) error {
	for _, k := range known {
		if format == k {
			return nil
		}
	}
	return usage("--format: %q is none of %v", format, known)
}

// writeUTxOs writes the outputs that a query wants; notes for people go to
// notes.
func writeUTxOs(ctx context.Context, w, notes io.Writer, v *ourotail.View, q query.UTxO, format string) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var err error
	switch format {
	case "lines":
		err = v.Lines(ctx, q, func(line []byte) error {
			_, err := out.Write(append(line, '\n'))
			return err
		})
	case "json":
		enc := json.NewEncoder(out)
		err = v.UTxOs(ctx, q, func(u *chain.UTxO) error { return enc.Encode(record.MatchOf(u)) })
	default:
		n, lovelace := 0, uint64(0)
		err = v.UTxOs(ctx, q, func(u *chain.UTxO) error {
			n++
			lovelace += u.Out.Lovelace
			_, err := fmt.Fprintf(out, "%s  %s  %s%s\n", u.Ref, address.Text(u.Out.Address), ada(u.Out.Lovelace), alsoHolds(&u.Out))
			return err
		})
		if err == nil {
			defer fmt.Fprintf(notes, "%s, %s, at %s\n", plural(n, "output"), ada(lovelace), v.Head().At())
		}
	}
	if err != nil {
		return err
	}
	return out.Flush()
}
