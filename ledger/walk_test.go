package ledger

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

var shelleyEras = []chain.Era{chain.Shelley, chain.Allegra, chain.Mary, chain.Alonzo, chain.Babbage, chain.Conway, chain.Dijkstra}

func mustWalk(t *testing.T, raw []byte) *Block {
	t.Helper()
	b := new(Block)
	if err := b.Walk(raw); err != nil {
		t.Fatal(err)
	}
	return b
}

func wantError(t *testing.T, raw []byte, want error) *Error {
	t.Helper()
	var b Block
	err := b.Walk(raw)
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is not an *Error", err)
	}
	return e
}

func TestHeader(t *testing.T) {
	for _, era := range shelleyEras {
		for _, parent := range [][]byte{nil, fill(32, 9)} {
			m := made{era: era, bodies: arr(), parent: parent}
			b := mustWalk(t, m.raw())
			want := chain.Link{
				Point:  chain.Point{Slot: madeSlot, Hash: blake2b.Sum256(m.header(emptySize(era), emptyHash(era)))},
				Height: madeHeight,
				Era:    era,
			}
			if parent != nil {
				copy(want.Parent[:], parent[2:])
			}
			if diff := cmp.Diff(want, b.Link); diff != "" {
				t.Errorf("%s: %s", era, diff)
			}
		}
	}
	// Test networks append fields before the era that defines them.
	mustWalk(t, made{era: chain.Conway, bodies: arr(), extra: [][]byte{{trueByte}, null}}.raw())
}

func emptySize(era chain.Era) int {
	if era < chain.Alonzo {
		return 3
	}
	return 4
}

func emptyHash(era chain.Era) [32]byte {
	if era < chain.Alonzo {
		return emptyBody
	}
	return emptyAlonzo
}

func TestEffectsOfFailedScripts(t *testing.T) {
	inputs := arr(in(1, 0), in(2, 1))
	outputs := arr(pay(1, 10), pay(2, 20))
	collateral := [][]byte{num(keyCollateral), arr(in(9, 2), in(8, 1), in(9, 0), in(8, 1))}
	mint := [][]byte{num(keyMint), obj(fill(28, 1), obj(str(nil), num(5)))}
	withReturn := append([][]byte{num(keyCollateralReturn), pay(3, 30)}, collateral...)
	spentBack := []chain.TxIn{ref(8, 1), ref(9, 0), ref(9, 2)}
	failed := arr(num(0))

	for _, test := range []struct {
		name    string
		block   made
		valid   bool
		spends  []chain.TxIn
		created map[uint32]uint64
		minted  int
	}{
		{"valid", made{era: chain.Babbage, bodies: arr(body(inputs, outputs, append(mint, withReturn...)...))},
			true, []chain.TxIn{ref(1, 0), ref(2, 1)}, map[uint32]uint64{0: 10, 1: 20}, 1},
		{"failed, with collateral return", made{era: chain.Babbage, bodies: arr(body(inputs, outputs, append(mint, withReturn...)...)), failed: failed},
			false, spentBack, map[uint32]uint64{2: 30}, 0},
		{"failed, return written before the outputs", made{era: chain.Babbage, failed: failed,
			bodies: arr(obj(append(withReturn, num(0), inputs, num(1), outputs, num(2), num(1))...))},
			false, spentBack, map[uint32]uint64{2: 30}, 0},
		{"failed, without collateral return", made{era: chain.Alonzo, bodies: arr(body(inputs, outputs, collateral...)), failed: failed},
			false, spentBack, nil, 0},
		{"failed, no outputs", made{era: chain.Babbage, bodies: arr(body(inputs, arr(), withReturn...)), failed: failed},
			false, spentBack, map[uint32]uint64{0: 30}, 0},
		{"failed, no collateral", made{era: chain.Babbage, bodies: arr(body(inputs, outputs)), failed: failed},
			false, []chain.TxIn{}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := mustWalk(t, test.block.raw())
			tx := &b.Txs[0]
			var e chain.Effects
			b.Effects(&e)
			spent, created := e.Tx(0)
			got := []chain.TxIn{}
			for _, s := range spent {
				got = append(got, s.Ref)
			}
			if tx.Valid != test.valid || e.Txs[0].Valid != test.valid {
				t.Errorf("valid: %v, %v", tx.Valid, e.Txs[0].Valid)
			}
			if diff := cmp.Diff(test.spends, got); diff != "" {
				t.Error(diff)
			}
			made := map[uint32]uint64{}
			for _, c := range created {
				if c.Ref.ID != tx.ID || c.Height != madeHeight || c.Slot != madeSlot || c.Era != b.Era {
					t.Errorf("%+v", c)
				}
				out, err := DecodeOutput(c.Era, c.Raw)
				if err != nil || out.Lovelace != c.Lovelace {
					t.Errorf("%+v: %v", out, err)
				}
				made[c.Ref.Index] = c.Lovelace
			}
			if len(made) != len(test.created) || len(made) > 0 && !cmp.Equal(made, test.created) {
				t.Errorf("created %v, want %v", made, test.created)
			}
			if len(b.Mint(0)) != test.minted {
				t.Errorf("minted %v", b.Mint(0))
			}
		})
	}
}

