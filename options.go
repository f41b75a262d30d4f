package ourotail

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// ErrOption is wrapped when options are out of range or contradict each other.
var ErrOption = errors.New("ourotail: these options make no sense")

// Option says where the events of a loop begin, and which of them it gets. At most
// one option may say where they begin: FromTip, FromOrigin, From, Resume or
// Existing.
type Option interface {
	UTxOOption
	everyKind()
}

// UTxOOption is an option for UTxOs. Every Option is one.
type UTxOOption interface{ apply(*settings) }

// settings are what options come to.
type settings struct {
	hub     hub.Options
	start   string // the option that said where to begin
	point   *chain.Point
	cursor  string
	resumes bool // by itself
	late    bool // following had ended when the loop began
	err     error
}

type anyOption func(*settings)

func (o anyOption) apply(s *settings) { o(s) }
func (o anyOption) everyKind()        {}

type utxoOption func(*settings)

func (o utxoOption) apply(s *settings) { o(s) }

// defaultBuffer is how many unread events a loop may be behind unless Buffer says.
const defaultBuffer = 1 << 14

func settle[O UTxOOption](opts []O) (*settings, error) {
	s := &settings{hub: hub.Options{Bound: defaultBuffer, AcceptScan: true}}
	for i, o := range opts {
		if any(o) == nil { // left out, or forgotten? The loop would begin at the tip
			s.refuse("option %d of %d is nil", i+1, len(opts))
			continue
		}
		o.apply(s)
	}
	return s, s.err
}

func (s *settings) refuse(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s", ErrOption, fmt.Sprintf(format, args...))
	}
}

func (s *settings) begin(option string, at hub.Start) {
	if s.start != "" {
		s.refuse("%s and %s both say where to begin", s.start, option)
	}
	s.start, s.hub.Start = option, at
}

// FromTip begins with what happens after the loop begins: once following has come
// to where the node stands at that moment. So do loops without a start.
func FromTip() Option { return anyOption(func(s *settings) { s.begin("FromTip", hub.Tip) }) }

// FromOrigin begins with the first block; UTxOs gives the genesis outputs before
// it. Where history does not reach that far, the loop ends with a *hub.OlderError
// that names the oldest point available.
func FromOrigin() Option { return anyOption(func(s *settings) { s.begin("FromOrigin", hub.Origin) }) }

// From begins with the block above the point. The loop ends with a
// *hub.OrphanedError if a fork undid the point, which names the newest block below
// it that stands, with a *hub.OlderError if history does not reach back to it, and
// with an error that wraps ErrForgotten if it is not known at all.
func From(p chain.Point) Option {
	return anyOption(func(s *settings) {
		s.begin("From", hub.After)
		s.point = &p
	})
}

// Resume goes on exactly behind the event whose Cursor this is, of a loop of the
// same kind with the same query and options. If a fork has undone that event's
// block meanwhile, the first event is the RolledBack that its reader has missed.
// Errors wrap chain.ErrCursor for a text that is no cursor, ErrOtherNetwork for one of
// another network, and ErrFuture for one from ahead of this directory; see From for
// cursors out of reach.
//
// An empty text is no cursor either: a program that has none yet says where it wants to
// begin, and one that has lost its own had better not begin anywhere unnoticed.
//
//	start := ourotail.FromOrigin()
//	if kept != "" {
//		start = ourotail.Resume(kept)
//	}
func Resume(cursor string) Option {
	return anyOption(func(s *settings) {
		s.begin("Resume", hub.Resume)
		s.cursor = cursor
	})
}

// Existing begins with a Created for every output that exists, its Because set to
// chain.Seed, and goes on with what happens from there. The outputs are those at
// the tip, as FromTip has it, or as many blocks below it as Confirmations says.
func Existing() UTxOOption {
	return utxoOption(func(s *settings) {
		s.begin("Existing", hub.Tip)
		s.hub.Seed = hub.SeedLater
	})
}

// Only gives nothing but Created, or nothing but Spent, besides RolledBack and
// Idle.
func Only(kind chain.EventKind) UTxOOption {
	return utxoOption(func(s *settings) {
		var want hub.Events
		switch kind {
		case chain.Created:
			want = hub.CreatedOnly
		case chain.Spent:
			want = hub.SpentOnly
		default:
			s.refuse("Only(%v): want Created or Spent", kind)
		}
		if s.hub.Events != hub.CreatedAndSpent && s.hub.Events != want {
			s.refuse("Only(Created) and Only(Spent) together leave nothing; both is what there is without them")
		}
		s.hub.Events = want
	})
}

// Confirmations holds every event back until so many blocks lie on top of its own:
// 0, as without it, is at once. At most k of the network, in blocks. A fork of no
// more blocks than that is never seen.
func Confirmations(blocks int) Option {
	return anyOption(func(s *settings) {
		if blocks < 0 {
			s.refuse("%d confirmations", blocks)
		}
		s.hub.Confirmations = chain.Height(blocks)
	})
}

// NoRollback holds every event back until no fork can undo it, k blocks deep: there
// is never a RolledBack.
func NoRollback() Option { return anyOption(func(s *settings) { s.hub.NoRollback = true }) }

// Idle also gives an event for every block that has nothing of what was asked for:
// a cursor to keep, and a sign of life.
func Idle() Option { return anyOption(func(s *settings) { s.hub.Idle = true }) }

// Buffer bounds how many events may wait for the loop's reader, 16,384 without it;
// Existing's outputs are not among them. A loop that falls further behind ends with
// a *OverflowError, which carries the cursor to resume from. Blocks of many
// events arrive whole: a bound below what one block can hold is too small.
func Buffer(events int) Option {
	return anyOption(func(s *settings) {
		if events < 1 {
			s.refuse("a buffer of %d events", events)
		}
		s.hub.Bound = events
	})
}
