package query

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"pgregory.net/rapid"
)

// The naive reading of the algebra: trees of closures, against which the
// package is checked.
type naive[V any] struct {
	text    string
	match   func(V) bool
	covered func(chain.Coverage) bool
}

// Small pools, so that queries and outputs meet.
var (
	testHashes = []chain.Hash28{{1}, {2}, {3}}
	testNames  = [][]byte{nil, {0xaa}, {0xbb}}
	testIDs    = []chain.TxID{{7}, {8}}
	testDatum  = []byte{0x05}
)

func testAddresses() [][]byte {
	var out [][]byte
	for _, p := range testHashes {
		out = append(out, append([]byte{0x60}, p[:]...)) // enterprise
		for _, s := range testHashes {
			out = append(out, append(append([]byte{0x31}, p[:]...), s[:]...)) // base, both scripts
		}
		out = append(out, append(append([]byte{0x40}, p[:]...), 1, 2, 3)) // pointer
	}
	byron, err := address.Parse("37btjrVyb4KDXBNC4haBVPCrro8AQPHwvCMp3RFhhSVWwfFmZ6wwzSK6JK1hY6wHNmtrpTf1kdbva8TCneM2YsiXT7mrzT21EacHnPpz5YyUdj64na")
	if err != nil {
		panic(err)
	}
	return append(out, byron, nil, []byte{0xff, 1})
}

func drawUTxO(t *rapid.T) *chain.UTxO {
	u := &chain.UTxO{
		Ref: chain.TxIn{ID: rapid.SampledFrom(testIDs).Draw(t, "id"), Index: uint32(rapid.IntRange(0, 2).Draw(t, "index"))},
		Out: chain.TxOut{Address: rapid.SampledFrom(testAddresses()).Draw(t, "address"), Lovelace: uint64(rapid.IntRange(0, 3).Draw(t, "lovelace"))},
	}
	for _, p := range testHashes {
		for _, n := range testNames {
			if rapid.IntRange(0, 3).Draw(t, "has") == 0 {
				u.Out.Assets = append(u.Out.Assets, chain.Asset{Policy: p, Name: n, Quantity: 1})
			}
		}
	}
	switch rapid.IntRange(0, 2).Draw(t, "datum") {
	case 1:
		u.Out.DatumKind, u.Out.DatumHash = chain.HashedDatum, chain.Hash{4}
	case 2:
		u.Out.DatumKind, u.Out.Datum = chain.InlineDatum, testDatum
	}
	return u
}

// drawLeaf draws a leaf and says in plain words what it means.
func drawLeaf(t *rapid.T) (UTxO, naive[*chain.UTxO]) {
	only := func(c chain.Coverage) bool { return c.Complete }
	in := func(k chain.SourceKind, key []byte) func(chain.Coverage) bool {
		return func(c chain.Coverage) bool {
			_, ok := c.Sources[chain.Source{Kind: k, Key: string(key)}]
			return c.Complete || ok
		}
	}
	h := rapid.SampledFrom(testHashes).Draw(t, "hash")
	name := rapid.SampledFrom(testNames).Draw(t, "name")
	id := rapid.SampledFrom(testIDs).Draw(t, "txid")
	switch rapid.IntRange(0, 12).Draw(t, "leaf") {
	case 0:
		return Everything(), naive[*chain.UTxO]{"*", func(*chain.UTxO) bool { return true }, only}
	case 1:
		return Shelley(), naive[*chain.UTxO]{"*/*", func(u *chain.UTxO) bool {
			return len(u.Out.Address) > 28 && u.Out.Address[0]>>4 < 8
		}, only}
	case 2, 3, 4:
		a := rapid.SampledFrom(testAddresses()).Draw(t, "address")
		return Address(a), naive[*chain.UTxO]{"address", func(u *chain.UTxO) bool { return string(u.Out.Address) == string(a) }, in(chain.SourceAddress, a)}
	case 5:
		return Payment(h), naive[*chain.UTxO]{"payment", func(u *chain.UTxO) bool {
			a := u.Out.Address
			return len(a) > 28 && a[0]>>4 < 8 && string(a[1:29]) == string(h[:])
		}, in(chain.SourcePayment, h[:])}
	case 6:
		return Stake(h), naive[*chain.UTxO]{"stake", func(u *chain.UTxO) bool {
			a := u.Out.Address
			return len(a) > 56 && a[0]>>4 < 4 && string(a[29:57]) == string(h[:])
		}, in(chain.SourceStake, h[:])}
	case 7:
		return Policy(h), naive[*chain.UTxO]{"policy", func(u *chain.UTxO) bool {
			for _, a := range u.Out.Assets {
				if a.Policy == h {
					return true
				}
			}
			return false
		}, in(chain.SourcePolicy, h[:])}
	case 8:
		return Asset(h, name), naive[*chain.UTxO]{"asset", func(u *chain.UTxO) bool {
			for _, a := range u.Out.Assets {
				if a.Policy == h && string(a.Name) == string(name) {
					return true
				}
			}
			return false
		}, in(chain.SourceAsset, append(h[:], name...))}
	case 9:
		return OutputsOf(id), naive[*chain.UTxO]{"outputs of", func(u *chain.UTxO) bool { return u.Ref.ID == id }, in(chain.SourceTx, id[:])}
	case 10:
		r := chain.TxIn{ID: id, Index: 1}
		return Inputs(r), naive[*chain.UTxO]{"input", func(u *chain.UTxO) bool { return u.Ref == r }, in(chain.SourceInput, r.AppendKey(nil))}
	case 11:
		d := rapid.SampledFrom([]chain.Hash{{4}, mustDatumID()}).Draw(t, "datum")
		return DatumHash(d), naive[*chain.UTxO]{"datum hash", func(u *chain.UTxO) bool {
			return u.Out.DatumKind == chain.HashedDatum && d == chain.Hash{4} || u.Out.DatumKind == chain.InlineDatum && d == mustDatumID()
		}, only}
	}
	if rapid.Bool().Draw(t, "datum or lovelace") {
		return HasDatum(), naive[*chain.UTxO]{"datum", func(u *chain.UTxO) bool { return u.Out.DatumKind != chain.NoDatum }, only}
	}
	n := uint64(rapid.IntRange(0, 4).Draw(t, "min"))
	return MinLovelace(n), naive[*chain.UTxO]{"lovelace", func(u *chain.UTxO) bool { return u.Out.Lovelace >= n }, only}
}