// TestSecondFails has effects of neighbours in one block.
func TestSecondFails(t *testing.T) {
	b := mustWalk(t, made{era: chain.Conway, failed: arr(num(1)), bodies: arr(
		body(arr(in(1, 0)), arr(pay(1, 1))),
		body(arr(in(2, 0)), arr(pay(2, 2)), num(keyCollateral), arr(in(3, 0))),
		body(arr(in(4, 0)), arr(pay(4, 4), pay(5, 5))),
	)}.raw())
	var e chain.Effects
	b.Effects(&e)
	if len(e.Spent) != 3 || e.Spent[1].Ref != ref(3, 0) || len(e.Created) != 3 || e.Created[1].TxIndex != 2 {
		t.Errorf("spent %v, created %v", e.Spent, e.Created)
	}
	if got := []bool{e.Txs[0].Valid, e.Txs[1].Valid, e.Txs[2].Valid}; got[0] != true || got[1] != false || got[2] != true {
		t.Errorf("valid %v", got)
	}
}

func TestRepeatedInputs(t *testing.T) {
	twice := arr(in(2, 0), in(1, 7), in(2, 0), in(1, 300))
	for _, era := range shelleyEras {
		for key, name := range map[uint64]string{keyInputs: "inputs", keyCollateral: "collateral", keyReference: "reference"} {
			inputs, more := arr(in(1, 0)), [][]byte{num(key), twice}
			if key == keyInputs {
				inputs, more = twice, nil
			}
			raw := oneTx(era, body(inputs, arr(), more...))
			if strict(era) {
				wantError(t, raw, ErrDuplicate)
				continue
			}
			b := mustWalk(t, raw)
			if key != keyInputs {
				continue
			}
			want := []chain.TxIn{ref(1, 7), ref(1, 300), ref(2, 0)}
			if diff := cmp.Diff(want, b.Txs[0].Spends()); diff != "" {
				t.Errorf("%s, %s: %s", era, name, diff)
			}
			if len(b.Txs[0].Inputs) != 4 {
				t.Errorf("%s, %s: inputs %v", era, name, b.Txs[0].Inputs)
			}
		}
	}
}

func TestIndefiniteForms(t *testing.T) {
	policy := obj(fill(28, 1), iobj(str([]byte("a")), num(1), str([]byte("b")), num(2)))
	tx := func(era chain.Era) []byte {
		outputs := [][]byte{iarr(enterprise(1), num(5))}
		if era >= chain.Mary {
			outputs = append(outputs, iarr(enterprise(2), iarr(num(6), append([]byte{0xbf}, append(policy[1:], breakByte)...))))
		}
		if era >= chain.Alonzo {
			outputs = append(outputs, iarr(enterprise(3), num(7), fill(32, 1)))
		}
		if era >= chain.Babbage {
			outputs = append(outputs, iobj(num(1), num(8), num(0), enterprise(4), num(2), iarr(num(1), tagged(24, str(deep(3, true)))), num(3), tagged(24, str(iarr(num(2), str([]byte("script")))))))
		}
		return iobj(num(0), iarr(iarr(fill(32, 1), num(0))), num(2), num(1), num(1), iarr(outputs...))
	}
	for _, era := range shelleyEras {
		raw := made{
			era:    era,
			bodies: iarr(tx(era), tx(era)),
			sets:   iarr(iobj(num(0), iarr()), iobj()),
			aux:    iobj(num(1), iobj(num(7), iarr())),
			failed: iarr(),
		}.raw()
		b := mustWalk(t, raw)
		want := []uint64{5, 6, 7, 8}[:len(b.Txs[0].Outputs)]
		var got []uint64
		for _, o := range b.Txs[1].Outputs {
			out, err := DecodeOutput(era, b.Bytes(o.Span))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, out.Lovelace)
			switch out.Lovelace {
			case 6:
				if len(out.Assets) != 2 {
					t.Errorf("assets %v", out.Assets)
				}
			case 7:
				if out.DatumKind != chain.HashedDatum || out.DatumHash[31] != 1 {
					t.Errorf("datum %v", out)
				}
			case 8:
				if out.DatumKind != chain.InlineDatum || !bytes.Equal(out.Datum, deep(3, true)) || out.Script == nil || out.Script.Language != 2 || string(out.Script.Bytes) != "script" {
					t.Errorf("output %+v", out)
				}
			}
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v", era, got, want)
		}
		if labels := b.Labels(1); len(labels) != 1 || labels[0] != 7 {
			t.Errorf("%s: labels %v", era, labels)
		}
		if b.Txs[0].ID != b.Txs[1].ID || b.Txs[0].ID != blake2b.Sum256(tx(era)) {
			t.Errorf("%s: id %s", era, b.Txs[0].ID)
		}
		// The array around header and segments, and the one around that.
		c := cursor{b: raw, i: 3}
		open := append([]byte{0x9f, raw[1], 0x9f}, raw[c.i:]...)
		mustWalk(t, append(open, breakByte, breakByte))
	}
}

