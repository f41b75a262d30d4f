package store

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

// TestRecent: what it returns is always the last value written under a live
// reference; what it holds stays within its size; the newest is always there.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 600).Draw(t, "size")
		r := newRecent(size)
		live := map[byte][]byte{}
		key := func(kind byte, n byte) []byte { return appendRefKey(nil, kind, chain.TxIn{Index: uint32(n)}) }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				n := rapid.Byte().Draw(t, "n") % 16
				v := rapid.SliceOfN(rapid.Byte(), 1, 150).Draw(t, "value")
				r.apply([]op{{key: key(keyOutput, n), val: v}})
				live[n] = v
				if got := r.get(chain.TxIn{Index: uint32(n)}); len(v) <= size/2 && !bytes.Equal(got, v) {
					t.Fatalf("just written %x, got %x", v, got)
				}
			},
			"remove": func(t *rapid.T) {
				n := rapid.Byte().Draw(t, "n") % 16
				if rapid.Bool().Draw(t, "mark") {
					r.apply([]op{{key: key(keyMark, n), val: []byte{1}}})
				} else {
					r.apply([]op{{key: key(keyOutput, n), del: true}, {key: key(keyMark, n), del: true}})
				}
				delete(live, n)
			},
			"": func(t *rapid.T) {
				used := 0
				for n := range byte(16) {
					got := r.get(chain.TxIn{Index: uint32(n)})
					if got != nil && !bytes.Equal(got, live[n]) {
						t.Fatalf("output %d is %x, want %x", n, got, live[n])
					}
					used += len(got)
				}
				if used > size || int(r.count) > len(r.queue) || len(r.index) > int(r.count) {
					t.Fatalf("%d bytes of %d, %d values of %d, %d references", used, size, r.count, len(r.queue), len(r.index))
				}
			},
		})
	})
}

// TestOutputsOutliveTheCommit: what Outputs handed out is still right after the
// commit that spends it, while the batch is being published.
func TestOutputsOutliveTheCommit(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	defer s.Close()
	w := newWorld(10, false, 40)
	if err := s.Genesis(w.genesis); err != nil {
		t.Fatal(err)
	}
	e := w.plain()
	want := make([]*chain.Output, len(w.genesis))
	for _, o := range w.genesis {
		e.Spent = append(e.Spent, chain.Output{Ref: o.Ref})
	}
	for i := range e.Spent {
		want[i] = &e.Spent[i]
	}
	if missing, err := s.Outputs(want); missing != -1 || err != nil {
		t.Fatal(missing, err)
	}
	id := w.hash()
	for i := range 200 { // more than the ring holds
		e.Created = append(e.Created, w.output(chain.TxIn{ID: id, Index: uint32(i)}, e.Link, 0, 99<<16))
	}
	e.Txs = []chain.TxEffects{{ID: id, Valid: true, Spent: len(e.Spent), Created: len(e.Created)}}
	commitBoth(t, s, w, e)
	for i, o := range w.genesis {
		if !sameOutput(*want[i], o) {
			t.Fatalf("output %d became %+v, want %+v", i, *want[i], o)
		}
	}
}
