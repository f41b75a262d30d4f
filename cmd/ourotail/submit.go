package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/reject"
)

// exitRejected is submit's: the ledger says no.
const exitRejected = 14

// submitFacts are what submit prints as JSON.
type submitFacts struct {
	ID       chain.TxID       `json:"id"`
	Accepted bool             `json:"accepted"`
	Reason   string           `json:"reason,omitempty"`   // of a rejection, in words
	Failures []reject.Failure `json:"failures,omitempty"` // the same, taken apart
	CBOR     string           `json:"cbor,omitempty"`     // the same, as the ledger wrote it
}

func newSubmit() *cobra.Command {
	var asJSON bool
	var era string
	cmd := &cobra.Command{
		Use:   "submit FILE|-",
		Short: "Submit a signed transaction, and print its id",
		Long: `Hands a signed transaction to a node, unchanged, and prints its id if the node
takes it into its mempool. That is no promise of a block: ourotail tx TXID --wait
tells when it is in one.

FILE is what cardano-cli writes (a text envelope: JSON with type and cborHex), or
the transaction as hexadecimal text or as bytes; - is the standard input. The era
is the envelope's, or --era, or else the one that the node is in.

Exit code 0: accepted. 14: the ledger rejects it, and the message says why, in the
words of cardano-ledger; --json has the reason in parts and in the ledger's own
bytes. 6: the file holds no transaction. 4: the node cannot be reached or went
away, and then nobody knows: submitting again does no harm.`,
		Example: `  cardano-cli conway transaction sign ... --out-file tx.signed
  ourotail submit tx.signed --socket-path node.socket --network preview
  echo 84a4... | ourotail submit - --socket-path node.socket --network preview`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			tx, of, err := readTx(cmd.InOrStdin(), args[0])
			if err != nil {
				return coded(exitBadInput, err)
			}
			if era != "" {
				if of, err = chain.ParseEra(era); err != nil {
					return usage("--era: %w", err)
				}
			}
			return withNode(cmd, func(ctx context.Context, conn *chainsync.Conn) error {
				id, err := conn.Submit(ctx, of, tx)
				return reportSubmit(cmd.OutOrStdout(), id, err, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, also of a rejection")
	cmd.Flags().StringVar(&era, "era", "", "the era the transaction was made for (default: the file's, or the node's)")
	addNodeFlags(cmd)
	return cmd
}

// reportSubmit prints what came of a submission.
func reportSubmit(w io.Writer, id chain.TxID, err error, asJSON bool) error {
	var no *chainsync.RejectedError
	if err != nil && !errors.As(err, &no) {
		return err
	}
	if !asJSON {
		if no != nil {
			return coded(exitRejected, fmt.Errorf("the ledger rejects %s: %w", id, no))
		}
		_, err := fmt.Fprintln(w, id)
		return err
	}
	facts := submitFacts{ID: id, Accepted: no == nil}
	if no != nil {
		facts.Reason, facts.CBOR = no.Error(), hex.EncodeToString(no.Raw)
		if r, err := reject.Decode(no.Raw); err == nil {
			facts.Failures = r.Failures
		}
	}
	told := json.NewEncoder(w).Encode(facts)
	if no == nil {
		return told
	}
	return errors.Join(coded(exitRejected, fmt.Errorf("the ledger rejects %s", id)), told) // the verdict holds whoever reads it
}

// maxTxFile bounds what submit reads: a transaction has 16 kB.
const maxTxFile = 4 << 20

// readTx reads a transaction in any of the forms that people have it in, with
// its era if the file tells.
func readTx(stdin io.Reader, name string) ([]byte, chain.Era, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, 0, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxTxFile+1))
	if err != nil {
		return nil, 0, fmt.Errorf("reading the transaction: %w", err)
	}
	if len(data) > maxTxFile {
		return nil, 0, fmt.Errorf("the input is longer than %d bytes: not a transaction", maxTxFile)
	}
	return parseTxFile(data)
}

func parseTxFile(data []byte) (tx []byte, era chain.Era, err error) {
	tx = data
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '{' {
		if tx, era, err = parseEnvelope(text); err != nil {
			return nil, 0, err
		}
	} else if raw, err := hex.DecodeString(string(bytes.Join(bytes.Fields(data), nil))); err == nil && len(raw) > 0 {
		tx = raw // a transaction begins with an array, which is no hexadecimal digit
	}
	if _, err := ledger.TxID(tx); err != nil {
		return nil, 0, fmt.Errorf("%w; a file is what cardano-cli writes, hexadecimal text, or bytes", err)
	}
	return tx, era, nil
}

// envelopeEra finds the era in an envelope's type: "Witnessed Tx ConwayEra",
// "Tx BabbageEra", "TxSignedShelley".
var envelopeEra = regexp.MustCompile(`(?i)(shelley|allegra|mary|alonzo|babbage|conway|dijkstra)(era)?$`)

// parseEnvelope reads cardano-cli's text envelope.
func parseEnvelope(text []byte) ([]byte, chain.Era, error) {
	var e struct{ Type, CborHex string }
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, 0, fmt.Errorf("%w: an envelope that is no JSON: %w", ledger.ErrNotATx, err)
	}
	kind := strings.ToLower(e.Type)
	if !strings.Contains(kind, "tx") {
		return nil, 0, fmt.Errorf("%w: the file holds a %q", ledger.ErrNotATx, e.Type)
	}
	for _, unsigned := range []string{"unwitnessed", "unsigned", "txbody"} {
		if strings.Contains(kind, unsigned) {
			return nil, 0, fmt.Errorf("%w that can be submitted: the file holds a %q, without signatures; sign it first (cardano-cli conway transaction sign)", ledger.ErrNotATx, e.Type)
		}
	}
	var era chain.Era
	if m := envelopeEra.FindStringSubmatch(e.Type); m != nil {
		era, _ = chain.ParseEra(m[1]) // the expression has the names of eras only
	}
	tx, err := hex.DecodeString(e.CborHex)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: cborHex: %w", ledger.ErrNotATx, err)
	}
	return tx, era, nil
}
