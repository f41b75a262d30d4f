package ledger

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// FuzzWalk: no bytes make the walk panic, a failure is an *Error about these
// bytes, and of a block that walks everything can be read.
func FuzzWalk(f *testing.F) {
	for _, era := range shelleyEras {
		policy := obj(fill(28, 1), obj(str([]byte("a")), num(1)))
		outputs := arr(pay(1, 1))
		if era >= chain.Babbage {
			outputs = arr(pay(1, 1), obj(num(0), enterprise(1), num(1), arr(num(1), policy), num(2), arr(num(1), tagged(24, str(num(1)))), num(3), tagged(24, str(arr(num(1), str(nil))))))
		}
		m := made{
			era: era,
			bodies: arr(body(arr(in(2, 0), in(1, 0)), outputs, num(keyMint), policy, num(keyCollateral), arr(in(3, 0)), num(keyCollateralReturn), pay(3, 3),
				num(keyWithdrawals), obj(fill(29, 1), num(1)), num(keyCertificates), arr(arr(num(1))))),
			sets: arr(obj(num(keyNativeScripts), arr(arr(num(0), fill(28, 1))), num(keyPlutusV1), arr(str(nil)), num(keyDatums), arr(deep(3, true)))),
			aux:  obj(num(0), obj(num(1), obj())),
		}
		f.Add(m.raw())
		m.failed = arr(num(0))
		f.Add(m.raw())
	}
	f.Add(byronBlock([][]byte{byronTx(byronIn(1, 0), byronIn(1, 1))}, 0, 0))
	f.Add(made{era: chain.Dijkstra}.whole(arr(arr(arr(body(arr(in(1, 0)), arr(pay(1, 1)), num(keySubTransactions), arr(subTx(arr(in(5, 0)), arr()))), obj(), null, no)), null, null)))
	checked, trusting := Block{}, Block{Trusted: true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		checkedErr := checked.Walk(raw)
		b := &trusting // or no mutation would get beyond the hashes
		err := b.Walk(raw)
		if checkedErr == nil && err != nil {
			t.Fatalf("checked walks, trusted does not: %v", err)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(raw) || e.Cause == nil || e.Error() == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		readAll(t, b)
		if !bytes.Equal(before, raw) {
			t.Fatal("the bytes were written to")
		}
	})
}

// readAll reads everything that a walked block offers.
func readAll(t *testing.T, b *Block) {
	var e chain.Effects
	b.Effects(&e)
	if len(e.Txs) != len(b.Txs) {
		t.Fatalf("%d effects of %d transactions", len(e.Txs), len(b.Txs))
	}
	for i := range e.Txs {
		spent, created := e.Tx(i)
		for j := 1; j < len(spent); j++ {
			if spent[j-1].Ref.Compare(spent[j].Ref) >= 0 {
				t.Fatalf("spends do not ascend: %v", spent)
			}
		}
		for _, c := range created {
			out, err := DecodeOutput(c.Era, c.Raw)
			if err != nil {
				t.Fatalf("walked, but does not decode: %v", err)
			}
			if out.Lovelace != c.Lovelace {
				t.Fatalf("lovelace %d, walked %d", out.Lovelace, c.Lovelace)
			}
			checkAssets(t, out.Assets)
		}
		tx := b.Tx(i)
		if tx.ID != e.Txs[i].ID || !tx.Valid && len(tx.Mint) > 0 {
			t.Fatalf("%+v", tx)
		}
		for range b.Datums(i) {
		}
		for range b.Withdrawals(i) {
		}
		for range b.Certificates(i) {
		}
		b.Redeemers(i)
	}
}

func checkAssets(t *testing.T, assets []chain.Asset) {
	for i, a := range assets {
		if a.Quantity == 0 || len(a.Name) > maxAssetName {
			t.Fatalf("asset %+v", a)
		}
		if i == 0 {
			continue
		}
		p := assets[i-1]
		if c := bytes.Compare(p.Policy[:], a.Policy[:]); c > 0 || c == 0 && bytes.Compare(p.Name, a.Name) >= 0 {
			t.Fatalf("assets do not ascend: %v", assets)
		}
	}
}

// FuzzDecodeOutput: no bytes panic, and what decodes is in order.
func FuzzDecodeOutput(f *testing.F) {
	policy := obj(fill(28, 2), obj(str([]byte("a")), num(1), str(nil), num(0)), fill(28, 1), obj(str([]byte("a")), num(1), str([]byte("a")), num(2)))
	for era := chain.Byron; era <= chain.Dijkstra; era++ {
		f.Add(uint8(era), pay(1, 1))
		f.Add(uint8(era), arr(enterprise(1), arr(num(1), policy), fill(32, 1)))
		f.Add(uint8(era), obj(num(0), enterprise(1), num(1), arr(num(1), policy), num(2), arr(num(1), tagged(24, str(num(1)))), num(3), tagged(24, str(arr(num(0), arr(num(0)))))))
		f.Add(uint8(era), arr(arr(tagged(24, str([]byte{0x80})), num(1)), num(5)))
	}
	f.Fuzz(func(t *testing.T, era uint8, raw []byte) {
		out, err := DecodeOutput(chain.Era(era), raw)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(raw) {
				t.Fatalf("%#v", err)
			}
			return
		}
		checkAssets(t, out.Assets)
		if out.Script != nil {
			out.Script.Hash()
		}
		if _, has := out.DatumID(); has != (out.DatumKind != chain.NoDatum) {
			t.Fatalf("%+v", out)
		}
	})
}