func mustDatumID() chain.Hash {
	o := chain.TxOut{DatumKind: chain.InlineDatum, Datum: testDatum}
	h, _ := o.DatumID()
	return h
}

func drawQuery(t *rapid.T, depth int) (UTxO, naive[*chain.UTxO]) {
	op := rapid.IntRange(0, 5).Draw(t, "op")
	if depth == 0 || op > 2 {
		return drawLeaf(t)
	}
	if op == 0 {
		q, n := drawQuery(t, depth-1)
		return Not(q), naive[*chain.UTxO]{"not", func(u *chain.UTxO) bool { return !n.match(u) }, func(c chain.Coverage) bool { return c.Complete }}
	}
	size := rapid.SampledFrom([]int{0, 1, 2, 3, 12}).Draw(t, "arms")
	if op == 1 {
		size = min(size, 3)
	}
	var qs []UTxO
	var ns []naive[*chain.UTxO]
	for range size {
		q, n := drawQuery(t, depth-1)
		qs, ns = append(qs, q), append(ns, n)
	}
	count := func(f func(naive[*chain.UTxO]) bool) (k int) {
		for _, n := range ns {
			if f(n) {
				k++
			}
		}
		return k
	}
	if op == 1 {
		return AllOf(qs...), naive[*chain.UTxO]{"all", func(u *chain.UTxO) bool {
			return count(func(n naive[*chain.UTxO]) bool { return n.match(u) }) == len(ns)
		}, func(c chain.Coverage) bool {
			return c.Complete || count(func(n naive[*chain.UTxO]) bool { return n.covered(c) }) > 0
		}}
	}
	return AnyOf(qs...), naive[*chain.UTxO]{"any", func(u *chain.UTxO) bool {
		return count(func(n naive[*chain.UTxO]) bool { return n.match(u) }) > 0
	}, func(c chain.Coverage) bool {
		return c.Complete || len(ns) > 0 && count(func(n naive[*chain.UTxO]) bool { return n.covered(c) }) == len(ns)
	}}
}

func hasKey(u *chain.UTxO, keys []chain.Source) bool {
	for _, k := range keys {
		if k.Kind == chain.SourceAll || MatchSource(k, u) {
			return true
		}
	}
	return false
}

