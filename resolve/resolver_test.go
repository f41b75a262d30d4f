package resolve

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

// set is a source over a plain map.
type set map[chain.TxIn]chain.Output

func (s set) Outputs(want []*chain.Output) (int, error) {
	for i, w := range want {
		o, ok := s[w.Ref]
		if !ok {
			return i, nil
		}
		*w = o
	}
	return -1, nil
}

func id(n int) (h chain.Hash) {
	binary.BigEndian.PutUint64(h[:], uint64(n))
	return h
}

// block builds effects from (transaction, spent references, number of outputs).
type tx struct {
	id     int
	spends []chain.TxIn
	makes  int
}

func block(height int, txs ...tx) *chain.Effects {
	e := &chain.Effects{Link: chain.Link{Height: chain.Height(height), Point: chain.Point{Slot: chain.Slot(height), Hash: id(1000 + height)}}}
	for i, t := range txs {
		for _, r := range t.spends {
			e.Spent = append(e.Spent, chain.Output{Ref: r})
		}
		for ix := range t.makes {
			ref := chain.TxIn{ID: id(t.id), Index: uint32(ix)}
			e.Created = append(e.Created, chain.Output{Ref: ref, Height: e.Height, TxIndex: uint32(i), Lovelace: uint64(100*t.id + ix), Raw: []byte{byte(t.id), byte(ix)}})
		}
		e.Txs = append(e.Txs, chain.TxEffects{ID: id(t.id), Valid: true, Spent: len(e.Spent), Created: len(e.Created)})
	}
	return e
}

func ref(tx, ix int) chain.TxIn { return chain.TxIn{ID: id(tx), Index: uint32(ix)} }

func TestEveryInputResolvesOrIsNamed(t *testing.T) {
	old := set{ref(1, 0): {Ref: ref(1, 0), Height: 3, Lovelace: 77}}
	for name, c := range map[string]struct {
		blocks []*chain.Effects
		want   error
		input  chain.TxIn
	}{
		"from the store":            {[]*chain.Effects{block(5, tx{2, []chain.TxIn{ref(1, 0)}, 1})}, nil, chain.TxIn{}},
		"a chain inside one block":  {[]*chain.Effects{block(5, tx{2, []chain.TxIn{ref(1, 0)}, 1}, tx{3, []chain.TxIn{ref(2, 0)}, 1}, tx{4, []chain.TxIn{ref(3, 0)}, 1})}, nil, chain.TxIn{}},
		"across blocks of a batch":  {[]*chain.Effects{block(5, tx{2, nil, 2}), block(6, tx{3, []chain.TxIn{ref(2, 1)}, 0})}, nil, chain.TxIn{}},
		"an unknown output":         {[]*chain.Effects{block(5, tx{2, []chain.TxIn{ref(9, 9)}, 0})}, ErrUnknownOutput, ref(9, 9)},
		"made later in the block":   {[]*chain.Effects{block(5, tx{2, []chain.TxIn{ref(3, 0)}, 0}, tx{3, nil, 1})}, ErrUnknownOutput, ref(3, 0)},
		"spent twice, old":          {[]*chain.Effects{block(5, tx{2, []chain.TxIn{ref(1, 0)}, 0}), block(6, tx{3, []chain.TxIn{ref(1, 0)}, 0})}, ErrSpentTwice, ref(1, 0)},
		"spent twice, in the batch": {[]*chain.Effects{block(5, tx{2, nil, 1}, tx{3, []chain.TxIn{ref(2, 0)}, 0}), block(6, tx{4, []chain.TxIn{ref(2, 0)}, 0})}, ErrSpentTwice, ref(2, 0)},
		"made twice":                {[]*chain.Effects{block(5, tx{2, nil, 1}), block(6, tx{2, nil, 1})}, ErrMadeTwice, ref(2, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(old)
			var err error
			for _, b := range c.blocks {
				if err = r.Block(b); err != nil {
					break
				}
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			var in *InputError
			if c.want != nil {
				last := c.blocks[len(c.blocks)-1]
				if !errors.As(err, &in) || in.Input != c.input || in.Block != last.At() || in.Tx == (chain.TxID{}) {
					t.Errorf("the error names %+v", in)
				}
			}
		})
	}
}

// TestResolverModel runs random batches with cuts and commits against a plain
// set: every spend carries what was made, cut blocks leave no trace, and the
// pairs marked InBatch are exactly those made and spent in the open batch.
func TestResolverModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		committed := set{ref(0, 0): {Ref: ref(0, 0), Lovelace: 1}}
		r := New(committed)
		live := []set{maps.Clone(committed)} // after each block of the batch
		var open []*chain.Effects
		next, height := 1, 0
		t.Repeat(map[string]func(*rapid.T){
			"block": func(t *rapid.T) {
				now := maps.Clone(live[len(live)-1])
				var txs []tx
				made := map[chain.TxIn]chain.Output{}
				for range rapid.IntRange(0, 4).Draw(t, "txs") {
					x := tx{id: next, makes: rapid.IntRange(0, 3).Draw(t, "makes")}
					next++
					refs := slices.SortedFunc(maps.Keys(now), chain.TxIn.Compare)
					for _, ref := range refs {
						if rapid.IntRange(0, 3).Draw(t, "spend") == 0 {
							x.spends = append(x.spends, ref)
							delete(now, ref)
						}
					}
					for ix := range x.makes {
						o := chain.Output{Ref: ref(x.id, ix), Height: chain.Height(height), Lovelace: uint64(100*x.id + ix)}
						now[o.Ref], made[o.Ref] = o, o
					}
					txs = append(txs, x)
				}
				bad := rapid.IntRange(0, 5).Draw(t, "bad") == 0
				if bad {
					txs = append(txs, tx{id: next, spends: []chain.TxIn{ref(next+1000000, 0)}, makes: 1})
					next++
				}
				b := block(height, txs...)
				err := r.Block(b)
				if bad != (err != nil) {
					t.Fatalf("bad %v: %v", bad, err)
				}
				if bad {
					return
				}
				height++
				before := live[len(live)-1]
				for _, s := range b.Spent {
					want, ok := before[s.Ref]
					if !ok {
						want = made[s.Ref]
					}
					if s.Lovelace != want.Lovelace {
						t.Fatalf("%s carries %d, want %d", s.Ref, s.Lovelace, want.Lovelace)
					}
				}
				open, live = append(open, b), append(live, now)
			},
			"cut": func(*rapid.T) {
				if len(open) == 0 {
					return
				}
				r.Cut(open[len(open)-1])
				open, live = open[:len(open)-1], live[:len(live)-1]
			},
			"commit": func(*rapid.T) {
				clear(committed)
				maps.Copy(committed, live[len(live)-1])
				r.Committed()
				open, live = nil, []set{maps.Clone(committed)}
			},
			"": func(t *rapid.T) {
				made, spent := map[chain.TxIn]bool{}, map[chain.TxIn]bool{}
				for _, b := range open {
					for _, o := range b.Created {
						made[o.Ref] = o.InBatch
					}
					for _, o := range b.Spent {
						if _, ok := made[o.Ref]; ok != o.InBatch {
							t.Fatalf("spend of %s: in batch %v", o.Ref, o.InBatch)
						}
						spent[o.Ref] = true
					}
				}
				for ref, in := range made {
					if in != spent[ref] {
						t.Fatalf("%s: in batch %v, spent %v", ref, in, spent[ref])
					}
				}
			},
		})
	})
}
