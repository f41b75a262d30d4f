package hub

import (
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// A block whose contents nobody needs is passed by name; who comes later is given
// it from where it is kept.
func TestPassedBlocksAreReadWhenNeeded(t *testing.T) {
	kept := &keptContents{blocks: map[chain.At]*chain.AppliedBlock{}}
	whole := newFx(t) // is given every block
	thin := New(Config{Capabilities: whole.cfg.Capabilities, Contents: kept, Genesis: whole.cfg.Genesis})
	for i := range 6 {
		at := whole.block([]string{"a: > a", "b: > b", "c: > a", "d: > a", "e: > b", "f: > a"}[i])
		kept.blocks[at] = whole.win.at(at.Height).b
		ok, flush, err := thin.Pass(at, nil)
		if flush(); !ok || err != nil {
			t.Fatalf("%v: passed %v, %v", at, ok, err)
		}
	}
	if kept.reads != 0 {
		t.Fatalf("%d blocks read for nobody", kept.reads)
	}
	after := whole.win.at(1).at
	sub, err := thin.SubscribeUTxO(query.Everything(), Options{Start: After, After: chain.Cursor{At: after, Place: chain.WholeBlock}, Bound: Unbounded})
	must(t, err)
	for _, want := range []string{"c", "d", "e", "f"} {
		e, ok, err := sub.Poll()
		if !ok || err != nil || e.Tx != whole.txid(want) {
			t.Fatalf("%+v %v %v, want what %s made", e, ok, err, want)
		}
	}
	tip := whole.win.at(5).at
	if ok, _, err := thin.Pass(chain.At{Point: chain.Point{Slot: 999}, Height: 6}, nil); ok || err != nil || thin.Tip() != tip {
		t.Errorf("passed by a subscriber: %v %v", ok, err)
	}
	sub.Cancel()
	if _, _, err := thin.Pass(chain.At{Point: chain.Point{Slot: 999}, Height: 9}, nil); !errors.Is(err, ErrHeight) {
		t.Errorf("a height that does not come next: %v", err)
	}
	if ok, _, err := whole.Pass(chain.At{Point: chain.Point{Slot: 999}, Height: 6}, nil); ok || err != nil {
		t.Errorf("passed with nowhere to read it from: %v %v", ok, err)
	}
}

type keptContents struct {
	blocks map[chain.At]*chain.AppliedBlock
	reads  int
}

// Block implements Contents.
func (k *keptContents) Block(at chain.At) (*chain.AppliedBlock, error) {
	k.reads++
	if b := k.blocks[at]; b != nil {
		return b, nil
	}
	return nil, errors.New("no such block")
}
