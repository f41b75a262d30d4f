package hub

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"pgregory.net/rapid"
)

// The index against a map, with few shards in use and many keys that collide.
func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		model := map[string][]*posting{}
		var all []*posting
		name := func(p *posting) string { return fmt.Sprintf("%d %s", p.kind, p.key) }
		keys := rapid.SampledFrom([]int{3, 40, 4000}).Draw(t, "keys")
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(t, "n") {
					p := &posting{sub: &sub{}, kind: uint8(rapid.IntRange(0, 2).Draw(t, "kind")), key: fmt.Sprint(rapid.IntRange(0, keys).Draw(t, "key"))}
					if p.kind == 0 {
						p.key = ""
					}
					x.add(p)
					model[name(p)] = append(model[name(p)], p)
					all = append(all, p)
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(t, "n") {
					if len(all) == 0 {
						return
					}
					i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
					p := all[i]
					all = slices.Delete(all, i, i+1)
					x.remove(p)
					l := model[name(p)]
					model[name(p)] = slices.DeleteFunc(l, func(q *posting) bool { return q == p })
				}
			},
			"": func(t *rapid.T) {
				for kind := range uint8(3) {
					any := false
					for k := range keys + 1 {
						key := fmt.Sprint(k)
						got := x.find(kind, []byte(key))
						if kind == 0 {
							key, got = "", x.all
						}
						n := 0
						for p := got; p != nil; p = p.next {
							if n++; !slices.Contains(model[fmt.Sprintf("%d %s", kind, key)], p) {
								t.Fatalf("found %v under %d %s", p, kind, key)
							}
						}
						if want := len(model[fmt.Sprintf("%d %s", kind, key)]); n != want {
							t.Fatalf("found %d under %d %s, want %d", n, kind, key, want)
						}
						any = any || n > 0
						if kind == 0 || keys > 100 && k > 100 {
							break
						}
					}
					if kind > 0 && keys <= 100 && x.kinds.Has(chain.SourceKind(kind)) != any {
						t.Fatalf("kinds %b, any of %d: %v", x.kinds, kind, any)
					}
				}
			},
		})
		for _, p := range all {
			x.remove(p)
		}
		if x.kinds != 0 || x.all != nil {
			t.Fatal("not empty")
		}
		if x.shards != nil {
			for i := range x.shards {
				if x.shards[i].n != 0 {
					t.Fatal("not empty")
				}
			}
		}
	})
}