// Contract 4.2: what a query means, and 5.1: its keys find every match.
func TestContract_4_2_QueriesMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := drawQuery(t, 3)
		keys, exact := q.Keys()
		kinds := Kinds(rapid.IntRange(0, 255).Draw(t, "kinds"))
		some, someExact, ok := q.KeysIn(kinds)
		for _, k := range some {
			if !kinds.Has(k.Kind) {
				t.Fatalf("%v: KeysIn(%b) has %v", q, kinds, k)
			}
		}
		text := q.String()
		parsed, err := ParseUTxO(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if parsed.String() != text {
			t.Fatalf("%s came back as %s", text, parsed)
		}
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var decoded UTxO
		if err := json.Unmarshal(b, &decoded); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		for range 12 {
			u := drawUTxO(t)
			want := n.match(u)
			if q.Match(u) != want || parsed.Match(u) != want || decoded.Match(u) != want {
				t.Fatalf("%s (%s): %v %v %v, want %v for %+v", text, b, q.Match(u), parsed.Match(u), decoded.Match(u), want, u)
			}
			if want && !hasKey(u, keys) {
				t.Fatalf("%s: its keys %v do not find %+v", text, keys, u)
			}
			if ok && (want && !hasKey(u, some) || someExact && hasKey(u, some) != want) {
				t.Fatalf("%s: KeysIn(%b) %v, exact %v, for %+v", text, kinds, some, someExact, u)
			}
			if exact && hasKey(u, keys) != want {
				t.Fatalf("%s: its keys %v claim to decide, but not for %+v", text, keys, u)
			}
		}
	})
}

func TestContract_1_3_CoverageOfOutputQueries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := drawQuery(t, 3)
		c := chain.Coverage{Complete: rapid.IntRange(0, 5).Draw(t, "complete") == 0, Sources: map[chain.Source]struct{}{}}
		for range rapid.IntRange(0, 12).Draw(t, "sources") {
			if leaf, _ := drawLeaf(t); true {
				keys, _ := leaf.Keys()
				if keys[0].Kind != chain.SourceAll {
					c.Sources[keys[0]] = struct{}{}
				}
			}
		}
		if got, want := q.Covered(c), n.covered(c); got != want {
			t.Fatalf("%v by %v: %v, want %v", q, c, got, want)
		}
		if q.Covered(c) && !c.Complete {
			// What covers a query is enough to answer it: every match is in a source
			// that was examined.
			for range 12 {
				u := drawUTxO(t)
				if q.Match(u) {
					found := false
					for s := range c.Sources {
						found = found || MatchSource(s, u)
					}
					if !found {
						t.Fatalf("%v is covered by %v, which does not see %+v", q, c, u)
					}
				}
			}
		}
	})
}

