package chainsync

import (
	"errors"
	"testing"
	"time"
)

// TestGenesisLayouts: both numbers of fields are read, with fractions tagged and not;
// what is no genesis is malformed, and nothing panics.
func TestGenesisLayouts(t *testing.T) {
	start := []byte{0x83, 0x19, 0x07, 0xe1, 0x18, 0xfe, 0}
	rest := []byte{0x1a, 0x2d, 0x96, 0x4a, 0x09, 1}
	tail := []byte{0x19, 0x08, 0x70, 0x1a, 0, 6, 0x97, 0x80, 1, 2, 0x19, 0x4e, 0x20, 5, 6, 0x80, 0xa0, 0xbf, 0xff, 0x82, 0xa0, 0xa0}
	build := func(head byte, ratio, more []byte) (b []byte) {
		for _, p := range [][]byte{{head}, start, rest, ratio, tail, more} {
			b = append(b, p...)
		}
		return b
	}
	plain, tagged := []byte{0x82, 1, 20}, []byte{0xd8, 30, 0x82, 1, 20}
	for name, raw := range map[string][]byte{"15 fields": build(0x8f, plain, nil), "16 fields": build(0x90, tagged, []byte{0x80})} {
		g, err := parseGenesis(raw)
		if err != nil || g.Magic != 764824073 || g.NetworkID != 1 || g.ActiveSlots.RatString() != "1/20" || g.K != 2160 || g.EpochSlots != 432_000 ||
			g.SlotLength.RatString() != "1/50" || g.MaxLovelace != 6 || !g.SystemStart.Equal(time.Date(2017, 9, 11, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		for i := range raw {
			if _, err := parseGenesis(raw[:i]); !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrProtocol) {
				t.Errorf("%s, %d bytes: %v", name, i, err)
			}
		}
	}
	for name, raw := range map[string][]byte{
		"14 fields": build(0x8e, plain, nil), "a field too few": build(0x90, plain, nil), "more behind it": build(0x8f, plain, []byte{0}),
		"divided by 0": build(0x8f, []byte{0x82, 1, 0}, nil), "not CBOR": {0xff}, "nothing": {},
	} {
		if g, err := parseGenesis(raw); err == nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
}
