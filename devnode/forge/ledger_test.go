package forge_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
)

// checkBlock walks a forged block and compares what it does with what the
// oracle says it does.
func checkBlock(t *testing.T, b *ledger.Block, o *forge.Oracle, made forge.Block) {
	t.Helper()
	if err := b.Walk(made.Raw); err != nil {
		t.Fatalf("%v %v: %v", made.At(), made.Era, err)
	}
	if b.Link != made.Link {
		t.Fatalf("link\n got %+v\nwant %+v", b.Link, made.Link)
	}
	want, err := o.Effects(made.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var got chain.Effects
	b.Effects(&got)
	if len(got.Txs) != len(want.Txs) {
		t.Fatalf("%v: %d transactions, want %d", made.At(), len(got.Txs), len(want.Txs))
	}
	for i, tx := range want.Txs {
		if got.Txs[i].ID != tx.ID || got.Txs[i].Valid != tx.Valid {
			t.Fatalf("%v transaction %d: %v %v, want %v %v", made.At(), i, got.Txs[i].ID, got.Txs[i].Valid, tx.ID, tx.Valid)
		}
		spent, created := got.Tx(i)
		var refs, wantRefs []chain.TxIn
		for _, s := range spent {
			refs = append(refs, s.Ref)
		}
		for _, s := range tx.Spent {
			wantRefs = append(wantRefs, s.Ref)
		}
		if !slices.Equal(refs, wantRefs) {
			t.Fatalf("%v transaction %v spends\n%v, want\n%v", made.At(), tx.ID, refs, wantRefs)
		}
		if len(created) != len(tx.Created) {
			t.Fatalf("%v transaction %v makes %d outputs, want %d", made.At(), tx.ID, len(created), len(tx.Created))
		}
		for j, c := range created {
			w := tx.Created[j]
			out, err := ledger.DecodeOutput(c.Era, c.Raw)
			if err != nil {
				t.Fatalf("%v: %x: %v", c.Ref, c.Raw, err)
			}
			line := string(canon.AppendUTxO(nil, c.Ref, &out))
			if w.Line() != string(bytes.TrimSuffix([]byte(line), []byte("\n"))) {
				t.Fatalf("%v (%v)\n got %s\nwant %s\n raw %x", made.At(), made.Era, line, w.Line(), c.Raw)
			}
			if w.Raw != nil && !bytes.Equal(w.Raw, c.Raw) || c.Height != w.Height || c.Slot != w.Slot || c.TxIndex != w.TxIndex || c.Era != w.Era {
				t.Fatalf("%v: output is not where or what the oracle says", c.Ref)
			}
		}
		if d := cmp.Diff(tx.Mint, b.Mint(i), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%v mint: %s", tx.ID, d)
		}
		if d := cmp.Diff(tx.Labels, b.Labels(i), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%v labels: %s", tx.ID, d)
		}
		if d := cmp.Diff(sortedScripts(tx.Scripts), sortedScripts(b.Scripts(i)), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%v scripts: %s", tx.ID, d)
		}
		refIns := slices.Clone(b.Txs[i].Reference)
		slices.SortFunc(refIns, chain.TxIn.Compare)
		if !slices.Equal(refIns, tx.RefIns) {
			t.Fatalf("%v reference inputs %v, want %v", tx.ID, refIns, tx.RefIns)
		}
		if made.Era > chain.Byron && b.Txs[i].Fee != tx.Fee {
			t.Fatalf("%v fee %d, want %d", tx.ID, b.Txs[i].Fee, tx.Fee)
		}
	}
}

func sortedScripts(s []chain.Hash28) []chain.Hash28 {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b chain.Hash28) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(s)
}

func TestLedgerAcceptsEveryBlock(t *testing.T) {
	for _, opts := range []forge.Options{
		{Seed: 1, K: 43, EpochBlocks: 40},
		{Seed: 2, EpochBlocks: 100},
		{Seed: 3, Plain: true},
		{Seed: 4, Eras: []forge.EraSpan{{Era: chain.Shelley, Epochs: 1}, {Era: chain.Allegra, Epochs: 1}, {Era: chain.Alonzo, Epochs: 2}, {Era: chain.Conway}}},
		{Seed: 5, Eras: []forge.EraSpan{{Era: chain.Byron, Epochs: 4}, {Era: chain.Babbage}}},
		{Seed: 6, Eras: []forge.EraSpan{{Era: chain.Conway, Epochs: 1}, {Era: chain.Dijkstra}}},
		{Seed: 7, Shape: forge.MainnetLike},
	} {
		f, err := forge.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		b := &ledger.Block{ByronEpochSlots: f.ByronEpochSlots()}
		n := 800
		if opts.Shape == forge.MainnetLike {
			n = 50
		}
		for i := range n {
			if i%20 == 19 { // a fork: other blocks, many of the same transactions
				if err := f.Rewind(i % 7); err != nil {
					t.Fatal(err)
				}
			}
			made, err := f.Next()
			if err != nil {
				t.Fatal(err)
			}
			checkBlock(t, b, f.Oracle(), made)
		}
	}
}

func TestGenesisFilesAgree(t *testing.T) {
	for _, opts := range []forge.Options{
		{Seed: 1},
		{Seed: 4, Magic: 7, Eras: []forge.EraSpan{{Era: chain.Shelley, Epochs: 1}, {Era: chain.Conway}}},
		{Seed: 5, Shape: forge.MainnetLike},
	} {
		f, err := forge.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := f.Genesis().WriteConfig(dir); err != nil {
			t.Fatal(err)
		}
		g, err := ledger.LoadGenesis(dir + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		if g.Magic != f.Options().Magic || g.K != uint64(f.Options().K) || g.ByronEpochSlots != f.ByronEpochSlots() {
			t.Errorf("%+v", g)
		}
		var got, want []string
		for _, o := range g.Outputs {
			out, err := ledger.DecodeOutput(o.Era, o.Raw)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(bytes.TrimSuffix(canon.AppendUTxO(nil, o.Ref, &out), []byte("\n"))))
		}
		for _, o := range f.Oracle().Genesis() {
			want = append(want, o.Line())
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if g.ByronHash != f.Genesis().Hash && !f.Genesis().Hash.IsZero() {
			t.Errorf("Byron genesis hash %v, want %v", f.Genesis().Hash, g.ByronHash)
		}
	}
}
