package hub

import (
	"context"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

func allKinds() map[Kind]bool {
	return map[Kind]bool{UTxOs: true, Txs: true, Blocks: true, Tips: true, Params: true, Statuses: true}
}

func pt(name byte, h chain.Height) chain.At {
	return chain.At{Point: chain.Point{Slot: chain.Slot(h * 10), Hash: chain.Hash{name, byte(h), 1}}, Height: h}
}

func out(id byte, ix uint32, addr string, at chain.At) *chain.UTxO {
	return &chain.UTxO{Ref: chain.TxIn{ID: chain.TxID{id}, Index: ix}, Out: chain.TxOut{Address: []byte(addr)}, At: at}
}

func TestSmoke(t *testing.T) {
	h := New(Config{Capabilities: Capabilities{Kinds: allKinds(), Indexed: ^query.Kinds(0), Scan: true, Horizon: 3, MaxConfirmations: 5, Idle: true, Replay: true}})
	s, err := h.SubscribeUTxO(query.Address([]byte("a")), Options{Seed: SeedNow, Idle: true})
	if err != nil {
		t.Fatal(err)
	}
	b0 := pt('b', 0)
	u := out(1, 0, "a", b0)
	must(t, h.ApplyBlock(&chain.AppliedBlock{At: b0, Coverage: chain.Complete, Txs: []chain.AppliedTx{{ID: u.Ref.ID, Valid: true, Created: []chain.Effect{{UTxO: u}}}}}))
	must(t, h.ApplyBlock(&chain.AppliedBlock{At: pt('b', 1), Coverage: chain.Complete}))
	must(t, h.RollbackTo(b0))
	for _, want := range []chain.EventKind{chain.Created, chain.Idle, chain.RolledBack} {
		e, err := s.Next(context.Background())
		if err != nil || e.Kind != want {
			t.Fatalf("%v %v, want %v", e, err, want)
		}
	}
	s.Cancel()
	if h.Subscribers() != 0 {
		t.Fatal("still registered")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
