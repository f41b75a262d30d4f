package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// assetText is what a list of assets says, with policies and names of one
// letter or none.
func assetText(assets []chain.Asset) string {
	var parts []string
	for _, a := range assets {
		parts = append(parts, fmt.Sprintf("%d.%s=%d", a.Policy[0], a.Name, a.Quantity))
	}
	return strings.Join(parts, ",")
}

// policies takes the bytes that policies are made of and maps from name to
// quantity in turn.
func policies(items ...any) []byte {
	var flat [][]byte
	for i := 0; i < len(items); i += 2 {
		flat = append(flat, fill(28, byte(items[i].(int))), items[i+1].([]byte))
	}
	return obj(flat...)
}

func names(items ...any) []byte {
	var flat [][]byte
	for i := 0; i < len(items); i += 2 {
		flat = append(flat, str([]byte(items[i].(string))), num(uint64(items[i+1].(int))))
	}
	return obj(flat...)
}

func TestAssetRules(t *testing.T) {
	for _, test := range []struct {
		name   string
		assets []byte
		early  string // Mary to Babbage
		late   error  // Conway on; nil: as early
	}{
		{"none", obj(), "", nil},
		{"one", policies(1, names("a", 1)), "1.a=1", nil},
		{"empty name", policies(1, names("", 1)), "1.=1", nil},
		{"sorted", policies(2, names("b", 1, "a", 2, "", 3), 1, names("z", 4)), "1.z=4,2.=3,2.a=2,2.b=1", nil},
		{"short names are below long ones", policies(1, names("aa", 1, "b", 2, "a", 3)), "1.a=3,1.aa=1,1.b=2", nil},
		{"zero", policies(1, names("a", 0, "b", 1)), "1.b=1", ErrZeroQuantity},
		{"all zero", policies(1, names("a", 0)), "", ErrZeroQuantity},
		{"empty policy", policies(1, names(), 2, names("a", 1)), "2.a=1", ErrZeroQuantity},
		{"name twice", policies(1, names("a", 1, "a", 2)), "1.a=2", ErrDuplicate},
		{"name twice, apart", policies(1, names("a", 1, "b", 5, "a", 2)), "1.a=2,1.b=5", ErrDuplicate},
		{"name twice, the later zero", policies(1, names("a", 1, "a", 0)), "", ErrZeroQuantity},
		{"name three times", policies(1, names("b", 3, "a", 1, "a", 2, "b", 4, "a", 7)), "1.a=7,1.b=4", ErrDuplicate},
		{"policy twice", policies(1, names("a", 1, "b", 1), 1, names("a", 2)), "1.a=2", ErrDuplicate},
		{"policy twice, apart", policies(2, names("a", 1), 1, names("c", 3), 2, names("b", 2)), "1.c=3,2.b=2", ErrDuplicate},
		{"policy twice, the later empty", policies(2, names("a", 1), 1, names("c", 3), 2, names()), "1.c=3", ErrZeroQuantity},
	} {
		for era := chain.Mary; era <= chain.Dijkstra; era++ {
			output := arr(enterprise(1), arr(num(9), test.assets))
			out, err := DecodeOutput(era, output)
			if want := test.late; era >= chain.Conway && want != nil {
				if !errors.Is(err, want) {
					t.Errorf("%s, %s: got %v, want %v", test.name, era, err, want)
				}
				wantError(t, oneTx(era, body(arr(in(1, 0)), arr(output))), want)
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", test.name, era, err)
				continue
			}
			if got := assetText(out.Assets); got != test.early {
				t.Errorf("%s, %s: got %s, want %s", test.name, era, got, test.early)
			}
			b := mustWalk(t, oneTx(era, body(arr(in(1, 0)), arr(output), num(keyMint), test.assets)))
			var minted []chain.Asset
			for _, m := range b.Mint(0) {
				minted = append(minted, chain.Asset{Policy: m.Policy, Name: m.Name, Quantity: uint64(m.Quantity)})
			}
			if got := assetText(minted); got != test.early {
				t.Errorf("%s, %s: minted %s, want %s", test.name, era, got, test.early)
			}
		}
	}
}

func TestAmounts(t *testing.T) {
	const most = 1<<64 - 1
	out, err := DecodeOutput(chain.Conway, arr(enterprise(1), arr(num(most), obj(fill(28, 1), obj(str(nil), num(most))))))
	if err != nil || out.Lovelace != most || out.Assets[0].Quantity != most {
		t.Errorf("%+v, %v", out, err)
	}
	// Longer heads than needed are legal everywhere.
	out, err = DecodeOutput(chain.Conway, arr(append([]byte{0x5b, 0, 0, 0, 0, 0, 0, 0, 1}, 0x61), []byte{0x1b, 0, 0, 0, 0, 0, 0, 0, 5}))
	if err != nil || out.Lovelace != 5 || len(out.Address) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	b := mustWalk(t, oneTx(chain.Conway, body(arr(), arr(), num(keyMint), obj(fill(28, 1), obj(str(nil), neg(1<<63), str([]byte("a")), num(1<<63-1))))))
	if m := b.Mint(0); len(m) != 2 || m[0].Quantity != -1<<63 || m[1].Quantity != 1<<63-1 {
		t.Errorf("minted %v", m)
	}
}

func TestDecodeOutputErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		era  chain.Era
		raw  []byte
		want error
	}{
		{"nothing", chain.Babbage, nil, ErrTruncated},
		{"more after it", chain.Babbage, append(pay(1, 1), 0), ErrTrailing},
		{"Shelley output in Byron", chain.Byron, pay(1, 1), ErrUnexpected},
		{"Byron output with another tag", chain.Byron, arr(arr(tagged(25, str(nil)), num(1)), num(1)), ErrUnexpected},
	} {
		out, err := DecodeOutput(test.era, test.raw)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %+v, %v, want %v", test.name, out, err, test.want)
		}
	}
}

func TestByronOutput(t *testing.T) {
	addr := arr(tagged(24, str([]byte("anything"))), num(12345))
	out, err := DecodeOutput(chain.Byron, iarr(addr, num(7)))
	if err != nil || !slices.Equal(out.Address, addr) || out.Lovelace != 7 {
		t.Errorf("%+v, %v", out, err)
	}
}
