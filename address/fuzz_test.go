package address

import (
	"bytes"
	"testing"
)

// FuzzText: every address has a text from which it comes back, and no bytes
// panic.
func FuzzText(f *testing.F) {
	for _, v := range vectors {
		b, err := Parse(v.text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(b, 1, 2, 3))
	}
	for _, v := range byron {
		b, err := Parse(v.text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, 0))
	}
	f.Fuzz(func(t *testing.T, addr []byte) {
		before := bytes.Clone(addr)
		kind := KindOf(addr)
		_, pay := Payment(addr)
		_, stake := Stake(addr)
		_, target := Target(addr)
		_, network := NetworkID(addr)
		ByronMagic(addr)
		if pay != (kind == Base || kind == Pointer || kind == Enterprise) || stake != (kind == Base || kind == Reward) || target && kind != Pointer {
			t.Fatalf("%s: %v %v %v", kind, pay, stake, target)
		}
		if network && kind == Unknown {
			t.Fatal("network of nothing")
		}
		text := Text(addr)
		if !bytes.Equal(before, addr) {
			t.Fatal("the bytes were written to")
		}
		back, err := Parse(text)
		switch {
		case len(addr) == 0:
		case kind == Byron: // the checksum may be wrong, and then text is refused
			if err == nil && !bytes.Equal(back, addr) {
				t.Fatalf("%s: %x", text, back)
			}
		case err != nil || !bytes.Equal(back, addr):
			t.Fatalf("%s: %x, %v", text, back, err)
		}
	})
}

// FuzzParse: no text panics, and what parses has one text.
func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.text)
	}
	for _, v := range byron {
		f.Add(v.text)
	}
	f.Add(vectorKey)
	f.Add(vectorScriptT)
	f.Add(vectorPayment)
	f.Add("82d818")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := ParseCredential(text); err == nil && m.Hash == [HashSize]byte{} && text == "" {
			t.Fatal("a credential of nothing")
		}
		addr, err := Parse(text)
		if err != nil {
			return
		}
		if len(addr) == 0 {
			t.Fatalf("%q is no address", text)
		}
		canonical := Text(addr)
		again, err := Parse(canonical)
		if KindOf(addr) == Byron && err != nil {
			return // digits of an address with a wrong checksum
		}
		if err != nil || !bytes.Equal(again, addr) {
			t.Fatalf("%q is %x, its text %q is %x, %v", text, addr, canonical, again, err)
		}
	})
}
