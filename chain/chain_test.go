package chain

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPointText(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for text, want := range map[string]error{
		"origin":                        nil,
		"0." + hash:                     nil,
		"18446744073709551615." + hash:  nil,
		"5." + strings.ToUpper(hash):    nil,
		"":                              ErrPoint,
		"Origin":                        ErrPoint,
		"5":                             ErrPoint,
		"." + hash:                      ErrPoint,
		"-1." + hash:                    ErrPoint,
		"18446744073709551616." + hash:  ErrPoint,
		"5." + hash[1:]:                 ErrHash,
		"5." + hash + "00":              ErrHash,
		"5." + strings.Repeat("zz", 32): ErrHash,
		"0." + strings.Repeat("00", 32): ErrPoint, // would read as origin
		" 5." + hash:                    ErrPoint,
	} {
		if _, err := ParsePoint(text); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

// FuzzPoint: whatever is read as a point is written back to a text that reads
// the same.
func FuzzPoint(f *testing.F) {
	f.Add("origin")
	f.Add("123." + strings.Repeat("0f", 32))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePoint(text)
		if err != nil {
			return
		}
		again, err := ParsePoint(p.String())
		if err != nil || again != p {
			t.Fatalf("%q read as %v, written and read again %v (%v)", text, p, again, err)
		}
		if p.IsOrigin() != (text == "origin") {
			t.Fatalf("%q reads as origin", text)
		}
	})
}

// FuzzTxIn: the same for output references.
func FuzzTxIn(f *testing.F) {
	f.Add(strings.Repeat("0f", 32) + "#7")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseTxIn(text)
		if err != nil {
			return
		}
		if again, err := ParseTxIn(r.String()); err != nil || again != r {
			t.Fatalf("%q read as %v, then %v (%v)", text, r, again, err)
		}
	})
}

// TestKeysSortLikeReferences: the store relies on it.
func TestKeysSortLikeReferences(t *testing.T) {
	ref := rapid.Custom(func(t *rapid.T) (r TxIn) {
		copy(r.ID[:], rapid.SliceOfN(rapid.Byte(), 2, 2).Draw(t, "id"))
		r.Index = rapid.Uint32().Draw(t, "index")
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := ref.Draw(t, "a"), ref.Draw(t, "b")
		if got, want := slices.Compare(a.AppendKey(nil), b.AppendKey(nil)), a.Compare(b); got != want {
			t.Fatalf("keys compare %d, references %d", got, want)
		}
		if TxInFromKey(a.AppendKey(nil)) != a {
			t.Fatal("a key does not read back")
		}
	})
}

func TestPositionsOrder(t *testing.T) {
	in := []Position{{OriginHeight, false}, {0, false}, {0, true}, {1, false}, {1, true}, {2, false}}
	for i, a := range in {
		for j, b := range in {
			if got := a.Compare(b); got != compare(i, j) {
				t.Errorf("%v with %v: %d", a, b, got)
			}
		}
	}
}

func compare(i, j int) int {
	switch {
	case i < j:
		return -1
	case i > j:
		return 1
	}
	return 0
}

// An event that was never filled in is none: not a creation.
func TestTheZeroEventIsNone(t *testing.T) {
	var u UTxOEvent
	var tx TxEvent
	var b BlockEvent
	for _, k := range []EventKind{u.Kind, tx.Kind, b.Kind} {
		if k == Created || k.String() != "none" {
			t.Errorf("it is %v", k)
		}
	}
	if got := EventKind(200).String(); got != "event(200)" {
		t.Error(got)
	}
	if _, ok := u.Cursor(); !ok || u.ID() == "" || tx.ID() == "" || b.ID() == "" {
		t.Error("it has no cursor or name")
	}
}
