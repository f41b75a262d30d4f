package eras

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/ourotail/ourotail/chain"
)

// Decode reads the answer to GetInterpreter: a list of [start, end, parameters].
// A bound is [picoseconds since the system start, slot, epoch], with a Peras
// round after that on newer nodes, and null for no end; the parameters are
// [slots of an epoch, milliseconds of a slot, safe zone, genesis window], with
// the length of a Peras round after that in eras that have them (consensus:
// HardFork/History/Summary.hs and EraParams.hs). Errors wrap ErrMalformed.
func Decode(systemStart time.Time, answer []byte) (Summaries, error) {
	s := Summaries{SystemStart: systemStart.UTC()}
	var list []cbor.RawMessage
	if err := cbor.Unmarshal(answer, &list); err != nil {
		return s, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for i, raw := range list {
		e, err := decodeEra(raw)
		if err != nil {
			return Summaries{}, fmt.Errorf("%w: era %d: %w", ErrMalformed, i, err)
		}
		s.List = append(s.List, e)
	}
	if err := s.Check(); err != nil {
		return Summaries{}, err
	}
	return s, nil
}

// items reads an array of at least n items.
func items(raw []byte, n int) ([]cbor.RawMessage, error) {
	var list []cbor.RawMessage
	if err := cbor.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	if len(list) < n {
		return nil, fmt.Errorf("%d items, want %d or more", len(list), n)
	}
	return list, nil
}

func decodeEra(raw []byte) (e Summary, err error) {
	parts, err := items(raw, 3)
	if err != nil {
		return e, err
	}
	if e.Start, err = decodeBound(parts[0]); err != nil {
		return e, fmt.Errorf("start: %w", err)
	}
	if len(parts[1]) != 1 || parts[1][0] != null {
		end, err := decodeBound(parts[1])
		if err != nil {
			return e, fmt.Errorf("end: %w", err)
		}
		e.End = &end
	}
	p, err := items(parts[2], 4)
	if err != nil {
		return e, fmt.Errorf("parameters: %w", err)
	}
	var millis uint64
	if err := integers(p, &e.EpochSlots, &millis); err != nil {
		return e, fmt.Errorf("parameters: %w", err)
	}
	if millis > math.MaxInt64/uint64(time.Millisecond) {
		return e, fmt.Errorf("parameters: a slot of %d milliseconds", millis)
	}
	e.SlotLength = time.Duration(millis) * time.Millisecond
	// [0, slots, ...], or [1] for none.
	zone, err := items(p[2], 1)
	if err == nil && len(zone) > 1 {
		err = integers(zone[1:], &e.SafeZone)
	}
	if err != nil {
		return e, fmt.Errorf("safe zone: %w", err)
	}
	return e, nil
}

const (
	null      = 0xf6
	majorUint = 0
	majorTag  = 6 // of a large integer
)

// integers reads that many of the items, which the library would take null for.
func integers(list []cbor.RawMessage, into ...any) error {
	for i, v := range into {
		if m := list[i][0] >> 5; m != majorUint && m != majorTag {
			return fmt.Errorf("item %d: CBOR major type %d, want an integer", i, m)
		}
		if err := cbor.Unmarshal(list[i], v); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func decodeBound(raw []byte) (b Bound, err error) {
	parts, err := items(raw, 3)
	if err != nil {
		return b, err
	}
	var pico big.Int // more than 64 bits after 213 days
	var slot uint64
	if err := integers(parts, &pico, &slot, &b.Epoch); err != nil {
		return b, err
	}
	nano, rest := new(big.Int).DivMod(&pico, big.NewInt(1000), new(big.Int))
	if rest.Sign() != 0 || nano.Sign() < 0 || !nano.IsInt64() {
		return b, fmt.Errorf("a time of %s picoseconds", pico.String())
	}
	b.Time, b.Slot = time.Duration(nano.Int64()), chain.Slot(slot)
	return b, nil
}

// DecodeSystemStart reads the answer to GetSystemStart: [year, day of the year,
// picoseconds of the day] (cardano-ledger-binary, the encoding of UTCTime).
// Errors wrap ErrMalformed.
func DecodeSystemStart(answer []byte) (time.Time, error) {
	bad := func(err error) (time.Time, error) {
		return time.Time{}, fmt.Errorf("%w: system start: %w", ErrMalformed, err)
	}
	parts, err := items(answer, 3)
	if err != nil {
		return bad(err)
	}
	var year, day, pico uint64
	if err := integers(parts, &year, &day, &pico); err != nil {
		return bad(err)
	}
	if year < 1 || year > 9999 || day < 1 || day > 366 || pico >= uint64(24*time.Hour)*1000 {
		return bad(fmt.Errorf("day %d of %d, %d picoseconds", day, year, pico))
	}
	return time.Date(int(year), 1, int(day), 0, 0, 0, int(pico/1000), time.UTC), nil
}
