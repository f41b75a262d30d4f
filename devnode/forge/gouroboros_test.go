package forge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gledger "github.com/blinklabs-io/gouroboros/ledger"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// The gouroboros decoder, written by others, reads plain chains and finds in
// them what the oracle says. Of the others it refuses only what it is known to
// refuse: repeated metadata keys and trailing bytes of addresses.
func TestGouroborosDecodes(t *testing.T) {
	for _, o := range []forge.Options{{Seed: 1}, {Seed: 1, Plain: true}, {Seed: 2, Plain: true, EpochBlocks: 25}, {Seed: 1, Shape: forge.MainnetLike},
		{Seed: 6, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway, Epochs: 1}, {Era: chain.Dijkstra}}}} {
		n := 1000
		if o.Shape == forge.MainnetLike {
			n = 100
		}
		f, err := forge.New(o)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for range n {
			b, err := f.Next()
			if err != nil {
				t.Fatal(err)
			}
			block, err := gledger.NewBlockFromCbor(uint(b.Raw[1]), b.Raw[2:])
			if err != nil {
				known := strings.Contains(err.Error(), "duplicate key in metadata map") || strings.Contains(err.Error(), "trailing byte")
				if f.Options().Plain || o.Shape == forge.MainnetLike || !known {
					t.Fatalf("%v %v: %v", b.At(), b.Era, err)
				}
				refused++
				continue
			}
			if err := agrees(block, f, b); err != nil {
				t.Fatalf("%v %v: %v", b.At(), b.Era, err)
			}
		}
		t.Logf("%v: %d blocks, %d refused", o, n, refused)
	}
}

func agrees(block gledger.Block, f *forge.Forge, b forge.Block) error {
	if block.Hash().String() != b.Point.Hash.String() || block.SlotNumber() != uint64(b.Point.Slot) && b.Era != chain.Byron {
		return fmt.Errorf("hash %v at slot %d", block.Hash(), block.SlotNumber())
	}
	e, err := f.Oracle().Effects(b.Point.Hash)
	if err != nil {
		return err
	}
	txs := block.Transactions()
	if len(txs) != len(e.Txs) {
		return fmt.Errorf("%d transactions, want %d", len(txs), len(e.Txs))
	}
	for i, tx := range txs {
		want := e.Txs[i]
		if tx.Hash().String() != want.ID.String() || tx.IsValid() != want.Valid {
			return fmt.Errorf("transaction %v valid %v, want %v %v", tx.Hash(), tx.IsValid(), want.ID, want.Valid)
		}
		var refs []string
		for _, in := range tx.Consumed() {
			refs = append(refs, in.Id().String()+"#"+fmt.Sprint(in.Index()))
		}
		slices.Sort(refs)
		refs = slices.Compact(refs)
		var wantRefs []string
		for _, o := range want.Spent {
			wantRefs = append(wantRefs, o.Ref.String())
		}
		slices.Sort(wantRefs)
		if !slices.Equal(refs, wantRefs) {
			return fmt.Errorf("%v spends %v, want %v", want.ID, refs, wantRefs)
		}
		made := tx.Produced()
		if len(made) != len(want.Created) {
			return fmt.Errorf("%v makes %d outputs, want %d", want.ID, len(made), len(want.Created))
		}
		for j, u := range made {
			w := want.Created[j]
			if u.Id.Index() != w.Ref.Index || u.Output.Amount().Uint64() != w.Lovelace {
				return fmt.Errorf("%v#%d holds %v, want %v with %d", want.ID, u.Id.Index(), u.Output.Amount(), w.Ref, w.Lovelace)
			}
		}
	}
	return nil
}
