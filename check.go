package ourotail

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
	"github.com/ourotail/ourotail/store"
)

// CheckConfig says what Check looks at and whom it tells.
type CheckConfig struct {
	DataDir string
	Logger  *slog.Logger // nil discards

	// Progress, if given, is called now and then: what is being read, how much of it
	// has been and how much there is, 0 if that is not known.
	Progress func(what string, done, total int64)
}

// CheckReport is what Check found, in the shape that programs read. Fields are
// only ever added.
type CheckReport struct {
	OK       bool `json:"ok"`       // all was read, and nothing is wrong
	Complete bool `json:"complete"` // the contents were read, not only the files
	// Unfinished tells that nothing is wrong and not all was read: a kill left a large
	// write half done. Whatever opens the directory next finishes or undoes it.
	Unfinished bool           `json:"unfinished,omitempty"`
	Findings   []CheckFinding `json:"findings"`
	Notes      []string       `json:"notes,omitempty"`
	Repair     string         `json:"repair,omitempty"` // what to do unless OK

	Network   string      `json:"network,omitempty"`
	Magic     uint32      `json:"network_magic"`
	K         int64       `json:"security_parameter"`
	Retention string      `json:"retention,omitempty"`
	Head      chain.Point `json:"head"`
	Height    int64       `json:"height"` // -1 at origin
	Floor     chain.Point `json:"floor"`

	// Digest is of the set as it was found: two directories with the same head and
	// accumulator hold the same outputs.
	Digest *DigestStatus `json:"digest,omitempty"`

	Tables     int   `json:"tables"`
	TableBytes int64 `json:"table_bytes"`
	Blocks     int64 `json:"blocks"`        // of the chain, boundary blocks among them
	Records    int64 `json:"records"`       // of them, in the journal
	Marks      int64 `json:"marks"`         // outputs spent within reach of a rollback
	Spent      int64 `json:"spent"`         // in an archive
	Indexed    int64 `json:"index_entries"` //
	RawBytes   int64 `json:"raw_bytes"`     // of blocks
	Orphans    int64 `json:"orphans"`
}

// CheckFinding is one kind of thing that is wrong.
type CheckFinding struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	First string `json:"first"` // the first of them, in words
}

// Check verifies a data directory that nobody is following into, without
// changing anything: files, chain, journal, outputs, indexes, counts, and that
// every raw block has the hash it is kept under. What is wrong is in the report;
// an error means that it could not look: see store.Check.
func Check(ctx context.Context, cfg CheckConfig) (*CheckReport, error) {
	var acc canon.Accumulator
	var line []byte
	var block ledger.Block
	r := &CheckReport{Findings: []CheckFinding{}}
	d := &DigestStatus{}
	var lovelace uint64
	c, err := store.Check(ctx, store.CheckOptions{
		Dir: cfg.DataDir, Logger: cfg.Logger, Terms: ledger.Terms, Progress: cfg.Progress,
		Output: func(o *chain.Output, spent bool) error {
			out, err := ledger.DecodeOutput(o.Era, o.Raw)
			switch {
			case err != nil:
				return fmt.Errorf("it does not decode: %w", err)
			case out.Lovelace != o.Lovelace:
				return fmt.Errorf("its bytes say %d lovelace, its record %d", out.Lovelace, o.Lovelace)
			case spent:
				return nil
			}
			line = canon.AppendUTxO(line[:0], o.Ref, &out)
			acc.Add(line)
			d.UTxOs++
			lovelace += out.Lovelace
			return nil
		},
		Block: func(l chain.Link, raw []byte) error { return sameBlock(&block, l, raw) },
	})
	if err != nil {
		return nil, err
	}
	for _, f := range c.Findings {
		r.Findings = append(r.Findings, CheckFinding(f))
	}
	r.Notes, r.Complete, r.OK = c.Notes, c.Read, len(c.Findings) == 0 && c.Read
	if len(c.Findings) > 0 {
		r.Repair = "put back a copy of the directory that is whole, or start over with ourotail run --resync"
	} else if !c.Read {
		r.Unfinished = true
		r.Repair = "start ourotail on the directory once (ourotail status will do), then check again"
	}
	r.Tables, r.TableBytes, r.Height, r.Magic = c.Tables, c.TableBytes, int64(chain.OriginHeight), c.State.Magic
	if !c.Read {
		return r, nil
	}
	st := c.State
	r.Network, r.K, r.Retention = ledger.NetworkName(st.Magic), int64(st.K), retention(st)
	r.Head, r.Height, r.Floor = st.Head.Point, int64(st.Head.Height), st.Floor.Point
	r.Blocks, r.Records, r.Marks, r.Spent, r.Indexed, r.RawBytes, r.Orphans = c.Links, c.Records, st.Marks, c.Spent, c.Indexed, c.RawBytes, c.Orphans
	d.Accumulator, d.Lovelace = acc.String(), strconv.FormatUint(lovelace, 10)
	r.Digest = d
	return r, nil
}

// sameBlock tells whether a raw block is the one of the link.
func sameBlock(b *ledger.Block, l chain.Link, raw []byte) error {
	if err := b.Walk(raw); err != nil {
		return err
	}
	got := b.Link
	if l.Era == chain.Byron { // its slot hangs on the length of an epoch; the hash is over both
		got.Point.Slot = l.Point.Slot
	}
	if got != l {
		return fmt.Errorf("its bytes are those of block %s", b.At())
	}
	return nil
}
