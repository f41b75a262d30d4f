package forge

import (
	"testing"

	"github.com/ourotail/ourotail/chain"
)

func TestSmoke(t *testing.T) {
	f, err := New(Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	eras := map[chain.Era]int{}
	txs := 0
	for range 1000 {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		n += len(b.Raw)
		eras[b.Era]++
		e, _ := f.Oracle().Effects(b.Point.Hash)
		txs += len(e.Txs)
	}
	t.Log(n, eras, txs, len(f.live.all))
	s, _ := f.Oracle().Summary(f.Head().Point.Hash)
	t.Logf("%+v", s)
}
