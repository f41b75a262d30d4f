package hub

import "github.com/ourotail/ourotail/chain"

// Start says where a subscription starts.
type Start uint8

// The starts (contract 4.4).
const (
	// Tip starts at the hub's tip, or as deep below it as the depth asks for.
	Tip Start = iota
	// Origin starts before the first block.
	Origin
	// After starts behind Options.After, which must be on the hub's chain (3.15).
	After
	// Resume starts behind the event of a cursor, Options.After; what was
	// orphaned meanwhile is rolled back and corrected first (5.2).
	Resume
)

// SeedMode says whether a subscription begins with the outputs that exist.
type SeedMode uint8

// The modes. A subscription for Spent alone gets no seed whatever it asks for.
const (
	NoSeed SeedMode = iota
	// SeedNow comes with Rows, read at the hub's tip.
	SeedNow
	// SeedLater registers now; the seed is handed in by Seed (contract 3.5).
	SeedLater
)

// Events are the kinds of event an output subscription asks for.
type Events uint8

// The choices; both is the default.
const (
	CreatedAndSpent Events = iota
	CreatedOnly
	SpentOnly
)

const (
	wantCreated = 1 << iota
	wantSpent
)

func (e Events) mask() uint8 {
	switch e {
	case CreatedOnly:
		return wantCreated
	case SpentOnly:
		return wantSpent
	}
	return wantCreated | wantSpent
}

// Unbounded is the bound of a mailbox without one.
const Unbounded = -1

// Options of a subscription (contract 4.4).
type Options struct {
	Start         Start
	After         chain.Cursor // of After and Resume
	Events        Events       // of an output subscription
	Confirmations chain.Height // 0 is at once
	NoRollback    bool         // deeper than any rollback
	Seed          SeedMode     // of an output subscription
	Rows          []*chain.UTxO
	Idle          bool // asks for Idle; given if the provider declares it
	AcceptScan    bool // a seed may cost a look at every output
	Bound         int  // unread events beside the seed; 0 for the hub's default, or Unbounded

	// Stale, if set, is called with no lock held when a seed that was held has
	// been turned down: it has to be read again.
	Stale func()
}

// seeds tells whether the subscription will have outputs read for it.
func (o *Options) seeds() bool {
	return o.Start == Tip && o.Seed != NoSeed && o.Events != SpentOnly
}
