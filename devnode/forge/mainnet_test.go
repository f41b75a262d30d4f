package forge

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestMainnetLike(t *testing.T) {
	n := 1500
	if testing.Short() {
		n = 300
	}
	if v, err := strconv.Atoi(os.Getenv("OUROTAIL_MAINNET_BLOCKS")); err == nil {
		n = v // a chain long enough for the older quantiles takes a minute
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
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		t.Logf("%s: %.2f", what, got)
		if got < want-tolerance || got > want+tolerance {
			t.Errorf("%s: %.2f, want %.2f", what, got, want)
		}
	}
	near("bytes a block", float64(size)/m, 32000, 3000)
	near("transactions a block", float64(txs)/m, mainnetTxs, 1)
	near("inputs a block", float64(ins)/m, mainnetInputs, 3)
	near("outputs a block", float64(outs)/m, mainnetOutputs, 3)
	near("assets an output", float64(assets)/float64(outs), 0.7, 0.3)
	// In a chain this short the older spends fall on what there is.
	if n >= 1000 {
		near("spent within 10 blocks", within(10), 0.49, 0.02)
		near("spent within 100 blocks", within(100), 0.78, 0.04)
	}
	if n >= 10_000 {
		near("spent within 1,000 blocks", within(1000), 0.87, 0.02)
		near("spent within 10,000 blocks", within(10000), 0.985, 0.02)
	}
	t.Logf("%d live outputs, %v", len(f.live.all), time.Since(start))
}
