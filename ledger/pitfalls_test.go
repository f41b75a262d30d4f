package ledger

import (
	"testing"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// TestMetadataTextMayBeAnything: what metadata say is nobody's business here. NUL
// bytes, text that is no UTF-8, keys that repeat and labels that are no numbers
// cost no transaction its outputs, and the labels that are numbers are found.
func TestMetadataTextMayBeAnything(t *testing.T) {
	text := func(b string) []byte { return append(appendHead(nil, majorText, uint64(len(b))), b...) }
	for name, label := range map[string][]byte{
		"NUL":                text("a\x00b"),
		"no UTF-8":           text("\xff\xfe\x80"),
		"half a character":   text("\xc3"),
		"a surrogate":        text("\xed\xa0\x80"),
		"NUL in bytes":       str([]byte{0, 0, 0}),
		"in a map, as a key": obj(text("\x00\xff"), num(1), text("\x00\xff"), num(2)),
		"in a list":          arr(text("\x00"), text("\xf5"), obj(text("\xff"), text("\x00"))),
	} {
		for _, era := range shelleyEras {
			m := made{era: era, bodies: arr(body(arr(in(1, 0)), arr(pay(1, 77)))), aux: obj(num(0), obj(num(674), label, num(9), num(1)))}
			b := mustWalk(t, m.raw())
			var e chain.Effects
			b.Effects(&e)
			if got := b.Labels(0); len(got) != 2 || got[0] != 9 || got[1] != 674 {
				t.Errorf("%s, %s: labels %v", name, era, got)
			}
			if len(e.Created) != 1 || e.Created[0].Lovelace != 77 || len(e.Spent) != 1 {
				t.Errorf("%s, %s: %+v", name, era, e)
			}
		}
	}
}

// TestReencodedTransactionsHaveTheIdOfTheirBytes: one transaction in different
// encodings is different transactions, each named by the hash of its own bytes.
func TestReencodedTransactionsHaveTheIdOfTheirBytes(t *testing.T) {
	long := append([]byte{0x1b}, 0, 0, 0, 0, 0, 0, 0, 77) // 77, longer than need be
	forms := map[string][]byte{
		"as usual":              body(arr(in(1, 0)), arr(pay(1, 77))),
		"indefinite":            iobj(num(0), iarr(in(1, 0)), num(1), iarr(pay(1, 77)), num(2), num(0)),
		"a long number":         body(arr(in(1, 0)), arr(arr(enterprise(1), long))),
		"keys in another order": obj(num(1), arr(pay(1, 77)), num(2), num(0), num(0), arr(in(1, 0))),
		"inputs as a set":       body(tagged(tagSet, arr(in(1, 0))), arr(pay(1, 77))),
	}
	ids := map[chain.TxID]string{}
	for name, tx := range forms {
		b := mustWalk(t, oneTx(chain.Conway, tx))
		if want := blake2b.Sum256(tx); b.Txs[0].ID != want {
			t.Errorf("%s: id %s, want %s", name, b.Txs[0].ID, chain.Hash(want))
		}
		if other, ok := ids[b.Txs[0].ID]; ok {
			t.Errorf("%s and %s have one id", name, other)
		}
		ids[b.Txs[0].ID] = name
		var e chain.Effects
		b.Effects(&e)
		if len(e.Created) != 1 || e.Created[0].Ref.ID != b.Txs[0].ID || e.Created[0].Lovelace != 77 || len(e.Spent) != 1 || e.Spent[0].Ref != ref(1, 0) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