func drawTx(t *rapid.T) *chain.AppliedTx {
	tx := &chain.AppliedTx{Valid: rapid.IntRange(0, 3).Draw(t, "valid") > 0}
	for range rapid.IntRange(1, 2).Draw(t, "spent") {
		tx.Spent = append(tx.Spent, chain.Effect{UTxO: drawUTxO(t)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "created") {
		tx.Created = append(tx.Created, chain.Effect{UTxO: drawUTxO(t)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "mint") {
		tx.Mint = append(tx.Mint, chain.Minted{Policy: rapid.SampledFrom(testHashes).Draw(t, "policy"), Name: rapid.SampledFrom(testNames).Draw(t, "name"), Quantity: -1})
	}
	for range rapid.IntRange(0, 1).Draw(t, "labels") {
		tx.Labels = append(tx.Labels, uint64(rapid.IntRange(0, 2).Draw(t, "label")))
	}
	for range rapid.IntRange(0, 1).Draw(t, "scripts") {
		tx.Scripts = append(tx.Scripts, rapid.SampledFrom(testHashes).Draw(t, "script"))
	}
	return tx
}

type naiveTx = naive[*chain.AppliedTx]

func drawTxLeaf(t *rapid.T) (Tx, naiveTx) {
	only := func(c chain.Coverage) bool { return c.Complete }
	in := func(k chain.SourceKind, key []byte) func(chain.Coverage) bool {
		return func(c chain.Coverage) bool { return c.Has(chain.Source{Kind: k, Key: string(key)}) }
	}
	h := rapid.SampledFrom(testHashes).Draw(t, "hash")
	name := rapid.SampledFrom(testNames).Draw(t, "name")
	switch rapid.IntRange(0, 6).Draw(t, "leaf") {
	case 0:
		return EveryTx(), naiveTx{"*", func(*chain.AppliedTx) bool { return true }, only}
	case 1:
		a := rapid.SampledFrom(testAddresses()).Draw(t, "address")
		return Involves(a), naiveTx{"involves", func(x *chain.AppliedTx) bool {
			for _, e := range append(append([]chain.Effect{}, x.Spent...), x.Created...) {
				if string(e.UTxO.Out.Address) == string(a) {
					return true
				}
			}
			return false
		}, in(chain.SourceAddress, a)}
	case 2:
		return MintsPolicy(h), naiveTx{"policy", func(x *chain.AppliedTx) bool {
			for _, m := range x.Mint {
				if x.Valid && m.Policy == h {
					return true
				}
			}
			return false
		}, only}
	case 3:
		return MintsAsset(h, name), naiveTx{"asset", func(x *chain.AppliedTx) bool {
			for _, m := range x.Mint {
				if x.Valid && m.Policy == h && string(m.Name) == string(name) {
					return true
				}
			}
			return false
		}, in(chain.SourceAsset, append(h[:], name...))}
	case 4:
		r := chain.TxIn{ID: rapid.SampledFrom(testIDs).Draw(t, "id"), Index: 1}
		return Spends(r), naiveTx{"spends", func(x *chain.AppliedTx) bool {
			for _, e := range x.Spent {
				if e.UTxO.Ref == r {
					return true
				}
			}
			return false
		}, in(chain.SourceInput, r.AppendKey(nil))}
	case 5:
		return InvolvesScript(h), naiveTx{"script", func(x *chain.AppliedTx) bool {
			for _, s := range x.Scripts {
				if s == h {
					return true
				}
			}
			return false
		}, only}
	}
	l := uint64(rapid.IntRange(0, 2).Draw(t, "label"))
	return HasLabel(l), naiveTx{"label", func(x *chain.AppliedTx) bool {
		for _, y := range x.Labels {
			if y == l {
				return true
			}
		}
		return false
	}, only}
}

func drawTxQuery(t *rapid.T, depth int) (Tx, naiveTx) {
	op := rapid.IntRange(0, 5).Draw(t, "op")
	if depth == 0 || op > 2 {
		return drawTxLeaf(t)
	}
	if op == 0 {
		q, n := drawTxQuery(t, depth-1)
		return NotTx(q), naiveTx{"not", func(x *chain.AppliedTx) bool { return !n.match(x) }, func(c chain.Coverage) bool { return c.Complete }}
	}
	var qs []Tx
	var ns []naiveTx
	for range rapid.SampledFrom([]int{0, 1, 2, 10}).Draw(t, "arms") {
		q, n := drawTxQuery(t, depth-1)
		qs, ns = append(qs, q), append(ns, n)
	}
	count := func(f func(naiveTx) bool) (k int) {
		for _, n := range ns {
			if f(n) {
				k++
			}
		}
		return k
	}
	if op == 1 {
		return AllTx(qs...), naiveTx{"all", func(x *chain.AppliedTx) bool { return count(func(n naiveTx) bool { return n.match(x) }) == len(ns) },
			func(c chain.Coverage) bool {
				return c.Complete || count(func(n naiveTx) bool { return n.covered(c) }) > 0
			}}
	}
	return AnyTx(qs...), naiveTx{"any", func(x *chain.AppliedTx) bool { return count(func(n naiveTx) bool { return n.match(x) }) > 0 },
		func(c chain.Coverage) bool {
			return c.Complete || len(ns) > 0 && count(func(n naiveTx) bool { return n.covered(c) }) == len(ns)
		}}
}

func TestContract_4_3_TransactionQueriesMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := drawTxQuery(t, 3)
		keys, exact := q.Keys()
		parsed, err := ParseTx(q.String())
		if err != nil || parsed.String() != q.String() {
			t.Fatalf("%s: %v, %v", q, parsed, err)
		}
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var decoded Tx
		if err := json.Unmarshal(b, &decoded); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		for range 8 {
			x := drawTx(t)
			want := n.match(x)
			if q.Match(x) != want || parsed.Match(x) != want || decoded.Match(x) != want {
				t.Fatalf("%s: %v %v %v, want %v for %+v", q, q.Match(x), parsed.Match(x), decoded.Match(x), want, x)
			}
			found := false
			for _, k := range keys {
				found = found || k.Kind == TxAll || txLeaf(k).match(x)
			}
			if want && !found || exact && found != want {
				t.Fatalf("%s: keys %v, exact %v, found %v, want %v", q, keys, exact, found, want)
			}
		}
	})
}

func TestContract_1_3_CoverageOfTransactionQueries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := drawTxQuery(t, 3)
		c := chain.Coverage{Complete: rapid.IntRange(0, 5).Draw(t, "complete") == 0, Sources: map[chain.Source]struct{}{}}
		for range rapid.IntRange(0, 12).Draw(t, "sources") {
			leaf, _ := drawLeaf(t)
			if keys, _ := leaf.Keys(); keys[0].Kind != chain.SourceAll {
				c.Sources[keys[0]] = struct{}{}
			}
		}
		if got, want := q.Covered(c), n.covered(c); got != want {
			t.Fatalf("%v by %v: %v, want %v", q, c, got, want)
		}
	})
}

