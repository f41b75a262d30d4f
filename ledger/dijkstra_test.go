package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ourotail/ourotail/chain"
)

var (
	yes = []byte{trueByte}
	no  = []byte{falseByte}
)

// TestDijkstraForms has one valid and one failed transaction in every form
// that the era's CDDL has had.
func TestDijkstraForms(t *testing.T) {
	one := body(arr(in(1, 0)), arr(pay(1, 1)))
	two := body(arr(in(2, 0)), arr(pay(2, 2)), num(keyCollateral), arr(in(3, 0)))
	aux := obj(num(7), num(1))
	m := made{era: chain.Dijkstra}
	for name, raw := range map[string][]byte{
		"five elements":          made{era: chain.Dijkstra, bodies: arr(one, two), aux: obj(num(0), aux), failed: arr(num(1))}.raw(),
		"failed indexes":         m.whole(arr(arr(num(1)), arr(arr(one, obj(), aux), arr(two, obj(), null)), null, null)),
		"failed indexes, a set":  m.whole(arr(tagged(tagSet, iarr(num(1))), iarr(iarr(one, obj(), aux), iarr(two, obj(), null)), null, null)),
		"flags":                  m.whole(arr(arr(arr(one, obj(), aux, yes), arr(two, obj(), null, no)), null, null)),
		"flags, indefinite":      m.whole(iarr(iarr(iarr(one, obj(), aux, yes), iarr(two, obj(), null, no)), null, null)),
		"flags before aux":       m.whole(arr(arr(arr(one, obj(), yes, aux), arr(two, obj(), no, null)), null, null)),
		"four, indefinite":       m.whole(iarr(arr(num(1)), arr(arr(one, obj(), aux), arr(two, obj(), null)), str([]byte("leios")), str([]byte("peras")))),
		"certificates and flags": m.whole(arr(arr(arr(one, obj(), aux, yes), arr(two, obj(), null, no)), arr(str(nil), fill(48, 1)), str(nil))),
	} {
		t.Run(name, func(t *testing.T) {
			b := mustWalk(t, raw)
			if len(b.Txs) != 2 || !b.Txs[0].Valid || b.Txs[1].Valid {
				t.Fatalf("%+v", b.Txs)
			}
			if got := b.Txs[1].Spends(); len(got) != 1 || got[0] != ref(3, 0) {
				t.Errorf("spends %v", got)
			}
			if got := b.Labels(0); len(got) != 1 || got[0] != 7 {
				t.Errorf("labels %v", got)
			}
			if b.Txs[1].Aux.Present() {
				t.Error("auxiliary data of the second")
			}
			if string(b.Bytes(b.Txs[1].Witnesses)) != string(obj()) {
				t.Error("witnesses of the second")
			}
		})
	}
}

// subTx has no fee.
func subTx(inputs, outputs []byte) []byte {
	return arr(obj(num(0), inputs, num(1), outputs), obj(), null)
}

func TestSubTransactions(t *testing.T) {
	parent := func(flag []byte) []byte {
		return arr(obj(
			num(1), arr(pay(1, 10), pay(1, 11)),
			num(keyCollateralReturn), pay(9, 90),
			num(keySubTransactions), tagged(tagSet, arr(
				subTx(arr(in(5, 0)), arr(pay(5, 50))),
				subTx(arr(in(6, 0)), arr(pay(6, 60), pay(6, 61))),
			)),
			num(0), arr(in(1, 0)),
			num(2), num(1),
			num(keyCollateral), arr(in(7, 0)),
		), obj(), null, flag)
	}
	last := arr(body(arr(in(8, 0)), arr(pay(8, 80))), obj(), null, yes)
	type effect struct {
		index   int
		sub     bool
		valid   bool
		spends  []chain.TxIn
		created []uint64
		first   uint32
	}
	for name, test := range map[string]struct {
		flag []byte
		want []effect
	}{
		"valid": {yes, []effect{
			{0, true, true, []chain.TxIn{ref(5, 0)}, []uint64{50}, 0},
			{0, true, true, []chain.TxIn{ref(6, 0)}, []uint64{60, 61}, 0},
			{0, false, true, []chain.TxIn{ref(1, 0)}, []uint64{10, 11}, 0},
			{1, false, true, []chain.TxIn{ref(8, 0)}, []uint64{80}, 0},
		}},
		"failed": {no, []effect{
			{0, true, false, nil, nil, 1},
			{0, true, false, nil, nil, 2},
			{0, false, false, []chain.TxIn{ref(7, 0)}, []uint64{90}, 2},
			{1, false, true, []chain.TxIn{ref(8, 0)}, []uint64{80}, 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustWalk(t, made{era: chain.Dijkstra}.whole(arr(arr(parent(test.flag), last), null, null)))
			var got []effect
			for i := range b.Txs {
				tx := &b.Txs[i]
				e := effect{index: tx.Index, sub: tx.Sub, valid: tx.Valid}
				e.spends = append(e.spends, tx.Spends()...)
				first, outs := tx.Creates()
				e.first = first
				for _, o := range outs {
					e.created = append(e.created, o.Lovelace)
				}
				got = append(got, e)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(effect{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDijkstraErrors(t *testing.T) {
	one := body(arr(in(1, 0)), arr(pay(1, 1)))
	m := made{era: chain.Dijkstra}
	for name, test := range map[string]struct {
		raw  []byte
		want error
	}{
		"three elements":        {Wrap(chain.Dijkstra, false, arr(null, null, null)), ErrUnexpected},
		"body of two":           {m.whole(arr(arr(), null)), ErrUnexpected},
		"transaction of two":    {m.whole(arr(arr(arr(one, obj())), null, null)), ErrUnexpected},
		"flag that is none":     {m.whole(arr(arr(arr(one, obj(), null, num(1))), null, null)), ErrUnexpected},
		"nobody failed":         {m.whole(arr(arr(num(1)), arr(arr(one, obj(), null)), null, null)), ErrIndex},
		"sub without inputs":    {m.whole(arr(arr(arr(body(arr(in(1, 0)), arr(), num(keySubTransactions), arr(arr(obj(num(1), arr()), obj(), null))), obj(), null, yes)), null, null)), ErrMissing},
		"body hash":             {made{era: chain.Dijkstra, hash: 1}.whole(arr(arr(), null, null)), ErrBodyHash},
		"body size":             {made{era: chain.Dijkstra, bodyLen: 1}.whole(arr(arr(), null, null)), ErrBodySize},
		"an open end":           {Wrap(chain.Dijkstra, false, []byte{0x9f, 0x80}), ErrTruncated},
		"five, failed nobody":   {made{era: chain.Dijkstra, bodies: arr(one), failed: arr(num(9))}.raw(), ErrIndex},
		"more after the fourth": {m.whole(iarr(null, arr(), null, null, null)), ErrUnexpected},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, test.raw, test.want) })
	}
}
