package store

import (
	"context"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

func TestBasic(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Magic: 2, K: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Genesis(nil); err != nil {
		t.Fatal(err)
	}
	b := &chain.Effects{Link: chain.Link{Point: chain.Point{Slot: 5, Hash: chain.Hash{1}}, Era: chain.Byron}, Journal: true, Raw: []byte("raw")}
	ref := chain.TxIn{ID: chain.TxID{9}, Index: 0}
	b.Txs = []chain.TxEffects{{ID: chain.TxID{9}, Valid: true, Created: 1}}
	b.Created = []chain.Output{{Ref: ref, Era: chain.Byron, Slot: 5, Lovelace: 77, Raw: []byte("out")}}
	if err := s.Commit([]*chain.Effects{b}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(Options{Dir: dir, Magic: 2, K: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Logf("%+v", s.State())
	w := chain.Output{Ref: ref}
	if m, err := s.Outputs([]*chain.Output{&w}); m != -1 || err != nil || string(w.Raw) != "out" {
		t.Fatal(m, err, w)
	}
	var e chain.Effects
	if err := s.Effects(b.Position(), &e); err != nil || string(e.Raw) != "raw" || string(e.Created[0].Raw) != "out" {
		t.Fatal(err, e)
	}
	if err := s.Rollback(context.Background(), chain.Point{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", s.State())
}
