package eras_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/eras"
)

func bound(d time.Duration, slot chain.Slot, epoch uint64) eras.Bound {
	return eras.Bound{Time: d, Slot: slot, Epoch: epoch}
}

// short has 20 s slots, then an era that was passed over, then 1 s slots up to a
// horizon.
func short() eras.Summaries {
	fork, end := bound(2000*time.Second, 100, 10), bound(2600*time.Second, 700, 12)
	return eras.Summaries{SystemStart: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC), List: []eras.Summary{
		{End: &fork, EpochSlots: 10, SlotLength: 20 * time.Second},
		{Start: fork, End: &fork, EpochSlots: 300, SlotLength: time.Second},
		{Start: fork, End: &end, EpochSlots: 300, SlotLength: time.Second, SafeZone: 60},
	}}
}

func TestConvert(t *testing.T) {
	s := short()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		slot         chain.Slot
		since        time.Duration
		epoch, place uint64
	}{{0, 0, 0, 0}, {99, 1980 * time.Second, 9, 9}, {100, 2000 * time.Second, 10, 0}, {101, 2001 * time.Second, 10, 1},
		{399, 2299 * time.Second, 10, 299}, {400, 2300 * time.Second, 11, 0}, {699, 2599 * time.Second, 11, 299}} {
		at, err := s.Time(c.slot)
		if want := s.SystemStart.Add(c.since); err != nil || !at.Equal(want) {
			t.Errorf("slot %d: %v, %v; want %v", c.slot, at, err, want)
		}
		for _, into := range []time.Duration{0, time.Nanosecond, time.Second - 1} {
			if slot, err := s.Slot(at.Add(into)); err != nil || slot != c.slot {
				t.Errorf("%v after slot %d begins: slot %d, %v", into, c.slot, slot, err)
			}
		}
		if e, p, err := s.Epoch(c.slot); err != nil || e != c.epoch || p != c.place {
			t.Errorf("slot %d: epoch %d, slot %d of it, %v", c.slot, e, p, err)
		}
	}
}

// TestHorizon: what lies beyond is an error that names the horizon, what lies
// before the first slot another, and neither is a guess.
func TestHorizon(t *testing.T) {
	s := short()
	horizon := s.SystemStart.Add(2600 * time.Second)
	_, terr := s.Time(700)
	_, serr := s.Slot(horizon)
	_, _, eerr := s.Epoch(math.MaxUint64)
	for _, err := range []error{terr, serr, eerr} {
		var h *eras.HorizonError
		if !errors.As(err, &h) || !errors.Is(err, eras.ErrHorizon) || h.Slot != 700 || !h.Time.Equal(horizon) {
			t.Errorf("%v", err)
		}
	}
	if _, err := s.Slot(s.SystemStart.Add(-1)); !errors.Is(err, eras.ErrBeforeStart) {
		t.Error(err)
	}
	if _, err := (eras.Summaries{}).Time(0); !errors.Is(err, eras.ErrHorizon) {
		t.Errorf("nothing is known: %v", err)
	}
	s.List[2].End = nil
	if _, _, ok := s.Horizon(); ok {
		t.Error("a horizon where there is no end")
	}
	if at, err := s.Time(math.MaxUint64); err == nil {
		t.Errorf("the last slot there could be is at %v", at)
	}
}

// TestRealNetworks: known blocks of the public networks were made when explorers
// say they were.
func TestRealNetworks(t *testing.T) {
	for _, c := range []struct {
		network string
		slot    chain.Slot
		at      string
		epoch   uint64
	}{
		{"mainnet", 0, "2017-09-23T21:44:51Z", 0},
		{"mainnet", 4492800, "2020-07-29T21:44:51Z", 208},  // Shelley
		{"mainnet", 72316896, "2022-09-22T21:46:27Z", 365}, // Babbage
		{"preview", 0, "2022-10-25T00:00:00Z", 0},
		{"preprod", 86400, "2022-06-21T00:00:00Z", 4},
	} {
		g, err := ledger.Network(c.network)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := g.Eras()
		if !ok {
			t.Fatalf("%s: no calendar", c.network)
		}
		at, err := s.Time(c.slot)
		if err != nil || at.Format(time.RFC3339) != c.at {
			t.Errorf("%s slot %d: %v, %v; want %s", c.network, c.slot, at, err, c.at)
		}
		if slot, err := s.Slot(at); err != nil || slot != c.slot {
			t.Errorf("%s: back to slot %d, %v", c.network, slot, err)
		}
		if e, _, err := s.Epoch(c.slot); err != nil || e != c.epoch {
			t.Errorf("%s slot %d: epoch %d, %v", c.network, c.slot, e, err)
		}
	}
}

// TestThereAndBack: a slot's time is in that slot, on any calendar, and slots in
// order have times in order.
func TestThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := eras.Summaries{SystemStart: time.Unix(rapid.Int64Range(0, 1<<31).Draw(t, "start"), 0)}
		var at eras.Bound
		for range rapid.IntRange(1, 5).Draw(t, "eras") {
			e := eras.Summary{Start: at, EpochSlots: rapid.Uint64Range(1, 1000).Draw(t, "epoch"),
				SlotLength: time.Duration(rapid.Int64Range(1, 30000).Draw(t, "slot")) * time.Millisecond}
			n := rapid.Uint64Range(0, 20).Draw(t, "epochs")
			at.Epoch += n
			at.Slot += chain.Slot(n * e.EpochSlots)
			at.Time += time.Duration(n*e.EpochSlots) * e.SlotLength
			end := at
			e.End = &end
			s.List = append(s.List, e)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if at.Slot == 0 {
			return
		}
		slot := chain.Slot(rapid.Uint64Range(0, uint64(at.Slot)-1).Draw(t, "asked"))
		when, err := s.Time(slot)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.Slot(when); err != nil || back != slot {
			t.Fatalf("slot %d at %v is slot %d, %v", slot, when, back, err)
		}
		if slot > 0 {
			if before, err := s.Slot(when.Add(-1)); err != nil || before != slot-1 {
				t.Fatalf("just before slot %d is slot %d, %v", slot, before, err)
			}
		}
	})
}

