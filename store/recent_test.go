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
		r := newRecent(4 * tableChunk)
		live := map[byte][]byte{}
		key := func(kind byte, n byte) []byte { return appendRefKey(nil, kind, chain.TxIn{Index: uint32(n)}) }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				n := rapid.Byte().Draw(t, "n") % 16
				v := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, rapid.IntRange(1, recentMax+1).Draw(t, "length"))
				r.apply([]op{{key: key(keyOutput, n), val: v}})
				live[n] = v
				if got := r.get(chain.TxIn{Index: uint32(n)}); len(v) <= recentMax && !bytes.Equal(got, v) {
					t.Fatalf("just written %d bytes, got %d", len(v), len(got))
				}
			},
			"fill": func(t *rapid.T) { // others, until the generations have changed
				for i := range rapid.IntRange(1, 300).Draw(t, "values") {
					r.apply([]op{{key: key(keyOutput, byte(16+i%200)), val: make([]byte, recentMax)}})
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
				for n := range byte(16) {
					got := r.get(chain.TxIn{Index: uint32(n)})
					if got != nil && !bytes.Equal(got, live[n]) {
						t.Fatalf("output %d has %d bytes, want %d", n, len(got), len(live[n]))
					}
				}
				if used := r.young.size() + r.old.size(); used > 6*tableChunk {
					t.Fatalf("%d bytes of %d", used, 4*tableChunk)
				}
			},
		})
	})
}

// TestRefTable: a table under puts, removals, compactions and clearings is a map.
func TestRefTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table refTable
		want := map[chain.TxIn]string{}
		ref := func(t *rapid.T) chain.TxIn {
			return chain.TxIn{ID: chain.TxID{rapid.Byte().Draw(t, "id")}, Index: uint32(rapid.IntRange(0, 20).Draw(t, "index"))}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r, v := ref(t), make([]byte, rapid.IntRange(0, 300).Draw(t, "length"))
				if rapid.IntRange(0, 300).Draw(t, "huge") == 0 {
					v = make([]byte, tableChunk*rapid.IntRange(1, 3).Draw(t, "chunks"))
				}
				for i := range v {
					v[i] = byte(len(want) + i)
				}
				table.put(r, len(v)+rapid.IntRange(0, 40).Draw(t, "more"), func(b []byte) []byte { return append(b, v...) })
				want[r] = string(v)
			},
			"put many": func(t *rapid.T) {
				for i := range rapid.IntRange(1, 500).Draw(t, "n") {
					r := chain.TxIn{Index: uint32(100 + i)}
					table.put(r, 4, func(b []byte) []byte { return append(b, byte(i), byte(i>>8)) })
					want[r] = string([]byte{byte(i), byte(i >> 8)})
				}
			},
			"remove": func(t *rapid.T) {
				r := ref(t)
				_, there := want[r]
				if table.remove(r) != there {
					t.Fatalf("removing %v, which is there: %v", r, there)
				}
				delete(want, r)
			},
			"compact": func(*rapid.T) { table.compact() },
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					table.clear()
					clear(want)
				}
			},
			"": func(t *rapid.T) {
				live := 0
				for r, v := range want {
					if got := table.get(r); got == nil || string(got) != v {
						t.Fatalf("%v has %d bytes, want %d", r, len(got), len(v))
					}
					live += recordHead + len(v)
				}
				n := 0
				for range table.each {
					n++
				}
				if n != len(want) || table.used != n || table.live != live || table.get(chain.TxIn{Index: 99}) != nil {
					t.Fatalf("%d records, %d used, %d bytes; want %d with %d", n, table.used, table.live, len(want), live)
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
