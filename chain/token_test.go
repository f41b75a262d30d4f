package chain

import (
	"errors"
	"math"
	"testing"
)

func TestTokenText(t *testing.T) {
	at := At{Point: Point{Slot: math.MaxUint64, Hash: Hash{0xab}}, Height: math.MaxInt64}
	for _, c := range []Cursor{
		{At: Origin, Place: WholeBlock},
		{At: at, Place: math.MaxUint32, Base: at, HasBase: true},
	} {
		want := Token{Magic: math.MaxUint32, Cursor: c}
		text := want.String()
		got, err := ParseToken(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if len(text) > TokenMax {
			t.Errorf("%q has %d bytes", text, len(text))
		}
		for i := range len(text) { // whatever is lost or changed is noticed
			for _, bad := range []string{text[:i], text[:i] + "0" + text[i:], text[:i] + string(text[i]^1) + text[i+1:]} {
				if got, err := ParseToken(bad); err == nil || !errors.Is(err, ErrCursor) {
					t.Errorf("%q: %+v, %v", bad, got, err)
				}
			}
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(Token{Magic: 2, Cursor: Cursor{At: Origin, Place: WholeBlock}}.String())
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseToken(s)
		if err != nil {
			return
		}
		if again, err := ParseToken(got.String()); err != nil || again != got {
			t.Fatalf("%q: %+v, %+v, %v", s, got, again, err)
		}
	})
}
