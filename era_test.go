package ourotail_test

import (
	"errors"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// TestBeforeEra: the block below the first one of each era, by the chain's own
// links; an era that the chain passed over, or has not reached, has none.
func TestBeforeEra(t *testing.T) {
	eras := []forge.EraSpan{{Era: chain.Byron, Epochs: 2}, {Era: chain.Shelley, Epochs: 1}, {Era: chain.Allegra, Epochs: 1}, {Era: chain.Mary, Epochs: 1}, {Era: chain.Alonzo, Epochs: 2}, {Era: chain.Babbage}}
	s := serve(t, forge.Options{Seed: 3, EpochBlocks: 8, K: 50, Eras: eras}, 150)
	c, cfg := s.chain, s.cfg
	cfg.ExitAtTip = true
	f, err := ourotail.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.BeforeEra(chain.Byron); !errors.Is(err, ourotail.ErrNoEra) {
		t.Errorf("before the first block: %v", err)
	}
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	path, err := c.Oracle().Path(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	want := map[chain.Era]chain.At{}
	below := chain.Origin
	for _, l := range path {
		if l.Boundary {
			continue
		}
		if _, ok := want[l.Era]; !ok {
			want[l.Era] = below
		}
		below = l.At()
	}
	if len(want) != len(eras) {
		t.Fatalf("the chain has %d eras", len(want))
	}
	for e := chain.Byron; e <= chain.Dijkstra; e++ {
		at, err := f.BeforeEra(e)
		if w, ok := want[e]; ok && (err != nil || at != w) || !ok && !errors.Is(err, ourotail.ErrNoEra) {
			t.Errorf("%v: %v, want %v: %v", e, at, w, err)
		}
	}
}
