package wire_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/ourotail/ourotail/devnode/internal/wire"
)

func TestAppend(t *testing.T) {
	for _, n := range []uint64{0, 1, 23, 24, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, math.MaxUint64} {
		want, err := cbor.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if got := wire.Uint(nil, n); !bytes.Equal(got, want) {
			t.Errorf("%d: %x, want %x", n, got, want)
		}
		var back uint64
		if err := cbor.Unmarshal(wire.WideHead(nil, wire.MajorUint, n), &back); err != nil || back != n {
			t.Errorf("%d in eight bytes reads as %d, %v", n, back, err)
		}
	}
	for _, n := range []int64{0, -1, -24, -25, 7, math.MinInt64, math.MaxInt64} {
		want, err := cbor.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if got := wire.Int(nil, n); !bytes.Equal(got, want) {
			t.Errorf("%d: %x, want %x", n, got, want)
		}
	}
	long := bytes.Repeat([]byte{7}, 150)
	var back []byte
	if err := cbor.Unmarshal(wire.ChunkedBytes(nil, long, 64), &back); err != nil || !bytes.Equal(back, long) {
		t.Errorf("pieces read as %x, %v", back, err)
	}
}

func TestSkip(t *testing.T) {
	deep := append(bytes.Repeat([]byte{0x81}, 100_000), 0)
	for _, b := range [][]byte{{0}, {0x18, 200}, {0x80}, {0x9f, 0xff}, {0x82, 1, 0x9f, 0xbf, 1, 2, 0xff, 0xff},
		{0xa2, 1, 2, 3, 4}, {0xc0, 0x41, 9}, {0x5f, 0x41, 1, 0x41, 2, 0xff}, {0xf6}, {0xfb, 1, 2, 3, 4, 5, 6, 7, 8}, deep} {
		if end, err := wire.Skip(slices.Concat(b, []byte{0x55}), 0); err != nil || end != len(b) {
			t.Errorf("%x: end %d, %v", b[:min(len(b), 20)], end, err)
		}
		if len(b) == 1 {
			continue
		}
		if _, err := wire.Skip(b[:len(b)-1], 0); !errors.Is(err, wire.ErrShort) || !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%x cut short: %v", b[:min(len(b), 20)], err)
		}
	}
	for _, b := range [][]byte{{0xff}, {0x1c}, {0x1f}, {0x82, 1, 0xff}, {0xdf, 1}} {
		if _, err := wire.Skip(b, 0); !errors.Is(err, wire.ErrMalformed) || errors.Is(err, wire.ErrShort) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

// What a decoder by others takes for well-formed is stepped over to the same
// place.
func FuzzSkip(f *testing.F) {
	f.Add([]byte{0x82, 1, 0x9f, 0xbf, 1, 2, 0xff, 0xff, 0})
	f.Add([]byte{0xd8, 24, 0x41, 0})
	mode, err := cbor.DecOptions{MaxNestedLevels: 65535, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
		UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end, err := wire.Skip(b, 0)
		if err == nil && (end < 1 || end > len(b)) {
			t.Fatalf("end %d of %d", end, len(b))
		}
		var raw cbor.RawMessage
		rest, theirs := mode.UnmarshalFirst(b, &raw)
		if theirs == nil && (err != nil || end != len(b)-len(rest)) {
			t.Errorf("%x: end %d, %v, want %d", b, end, err, len(b)-len(rest))
		}
	})
}
