package ledger

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

func TestErrors(t *testing.T) {
	good := body(arr(in(1, 0)), arr(pay(1, 1)))
	big := append([]byte{0xc2}, str(bytes.Repeat([]byte{1}, 9))...)
	for _, test := range []struct {
		name string
		raw  []byte
		want error
		tx   int
	}{
		{"nothing", nil, ErrNotABlock, -1},
		{"a number", num(5), ErrNotABlock, -1},
		{"a text", []byte("not a block at all"), ErrNotABlock, -1},
		{"three elements", arr(num(6), arr(), arr()), ErrNotABlock, -1},
		{"a bare block", made{era: chain.Babbage, bodies: arr()}.raw()[2:], ErrNotABlock, -1},
		{"era 9", Wrap(9, false, arr()), ErrEra, -1},
		{"no block", Wrap(chain.Babbage, false, num(1)), ErrUnexpected, -1},
		{"four segments in Mary", Wrap(chain.Mary, false, made{era: chain.Alonzo, bodies: arr()}.raw()[2:]), ErrUnexpected, -1},
		{"more after it", append(made{era: chain.Babbage, bodies: arr()}.raw(), 0), ErrTrailing, -1},
		{"body hash", made{era: chain.Babbage, bodies: arr(good), hash: 1}.raw(), ErrBodyHash, -1},
		{"body hash of an empty body", made{era: chain.Babbage, bodies: arr(), hash: 1}.raw(), ErrBodyHash, -1},
		{"body size", made{era: chain.Babbage, bodies: arr(good), bodyLen: 1}.raw(), ErrBodySize, -1},
		{"one witness set for two bodies", made{era: chain.Babbage, bodies: arr(good, good), sets: arr(obj())}.raw(), ErrCount, -1},
		{"two witness sets for one body", made{era: chain.Babbage, bodies: arr(good), sets: arr(obj(), obj())}.raw(), ErrCount, -1},
		{"auxiliary data of nobody", made{era: chain.Mary, bodies: arr(good), aux: obj(num(1), obj())}.raw(), ErrIndex, -1},
		{"nobody failed", made{era: chain.Alonzo, bodies: arr(good), failed: arr(num(1))}.raw(), ErrIndex, -1},
		{"key twice", oneTx(chain.Babbage, body(arr(in(1, 0)), arr(), num(2), num(1))), ErrDuplicate, 0},
		{"no inputs", oneTx(chain.Babbage, obj(num(1), arr(), num(2), num(1))), ErrMissing, 0},
		{"no outputs", oneTx(chain.Babbage, obj(num(0), arr(), num(2), num(1))), ErrMissing, 0},
		{"no fee", oneTx(chain.Babbage, obj(num(0), arr(), num(1), arr())), ErrMissing, 0},
		{"short transaction id", oneTx(chain.Babbage, body(arr(arr(fill(31, 1), num(0))), arr())), ErrUnexpected, 0},
		{"index of 33 bits", oneTx(chain.Babbage, body(arr(in(1, 1<<32)), arr())), ErrAmount, 0},
		{"lovelace as a big number", oneTx(chain.Babbage, body(arr(), arr(arr(enterprise(1), big)))), ErrUnexpected, 0},
		{"negative lovelace", oneTx(chain.Babbage, body(arr(), arr(arr(enterprise(1), neg(1))))), ErrUnexpected, 0},
		{"assets before Mary", oneTx(chain.Allegra, body(arr(), arr(arr(enterprise(1), arr(num(1), obj()))))), ErrUnexpected, 0},
		{"datum before Alonzo", oneTx(chain.Mary, body(arr(), arr(arr(enterprise(1), num(1), fill(32, 1))))), ErrUnexpected, 0},
		{"map before Babbage", oneTx(chain.Alonzo, body(arr(), arr(obj(num(0), enterprise(1), num(1), num(1))))), ErrUnexpected, 0},
		{"output without an address", oneTx(chain.Babbage, body(arr(), arr(obj(num(1), num(1))))), ErrMissing, 0},
		{"output without a value", oneTx(chain.Babbage, body(arr(), arr(obj(num(0), enterprise(1))))), ErrMissing, 0},
		{"output key twice", oneTx(chain.Babbage, body(arr(), arr(obj(num(0), enterprise(1), num(0), enterprise(1), num(1), num(1))))), ErrDuplicate, 0},
		{"unknown output key", oneTx(chain.Babbage, body(arr(), arr(obj(num(0), enterprise(1), num(1), num(1), num(4), num(1))))), ErrUnexpected, 0},
		{"unknown kind of datum", oneTx(chain.Babbage, body(arr(), arr(obj(num(0), enterprise(1), num(1), num(1), num(2), arr(num(2), num(1)))))), ErrUnexpected, 0},
		{"script that is no pair", oneTx(chain.Babbage, body(arr(), arr(obj(num(0), enterprise(1), num(1), num(1), num(3), tagged(24, str(num(1))))))), ErrUnexpected, 0},
		{"bytes after a script", oneTx(chain.Babbage, body(arr(), arr(obj(num(0), enterprise(1), num(1), num(1), num(3), tagged(24, str(append(arr(num(1), str(nil)), 0))))))), ErrUnexpected, 0},
		{"minted beyond 64 bits", oneTx(chain.Babbage, body(arr(), arr(), num(9), obj(fill(28, 1), obj(str(nil), num(1<<63))))), ErrAmount, 0},
		{"burnt beyond 64 bits", oneTx(chain.Babbage, body(arr(), arr(), num(9), obj(fill(28, 1), obj(str(nil), neg(1<<63+1))))), ErrAmount, 0},
		{"short policy", oneTx(chain.Babbage, body(arr(), arr(), num(9), obj(fill(27, 1), obj(str(nil), num(1))))), ErrUnexpected, 0},
		{"asset name of 33 bytes", oneTx(chain.Babbage, body(arr(), arr(), num(9), obj(fill(28, 1), obj(fill(33, 1), num(1))))), ErrUnexpected, 0},
		{"minted nothing, Conway", oneTx(chain.Conway, body(arr(), arr(), num(9), obj(fill(28, 1), obj(str(nil), num(0))))), ErrZeroQuantity, 0},
		{"empty policy, Conway", oneTx(chain.Conway, body(arr(), arr(), num(9), obj(fill(28, 1), obj()))), ErrZeroQuantity, 0},
		{"second transaction", made{era: chain.Babbage, bodies: arr(good, num(1))}.raw(), ErrUnexpected, 1},
		{"text of indefinite length around numbers", oneTx(chain.Babbage, body(arr(), arr(), num(99), []byte{0x7f, 0x01, breakByte})), ErrMalformed, 0},
		{"key without a value", oneTx(chain.Babbage, body(arr(), arr(), num(99), []byte{0xbf, 0x01, breakByte})), ErrMalformed, 0},
		{"break in a definite array", oneTx(chain.Babbage, body(arr(), arr(), num(99), []byte{0x9f, 0x81, breakByte, breakByte})), ErrMalformed, 0},
		{"reserved length", oneTx(chain.Babbage, body(arr(), arr(), num(99), []byte{0x1c})), ErrMalformed, 0},
		{"huge array", oneTx(chain.Babbage, body(arr(), arr(), num(99), appendHead(nil, majorArray, 1<<63))), ErrTruncated, 0},
		{"huge string", oneTx(chain.Babbage, body(arr(), arr(), num(99), appendHead(nil, majorBytes, 1<<64-1))), ErrTruncated, 0},
		{"huge map", oneTx(chain.Babbage, body(arr(), arr(), num(99), appendHead(nil, majorMap, 1<<62))), ErrTruncated, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := wantError(t, test.raw, test.want)
			if e.Tx != test.tx {
				t.Errorf("transaction %d, want %d: %v", e.Tx, test.tx, e)
			}
			if e.Offset < 0 || e.Offset > len(test.raw) {
				t.Errorf("offset %d of %d bytes", e.Offset, len(test.raw))
			}
			if test.tx >= 0 && (e.Link.Height != madeHeight || e.Link.Point.IsOrigin()) {
				t.Errorf("the block is not named: %v", e)
			}
		})
	}
}

