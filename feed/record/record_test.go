package record

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestGolden: programs read these lines; fields may be added, never changed.
func TestGolden(t *testing.T) {
	at := chain.At{Point: chain.Point{Slot: 12345, Hash: chain.Hash{0xaa, 1}}, Height: 678}
	made := chain.At{Point: chain.Point{Slot: 1, Hash: chain.Hash{0xbb}}, Height: 5}
	enterprise := append([]byte{0x60}, bytes.Repeat([]byte{7}, 28)...)
	plain := &chain.UTxO{Ref: chain.TxIn{ID: chain.Hash{1}, Index: 2}, At: made, TxIndex: 3,
		Out: chain.TxOut{Address: enterprise, Lovelace: math.MaxUint64}} // far above 2^53
	rich := &chain.UTxO{Ref: chain.TxIn{ID: chain.Hash{2}}, At: at, Out: chain.TxOut{
		Address: enterprise, Lovelace: 1, DatumKind: chain.InlineDatum, Datum: []byte{0x05}, Script: &chain.Script{Language: 2, Bytes: []byte{1, 2}},
		Assets: []chain.Asset{{Policy: chain.Hash28{9}, Name: nil, Quantity: 1 << 60}, {Policy: chain.Hash28{9}, Name: []byte("coin"), Quantity: 5}}}}
	hashed := &chain.UTxO{Ref: chain.TxIn{ID: chain.Hash{3}}, At: chain.Origin,
		Out: chain.TxOut{Address: enterprise, DatumKind: chain.HashedDatum, DatumHash: chain.Hash{4}}}
	events := []chain.UTxOEvent{
		{Kind: chain.Created, Because: chain.Seed, UTxO: hashed, At: chain.Origin},
		{Kind: chain.Spent, UTxO: plain, At: at, Tx: chain.Hash{8}, TxValid: true, Index: 4, Place: 10},
		{Kind: chain.Created, UTxO: rich, At: at, Tx: chain.Hash{2}, TxValid: false, LastOfTx: true, LastOfBlock: true, Place: 11},
		{Kind: chain.RolledBack, At: made, Mark: &at},
		{Kind: chain.Idle, At: at, LastOfBlock: true},
		{Kind: chain.RolledBack, At: chain.Origin, Mark: &made},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for i := range events {
		if err := enc.Encode(Of(&events[i])); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join("testdata", "events.jsonl")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.Bytes(), want)
	}
}