func TestSets(t *testing.T) {
	set := tagged(tagSet, iarr(in(2, 0), in(1, 0)))
	b := mustWalk(t, oneTx(chain.Conway, body(set, arr(), num(keyCollateral), set, num(keyReference), set)))
	tx := &b.Txs[0]
	if len(tx.Inputs) != 2 || len(tx.Collateral) != 2 || len(tx.Reference) != 2 || tx.Spends()[0] != ref(1, 0) {
		t.Errorf("%+v", tx)
	}
	wantError(t, oneTx(chain.Conway, body(tagged(259, arr(in(1, 0))), arr())), ErrUnexpected)
}

func TestDeepData(t *testing.T) {
	for _, n := range []int{10_000, 200_000} {
		for _, data := range [][]byte{deep(n, false), deep(n, true), append(bytes.Repeat([]byte{0xc1}, n), 0), append(bytes.Repeat([]byte{0x9f, 0x81}, n), append([]byte{0}, bytes.Repeat([]byte{breakByte}, n)...)...)} {
			m := made{
				era:    chain.Babbage,
				bodies: arr(body(arr(in(1, 0)), arr(obj(num(0), enterprise(1), num(1), num(2), num(2), arr(num(1), tagged(24, str(data)))))), body(arr(in(1, 0)), arr(), num(99), data)),
				sets:   arr(obj(num(keyDatums), arr(data, num(1)), num(keyRedeemers), arr(data)), obj()),
				aux:    obj(num(0), obj(num(674), data)),
			}
			b := mustWalk(t, m.raw())
			out, err := DecodeOutput(b.Era, b.Bytes(b.Txs[0].Outputs[0].Span))
			if err != nil || !bytes.Equal(out.Datum, data) {
				t.Fatalf("datum of %d bytes: %v", len(out.Datum), err)
			}
			count := 0
			for d := range b.Datums(0) {
				if count == 0 && !bytes.Equal(d, data) {
					t.Error("datum witness differs")
				}
				count++
			}
			if count != 2 || len(b.Labels(0)) != 1 {
				t.Errorf("%d datums, labels %v", count, b.Labels(0))
			}
		}
	}
}

// TestNotNeeded has parts that nobody need understand.
func TestNotNeeded(t *testing.T) {
	pool := arr(num(3), fill(56, 1), fill(32, 2), num(1), num(2))
	label := obj(num(674), obj(str([]byte("a")), num(1), str([]byte("a")), num(2)), num(674), num(0))
	m := made{
		era:    chain.Conway,
		bodies: arr(body(arr(in(1, 0)), arr(), num(keyCertificates), arr(pool), num(5), obj(str(nil), num(1)), num(40), num(1), num(1000), null)),
		sets: arr(obj(
			num(0), arr(arr(fill(32, 1), fill(64, 2)), arr(fill(32, 1), fill(64, 2))),
			num(keyRedeemers), obj(arr(num(0), num(0)), arr(num(1), arr(num(1), num(1)))),
			num(keyRedeemers), arr(),
			num(77), null,
		)),
		aux: obj(num(0), label, num(0), label),
	}
	b := mustWalk(t, m.raw())
	if got := b.Labels(0); len(got) != 1 || got[0] != 674 {
		t.Errorf("labels %v", got)
	}
	for cert := range b.Certificates(0) {
		if !bytes.Equal(cert, pool) {
			t.Errorf("certificate %x", cert)
		}
	}
}