// TestCutShort walks every beginning of a block of every era: each is an
// error, none panics, and the next walk with the same Block is not disturbed.
func TestCutShort(t *testing.T) {
	var b Block
	for _, era := range shelleyEras {
		raw := made{era: era, bodies: arr(body(arr(in(1, 0)), arr(pay(1, 1)))), aux: obj(num(0), obj(num(1), iarr()))}.raw()
		for n := range raw {
			if err := b.Walk(raw[:n]); err == nil {
				t.Fatalf("%s: the first %d of %d bytes are a block", era, n, len(raw))
			}
		}
		if err := b.Walk(raw); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTrusted(t *testing.T) {
	raw := made{era: chain.Babbage, bodies: arr(body(arr(), arr())), hash: 1}.raw()
	b := Block{Trusted: true}
	if err := b.Walk(raw); err != nil {
		t.Error(err)
	}
	if err := b.Walk(append(raw, 0)); !errors.Is(err, ErrTrailing) {
		t.Error(err)
	}
}

func TestErrorText(t *testing.T) {
	good, bad := body(arr(in(1, 0)), arr()), obj(num(0), num(1))
	e := wantError(t, made{era: chain.Babbage, bodies: arr(good, bad)}.raw(), ErrUnexpected)
	if want := blake2b.Sum256(bad); e.TxID != want {
		t.Errorf("transaction %s, want %x", e.TxID, want)
	}
	want := "babbage block " + e.Link.Point.String() + " (height 77): transaction 1 (" + e.TxID.String() + "): at byte "
	if got := e.Error(); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
}
