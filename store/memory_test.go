package store

import (
	"runtime"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// TestMemoryHasACeiling: however much is written, what the store holds in memory
// stays below four times the least that it can be given. Most of it is what Badger
// keeps of the buffers that it builds tables in; it does not grow with the set.
func TestMemoryHasACeiling(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 90 MB")
	}
	s := mustOpen(t, Options{Dir: t.TempDir(), Magic: 1, K: 10, Memory: MinMemory, Terms: testTerms, noSync: true})
	defer s.Close()
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := live(), uint64(0)
	w := newWorld(10, false, 0)
	link := originLink()
	for n := range 48 {
		var blocks []*chain.Effects
		for range 4 {
			e := &chain.Effects{Link: chain.Link{Point: chain.Point{Slot: link.Point.Slot + 1, Hash: w.hash()}, Parent: link.Point.Hash, Height: link.Height + 1, Era: chain.Conway}}
			id := w.hash()
			for i := range 1000 {
				o := w.output(chain.TxIn{ID: id, Index: uint32(i)}, e.Link, 0, uint64(n*i))
				o.Raw = append(o.Raw, make([]byte, 480-len(o.Raw))...)
				e.Created = append(e.Created, o)
			}
			e.Txs = []chain.TxEffects{{ID: id, Valid: true, Created: 1000}}
			blocks, link = append(blocks, e), e.Link
		}
		if err := s.Commit(blocks); err != nil {
			t.Fatal(err)
		}
		if n%8 == 7 {
			clear(blocks)
			most = max(most, live())
		}
	}
	t.Logf("%d MB at most, %d before", most>>20, before>>20)
	if most-min(most, before) > 4*MinMemory {
		t.Errorf("%d MB are in use, %d were given", (most-before)>>20, MinMemory>>20)
	}
}
