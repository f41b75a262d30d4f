package ledger

import (
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// TestNoAllocations: once its memory has grown, a Block walks any block without
// allocating, sorting and checking for repeats included.
func TestNoAllocations(t *testing.T) {
	unsorted := policies(2, names("b", 1, "a", 2), 1, names("z", 4, "y", 1))
	outputs := arr(pay(1, 1), arr(enterprise(1), arr(num(1), unsorted)))
	blocks := [][]byte{
		byronBlock([][]byte{byronTx(byronIn(2, 0), byronIn(1, 0)), byronTx(byronIn(1, 1)), byronTx(byronIn(1, 2))}, 0, 0),
		oneTx(chain.Mary, body(arr(in(2, 0), in(1, 0)), outputs)),
		oneTx(chain.Babbage, body(arr(in(2, 0), in(1, 0), in(1, 0)), outputs, num(99), deep(15, true))),
		made{era: chain.Conway, bodies: arr(body(arr(in(2, 0), in(1, 0)), outputs, num(keyMint), unsorted, num(keyCollateral), arr(in(4, 0), in(3, 0)), num(keyCollateralReturn), pay(1, 1))), failed: arr(num(0))}.raw(),
		made{era: chain.Dijkstra}.whole(arr(arr(arr(body(arr(in(1, 0)), outputs, num(keySubTransactions), arr(subTx(arr(in(6, 0), in(5, 0)), outputs))), obj(), null, no)), null, null)),
	}
	var b Block
	var e chain.Effects
	got := testing.AllocsPerRun(50, func() {
		for _, raw := range blocks {
			if err := b.Walk(raw); err != nil {
				t.Fatal(err)
			}
			b.Effects(&e)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