// answer encodes a list as a node does.
func answer(t testing.TB, s eras.Summaries, peras bool) []byte {
	t.Helper()
	pico := func(d time.Duration) *big.Int { return new(big.Int).Mul(big.NewInt(int64(d)), big.NewInt(1000)) }
	enc := func(b eras.Bound) any {
		out := []any{pico(b.Time), uint64(b.Slot), b.Epoch}
		if peras {
			out = append(out, nil)
		}
		return out
	}
	var list []any
	for _, e := range s.List {
		var end any
		if e.End != nil {
			end = enc(*e.End)
		}
		var zone any = []any{0, e.SafeZone, []any{0}}
		if e.SafeZone == 0 {
			zone = []any{1}
		}
		list = append(list, []any{enc(e.Start), end, []any{e.EpochSlots, uint64(e.SlotLength / time.Millisecond), zone, 36000}})
	}
	b, err := cbor.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecode: what a node writes is read, with the Peras round of newer nodes
// or without, with or without an end.
func TestDecode(t *testing.T) {
	for _, peras := range []bool{false, true} {
		want := short()
		for i := range want.List {
			want.List[i].SafeZone = 60
		}
		want.List[2].End.Epoch = 12_000 // far enough that picoseconds need more than 64 bits
		want.List[2].End.Slot = 100 + 300*(12_000-10)
		want.List[2].End.Time = 2000*time.Second + time.Duration(want.List[2].End.Slot-100)*time.Second
		got, err := eras.Decode(want.SystemStart, answer(t, want, peras))
		if err != nil {
			t.Fatal(err)
		}
		slot, at, ok := got.Horizon()
		wslot, wat, _ := want.Horizon()
		if !ok || slot != wslot || !at.Equal(wat) || len(got.List) != 3 || got.List[1].SafeZone != 60 {
			t.Errorf("peras %v: %+v", peras, got)
		}
		want.List[2].End, want.List[2].SafeZone = nil, 0
		if got, err = eras.Decode(want.SystemStart, answer(t, want, peras)); err != nil || got.List[2].End != nil {
			t.Errorf("%+v %v", got, err)
		}
	}
}

// TestDecodeRefuses: a list with a hole, or whose numbers contradict each other,
// is refused, not used.
func TestDecodeRefuses(t *testing.T) {
	for name, spoil := range map[string]func(s *eras.Summaries){
		"empty":             func(s *eras.Summaries) { s.List = nil },
		"a hole":            func(s *eras.Summaries) { s.List[1].Start.Slot++ },
		"late begin":        func(s *eras.Summaries) { s.List = s.List[1:] },
		"no slot length":    func(s *eras.Summaries) { s.List[0].SlotLength = 0 },
		"no epoch length":   func(s *eras.Summaries) { s.List[0].EpochSlots = 0 },
		"an end too early":  func(s *eras.Summaries) { s.List[2].End = nil },
		"times and slots":   func(s *eras.Summaries) { s.List[2].End.Time += time.Second },
		"epochs and slots":  func(s *eras.Summaries) { s.List[2].End.Epoch++ },
		"endless, not last": func(s *eras.Summaries) { s.List[0].End = nil },
	} {
		s := short()
		spoil(&s)
		if name == "an end too early" {
			s.List[2].End = &eras.Bound{}
		}
		if got, err := eras.Decode(s.SystemStart, answer(t, s, false)); !errors.Is(err, eras.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestDecodeSystemStart(t *testing.T) {
	for want, items := range map[time.Time][]any{
		time.Date(2017, 9, 23, 21, 44, 51, 0, time.UTC): {2017, 266, uint64(78291) * 1e12},
		time.Date(2024, 12, 31, 0, 0, 0, 5, time.UTC):   {2024, 366, 5000},
	} {
		b, err := cbor.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := eras.DecodeSystemStart(b); err != nil || !got.Equal(want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	for _, items := range [][]any{{2017, 266}, {0, 1, 0}, {2017, 0, 0}, {2017, 367, 0}, {2017, 1, uint64(86400) * 1e12}, {-1, 1, 0}, {"x", 1, 0}} {
		b, err := cbor.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := eras.DecodeSystemStart(b); !errors.Is(err, eras.ErrMalformed) {
			t.Errorf("%v: %v, %v", items, got, err)
		}
	}
}

// FuzzDecode: whatever a node answers is a list that converts without a panic,
// or an error that says so.
func FuzzDecode(f *testing.F) {
	f.Add(answer(f, short(), false), uint64(150))
	f.Add(answer(f, short(), true), uint64(9999))
	f.Add([]byte{0x9f, 0xff}, uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, slot uint64) {
		if _, err := eras.DecodeSystemStart(b); err != nil && !errors.Is(err, eras.ErrMalformed) {
			t.Errorf("untyped: %v", err)
		}
		s, err := eras.Decode(time.Unix(0, 0), b)
		if err != nil {
			if !errors.Is(err, eras.ErrMalformed) {
				t.Errorf("untyped: %v", err)
			}
			return
		}
		at, err := s.Time(chain.Slot(slot))
		if err != nil {
			return
		}
		if back, err := s.Slot(at); err != nil || back != chain.Slot(slot) {
			t.Errorf("slot %d is at %v, which is in slot %d, %v", slot, at, back, err)
		}
		_, _, _ = s.Epoch(chain.Slot(slot))
	})
}
