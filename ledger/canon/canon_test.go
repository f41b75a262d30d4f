package canon_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger/canon"
)

func TestLines(t *testing.T) {
	addr, err := address.Parse("addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz")
	if err != nil {
		t.Fatal(err)
	}
	script := chain.Script{Language: 2, Bytes: []byte("script")}
	datum := []byte{1}
	inline := chain.Hash(blake2b.Sum256(datum)).String()
	one, two := strings.Repeat("01", 28), strings.Repeat("02", 28)
	policy := func(b byte) (p chain.Hash28) {
		for i := range p {
			p[i] = b
		}
		return p
	}
	const text = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz"
	for _, test := range []struct {
		out  chain.TxOut
		want string
	}{
		{chain.TxOut{Address: addr}, text + " 0 - - -"},
		{chain.TxOut{Address: addr, Lovelace: 1<<64 - 1}, text + " 18446744073709551615 - - -"},
		{chain.TxOut{Address: []byte{0xd1, 2}, Lovelace: 5}, "d102 5 - - -"},
		{chain.TxOut{Address: addr, Assets: []chain.Asset{{Policy: policy(1), Quantity: 1}, {Policy: policy(2), Name: []byte{0xff, 0}, Quantity: 1<<64 - 1}}},
			text + " 0 " + one + ".=1," + two + ".ff00=18446744073709551615 - -"},
		{chain.TxOut{Address: addr, DatumKind: chain.HashedDatum, DatumHash: chain.Hash{0xab}}, text + " 0 - h:ab" + strings.Repeat("00", 31) + " -"},
		{chain.TxOut{Address: addr, DatumKind: chain.InlineDatum, Datum: datum, Script: &script}, text + " 0 - i:" + inline + " s:" + script.Hash().String()},
	} {
		if got := string(canon.AppendContent(nil, &test.out)); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		r := chain.TxIn{ID: chain.TxID{0xcd}, Index: 4294967295}
		ref := r.String()
		by := chain.TxID{0xef}
		for got, want := range map[string]string{
			string(canon.AppendUTxO(nil, r, &test.out)):                  ref + " " + test.want,
			string(canon.AppendCreated([]byte("x"), r, &test.out)):       "x+ " + ref + " " + test.want,
			string(canon.AppendSpent([]byte("x"), r, &test.out, by)):     "x- " + ref + " " + test.want + " by " + by.String(),
			string(canon.AppendRef(nil, chain.TxIn{ID: r.ID, Index: 7})): r.ID.String() + "#7",
		} {
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
	p := chain.Point{Slot: 5, Hash: chain.Hash{1}}
	if got := string(canon.AppendRolledBack(nil, p)); got != "! "+p.String() {
		t.Error(got)
	}
	if got := string(canon.AppendRolledBack(nil, chain.Point{})); got != "! origin" {
		t.Error(got)
	}
}

// TestAccumulator: order does not matter, and what is removed was never there.
func TestAccumulator(t *testing.T) {
	if got := (canon.Accumulator{}).String(); got != strings.Repeat("0", 32) {
		t.Error(got)
	}
	lines := make([][]byte, 1000) // enough that carries occur
	for i := range lines {
		lines[i] = []byte(strings.Repeat("x", i))
	}
	var up, down, part, rest canon.Accumulator
	for i := range lines {
		up.Add(lines[i])
		down.Add(lines[len(lines)-1-i])
		if i%3 == 0 {
			part.Add(lines[i])
		} else {
			rest.Add(lines[i])
		}
	}
	if up != down {
		t.Errorf("%s, %s", up, down)
	}
	merged := part
	merged.Merge(rest)
	if merged != up {
		t.Errorf("%s, %s", merged, up)
	}
	for _, i := range rand.Perm(len(lines)) {
		if i%3 != 0 {
			up.Remove(lines[i])
		}
	}
	if up != part || up == down {
		t.Errorf("%s, %s", up, part)
	}
}

func TestDigest(t *testing.T) {
	var d, empty canon.Digest
	out := chain.TxOut{Address: []byte{0xd1}, Lovelace: 5}
	d.Add(chain.TxIn{Index: 1}, &out)
	d.Add(chain.TxIn{Index: 2}, &out)
	if d.Count != 2 || d.Lovelace != 10 || d.Sum == empty.Sum {
		t.Errorf("%+v", d)
	}
	d.Remove(chain.TxIn{Index: 1}, &out)
	d.Remove(chain.TxIn{Index: 2}, &out)
	if d.Count != 0 || d.Lovelace != 0 || d.Sum != empty.Sum {
		t.Errorf("%+v", d)
	}
}
