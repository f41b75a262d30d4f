package forge_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
)

// TestOrders: what is ordered is in the block, byte for byte as a decoder reads
// it, is spent by nobody else, and does not come again after a rewind.
func TestOrders(t *testing.T) {
	f, err := forge.New(forge.Options{Seed: 3, K: 20, EpochBlocks: 10, Eras: []forge.EraSpan{{Era: chain.Conway}}})
	if err != nil {
		t.Fatal(err)
	}
	next := func(orders ...forge.Order) (forge.Block, []chain.TxID) {
		t.Helper()
		b, ids, err := f.NextWith(orders...)
		if err != nil {
			t.Fatal(err)
		}
		return b, ids
	}
	addr := append([]byte{0x60}, make([]byte, 28)...)
	b, ids := next(forge.Order{Pay: []forge.Payment{{addr, 2_000_000}, {addr, 3_000_000}}}, forge.Order{Pay: []forge.Payment{{addr, 4_000_000}}})
	var w ledger.Block
	if err := w.Walk(b.Raw); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 2 || w.Txs[0].ID != ids[0] || w.Txs[1].ID != ids[1] {
		t.Fatalf("ordered %v", ids)
	}
	first, second := chain.TxIn{ID: ids[0]}, chain.TxIn{ID: ids[0], Index: 1}
	for range 50 {
		next()
	}
	unspent := func(refs ...chain.TxIn) bool {
		t.Helper()
		got, err := f.Oracle().Outputs(f.Head().Point.Hash, refs)
		if err != nil {
			t.Fatal(err)
		}
		return len(got) == len(refs)
	}
	if !unspent(first, second, chain.TxIn{ID: ids[1]}) {
		t.Fatal("an ordered output was spent by nobody's order")
	}
	_, failed := next(forge.Order{Spend: []chain.TxIn{first}, Pay: []forge.Payment{{addr, 1}, {addr, 1_500_000}}, Fails: true})
	e, err := f.Oracle().Effects(f.Head().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(e.Txs, func(x forge.Tx) bool { return x.ID == failed[0] })
	if tx := e.Txs[i]; tx.Valid || len(tx.Spent) != 1 || tx.Spent[0].Ref != first || len(tx.Created) != 1 || tx.Created[0].Ref.Index != 1 {
		t.Fatalf("%+v", tx)
	}
	head := f.Head()
	for _, bad := range []forge.Order{{Spend: []chain.TxIn{first}}, {Pay: []forge.Payment{{addr, 1 << 62}}}, {Spend: []chain.TxIn{second}, Fails: true}} {
		if _, _, err := f.NextWith(bad); !errors.Is(err, forge.ErrOrder) || f.Head() != head {
			t.Errorf("%+v: %v, head %v", bad, err, f.Head())
		}
	}
	if err := f.Rewind(1); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		next()
	}
	if !unspent(first) || unspent(chain.TxIn{ID: failed[0], Index: 1}) {
		t.Fatal("an ordered transaction came again")
	}
}
