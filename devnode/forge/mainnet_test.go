package forge

import (
	"slices"
	"testing"
	"time"
)

func TestMainnetLike(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 300
	}
	f, err := New(Options{Seed: 3, Shape: MainnetLike, Lean: true, K: 2160})
	if err != nil {
		t.Fatal(err)
	}
	var size, txs, ins, outs, assets int
	var spent []int
	start := time.Now()
	for i := range n {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if i < n/2 {
			continue
		}
		size += len(b.Raw)
		for _, tx := range f.head.Txs {
			txs++
			ins += len(tx.Spent)
			outs += len(tx.Created)
			for _, o := range tx.Created {
				assets += len(o.Assets)
			}
			for _, o := range tx.Spent {
				spent = append(spent, int(b.Height-o.Height))
			}
		}
	}
	slices.Sort(spent)
	within := func(age int) float64 {
		i, _ := slices.BinarySearch(spent, age)
		return float64(i) / float64(len(spent))
	}
	m := float64(n - n/2)
	t.Logf("%v; a block: %.0f bytes, %.1f transactions, %.1f inputs, %.1f outputs, %.2f assets an output; live %d; spent within 10: %.2f, 100: %.2f, 1000: %.2f",
		time.Since(start), float64(size)/m, float64(txs)/m, float64(ins)/m, float64(outs)/m, float64(assets)/float64(outs), len(f.live.all), within(10), within(100), within(1000))
}