func TestContract_1_3_BlockQueriesNeedWholeBlocks(t *testing.T) {
	for _, q := range []Block{EveryBlock(), Slots(1, 2)} {
		if !q.Covered(chain.Complete) || q.Covered(chain.Coverage{Sources: map[chain.Source]struct{}{{}: {}}}) {
			t.Error(q)
		}
	}
}

func TestContract_4_3_BlockQueries(t *testing.T) {
	for _, c := range []struct {
		q      Block
		in     []chain.Slot
		out    []chain.Slot
		passed []chain.Slot
		not    []chain.Slot
	}{
		{EveryBlock(), []chain.Slot{0, 1 << 60}, nil, nil, []chain.Slot{1 << 60}},
		{Slots(5, 7), []chain.Slot{5, 6, 7}, []chain.Slot{4, 8}, []chain.Slot{7, 8}, []chain.Slot{0, 6}},
		{SlotsFrom(5), []chain.Slot{5, 1 << 60}, []chain.Slot{4}, nil, []chain.Slot{1 << 60}},
	} {
		for _, s := range c.in {
			if !c.q.Match(s) {
				t.Errorf("%v does not want %d", c.q, s)
			}
		}
		for _, s := range c.out {
			if c.q.Match(s) {
				t.Errorf("%v wants %d", c.q, s)
			}
		}
		for _, s := range c.passed {
			if !c.q.Passed(s) {
				t.Errorf("%v not passed at %d", c.q, s)
			}
		}
		for _, s := range c.not {
			if c.q.Passed(s) {
				t.Errorf("%v passed at %d", c.q, s)
			}
		}
		var back Block
		if err := back.UnmarshalText([]byte(c.q.String())); err != nil || back != c.q {
			t.Errorf("%v: %v, %v", c.q, back, err)
		}
	}
	for _, bad := range []string{"", "slots", "slots:1", "slots:a..2", "slots:1..b", "slots:3..2", "7..8"} {
		if q, err := ParseBlock(bad); err == nil {
			t.Errorf("%q is %v", bad, q)
		} else if _, ok := err.(*SyntaxError); !ok {
			t.Errorf("%q: %T", bad, err)
		}
	}
}

func TestJSONErrorsNameThePlace(t *testing.T) {
	for text, want := range map[string]string{
		`{"any":[{"address":"addr1"},{"all":[{"policy":"zz"}]}]}`: "$.any[0].address",
		`{"any":[{"datum":true},{"all":[{"policy":"zz"}]}]}`:      "$.any[1].all[0].policy",
		`{"nothing":true}`:              "$.nothing",
		`{"not":[]}`:                    "$.not",
		`{"datum":true,"shelley":true}`: "at $:",
		`{"datum":false}`:               "$.datum",
		`[]`:                            "at $:",
	} {
		var q UTxO
		err := q.UnmarshalJSON([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %s", text, err, want)
		}
	}
}

func FuzzParseUTxO(f *testing.F) {
	for _, s := range []string{"*", "*/* and not datum", "(lovelace>=5 or 1@ff)", "address: or )", "((((", "not not not"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseUTxO(s)
		if err != nil {
			if e, ok := err.(*SyntaxError); !ok || e.Start < 0 || e.End < e.Start || e.End > len(s) {
				t.Fatalf("%q: %#v", s, err)
			} else if e.Error() == "" || e.Picture() == "" {
				t.Fatal("says nothing")
			}
			return
		}
		again, err := ParseUTxO(q.String())
		if err != nil || again.String() != q.String() {
			t.Fatalf("%q: %q, %q, %v", s, q, again, err)
		}
	})
}

func FuzzParseTx(f *testing.F) {
	for _, s := range []string{"*", "{42} and not mints:ff.*", "script:00 or spends:1@ff", "label:x", "involves:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseTx(s)
		if err != nil {
			if e, ok := err.(*SyntaxError); !ok || e.End > len(s) || e.Error() == "" {
				t.Fatalf("%q: %#v", s, err)
			}
			return
		}
		again, err := ParseTx(q.String())
		if err != nil || again.String() != q.String() {
			t.Fatalf("%q: %q, %q, %v", s, q, again, err)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"any":[{"datum":true}]}`, `{"not":{"min_lovelace":"5"}}`, `{"inputs":[]}`, `{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q UTxO
		if q.UnmarshalJSON(b) == nil {
			out, err := q.MarshalJSON()
			var again UTxO
			if err != nil || again.UnmarshalJSON(out) != nil || again.String() != q.String() {
				t.Fatalf("%s: %s, %v", b, out, err)
			}
		}
	})
}
