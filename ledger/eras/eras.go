package eras

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// Errors of this package.
var (
	// ErrHorizon is wrapped by a *HorizonError.
	ErrHorizon = errors.New("beyond the horizon up to which slots and times are known")
	// ErrBeforeStart is wrapped for a time before slot 0.
	ErrBeforeStart = errors.New("before the network's first slot")
	// ErrMalformed is wrapped for a list that makes no sense, and by Decode.
	ErrMalformed = errors.New("not a list of eras as a node answers with it")
)

// HorizonError says that a slot or a time is beyond the horizon of a list. It
// may be known later, when the chain has grown.
type HorizonError struct {
	Asked string     // "slot 7" or the time
	Slot  chain.Slot // the horizon: the first slot that is not known
	Time  time.Time  // when that slot begins
}

// Error names what was asked for and the horizon.
func (e *HorizonError) Error() string {
	return fmt.Sprintf("%s is %v: slot %d, %s", e.Asked, ErrHorizon, e.Slot, e.Time.Format(time.RFC3339))
}

// Unwrap returns ErrHorizon.
func (e *HorizonError) Unwrap() error { return ErrHorizon }

// Bound is where an era begins or ends.
type Bound struct {
	Time  time.Duration // since the system start
	Slot  chain.Slot
	Epoch uint64
}

// Summary is one era, or several that do not differ.
type Summary struct {
	Start      Bound  // inclusive
	End        *Bound // exclusive; nil if there is no end in sight
	EpochSlots uint64
	SlotLength time.Duration
	SafeZone   uint64 // slots ahead of the ledger that no hard fork can touch; 0 if not said
}

// Summaries are the eras of a chain, the oldest first, without gaps. The last
// one's end is the horizon. The zero value knows nothing.
type Summaries struct {
	SystemStart time.Time // of slot 0, UTC
	List        []Summary
}

// Horizon returns the first slot that is not known and when it begins; false if
// there is no horizon.
func (s Summaries) Horizon() (chain.Slot, time.Time, bool) {
	if len(s.List) == 0 {
		return 0, s.SystemStart, true
	}
	end := s.List[len(s.List)-1].End
	if end == nil {
		return 0, time.Time{}, false
	}
	return end.Slot, s.SystemStart.Add(end.Time), true
}

func (s Summaries) beyond(asked string) error {
	slot, at, ok := s.Horizon()
	if !ok {
		return fmt.Errorf("%s: no calendar reaches that far", asked)
	}
	return &HorizonError{Asked: asked, Slot: slot, Time: at}
}

// at returns the era that a slot lies in.
func (s Summaries) at(slot chain.Slot) (*Summary, error) {
	for i := range s.List {
		// Eras that were passed over are empty: they end where they begin.
		if e := &s.List[i]; e.End == nil || slot < e.End.Slot {
			return e, nil
		}
	}
	return nil, s.beyond(fmt.Sprintf("slot %d", slot))
}

// Time returns when a slot begins, in UTC. It returns a *HorizonError for a slot
// that is not known.
func (s Summaries) Time(slot chain.Slot) (time.Time, error) {
	e, err := s.at(slot)
	if err != nil {
		return time.Time{}, err
	}
	hi, d := bits.Mul64(uint64(slot-e.Start.Slot), uint64(e.SlotLength))
	if hi > 0 || d > math.MaxInt64-uint64(e.Start.Time) {
		return time.Time{}, fmt.Errorf("slot %d: no calendar reaches that far", slot)
	}
	return s.SystemStart.Add(e.Start.Time + time.Duration(d)).UTC(), nil
}

// Slot returns the slot that a time lies in: the last that has begun. Its
// errors wrap ErrBeforeStart or are a *HorizonError.
func (s Summaries) Slot(t time.Time) (chain.Slot, error) {
	since := t.Sub(s.SystemStart)
	if since < 0 {
		return 0, fmt.Errorf("%s is %w, %s", t.UTC().Format(time.RFC3339Nano), ErrBeforeStart, s.SystemStart.UTC().Format(time.RFC3339))
	}
	for i := range s.List {
		if e := &s.List[i]; e.End == nil || since < e.End.Time {
			return e.Start.Slot + chain.Slot((since-e.Start.Time)/e.SlotLength), nil
		}
	}
	return 0, s.beyond(t.UTC().Format(time.RFC3339Nano))
}

// Epoch returns the epoch that a slot lies in, and how many slots of it come
// before. It returns a *HorizonError for a slot that is not known.
func (s Summaries) Epoch(slot chain.Slot) (epoch, slotInEpoch uint64, err error) {
	e, err := s.at(slot)
	if err != nil {
		return 0, 0, err
	}
	n := uint64(slot - e.Start.Slot)
	return e.Start.Epoch + n/e.EpochSlots, n % e.EpochSlots, nil
}

// Check tells whether the list makes sense: eras without gaps, lengths above
// zero, an end that is not before the beginning, slots that fit the epochs and
// the times. The other methods need that. Its error wraps ErrMalformed.
func (s Summaries) Check() error {
	bad := func(i int, format string, args ...any) error {
		return fmt.Errorf("%w: era %d: %s", ErrMalformed, i, fmt.Sprintf(format, args...))
	}
	if len(s.List) == 0 {
		return fmt.Errorf("%w: it is empty", ErrMalformed)
	}
	var at Bound
	for i, e := range s.List {
		switch {
		case e.Start != at:
			return bad(i, "it begins at %+v, not where the one before ends, %+v", e.Start, at)
		case e.SlotLength <= 0 || e.EpochSlots == 0:
			return bad(i, "slots of %s, epochs of %d", e.SlotLength, e.EpochSlots)
		case e.End == nil && i < len(s.List)-1:
			return bad(i, "it has no end, and is not the last")
		case e.End == nil:
			continue
		}
		if e.End.Slot < at.Slot || e.End.Epoch < at.Epoch || e.End.Time < at.Time {
			return bad(i, "it ends at %+v, before it begins", *e.End)
		}
		slots := uint64(e.End.Slot - at.Slot)
		over, n := bits.Mul64(e.End.Epoch-at.Epoch, e.EpochSlots)
		long, d := bits.Mul64(slots, uint64(e.SlotLength))
		if over > 0 || n != slots || long > 0 || d != uint64(e.End.Time-at.Time) {
			return bad(i, "its %d epochs, %d slots and %s do not fit each other", e.End.Epoch-at.Epoch, slots, e.End.Time-at.Time)
		}
		at = *e.End
	}
	return nil
}
