package chain

import "strconv"

// EventKind tells what an event says.
type EventKind uint8

// The kinds of event (contract 4.1). RolledBack and Idle belong to every kind
// of subscription, Created and Spent to those for outputs, Included to those
// for transactions, Applied to those for blocks. Zero is the kind of no event, such as
// comes with an error.
const (
	Created EventKind = iota + 1
	Spent
	Included
	Applied
	RolledBack
	Idle
)

var eventNames = [...]string{"none", "created", "spent", "included", "applied", "rolledback", "idle"}

// String returns the kind in lower case.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "event(" + strconv.Itoa(int(k)) + ")"
}

// MarshalText implements encoding.TextMarshaler with the form of String.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Because tells why a Created is sent.
type Because uint8

// The reasons (contract 3.3).
const (
	Live       Because = iota // a block did it
	Seed                      // it existed where the subscription begins
	Correction                // a rollback below that point brought it back
)

// UTxOEvent is one event of a subscription for outputs. The output is shared
// with other subscribers and never written to.
type UTxOEvent struct {
	Kind    EventKind // Created, Spent, RolledBack or Idle
	Because Because

	// Of a live Created or Spent:
	TxValid     bool   // false: the transaction's scripts failed
	LastOfTx    bool   // the reader gets nothing more of this transaction
	LastOfBlock bool   // nor of this block; true for Idle
	TxIndex     uint32 // of the transaction within the ledger's block
	Index       uint32 // Spent: among the block's spends of that transaction; Created: the output's index
	Place       uint32 // see Effect.Place
	Tx          TxID   // that made or spent it; zero for seeds, corrections and outputs the ledger removed

	UTxO *UTxO // nil for RolledBack and Idle

	// At is the block of a live event and of Idle, the point to keep of a
	// RolledBack. Of a seed or a correction it is the creation point of the
	// output, origin if that lies deeper than the rollback horizon.
	At At

	// Mark is shared. Of the last event of a seed it is the point the seed stands
	// at, of a correction the point rolled back to, of RolledBack the point at
	// which the reader stood before; otherwise nil.
	Mark *At
	// Base is where the reader's view starts (contract 3.3); nil if it has no
	// seed. It is shared.
	Base *At
	// NoCursor is set on every event of a seed but the last.
	NoCursor bool
}

// Cursor returns where a reader stands that has taken this event; false for
// events inside a seed (contract 5.2).
func (e *UTxOEvent) Cursor() (Cursor, bool) {
	if e.NoCursor {
		return Cursor{}, false
	}
	c := Cursor{At: e.At, Place: WholeBlock}
	switch {
	case e.Because != Live:
		if e.Mark != nil {
			c.At = *e.Mark
		}
	case e.Kind == Created || e.Kind == Spent:
		c.Place = int64(e.Place)
	}
	c.setBase(e.Base)
	return c, true
}

// ID returns a stable name for the event: the same event sent again, after a
// crash or a resume, has the same name (contract 5.2).
func (e *UTxOEvent) ID() string {
	switch {
	case e.Because == Seed:
		return "seed:" + e.UTxO.Ref.String()
	case e.Because == Correction:
		id := "correction:" + e.UTxO.Ref.String()
		if e.Mark != nil {
			id += "@" + e.Mark.Point.String()
		}
		return id
	case e.Kind == Created || e.Kind == Spent:
		return placeID(e.Kind, e.At, e.Place)
	}
	return otherID(e.Kind, e.At, e.Mark)
}

// TxEvent is one event of a subscription for transactions.
type TxEvent struct {
	Kind        EventKind  // Included, RolledBack or Idle
	LastOfBlock bool       // the reader gets nothing more of this block
	Tx          *AppliedTx // shared; nil but for Included
	At          At         // see UTxOEvent.At
	Mark        *At        // of RolledBack where the reader stood before
}

// Cursor returns where a reader stands that has taken this event.
func (e *TxEvent) Cursor() (Cursor, bool) {
	c := Cursor{At: e.At, Place: WholeBlock}
	if e.Kind == Included {
		c.Place = int64(e.Tx.LastPlace())
	}
	return c, true
}

// ID returns a stable name for the event.
func (e *TxEvent) ID() string {
	if e.Kind == Included {
		return placeID(Included, e.At, uint32(e.Tx.Index))
	}
	return otherID(e.Kind, e.At, e.Mark)
}

// LastPlace returns the place of the transaction's last effect within the
// ledger's block; its index if it has none, as only a transaction that was
// not probed can have.
func (t *AppliedTx) LastPlace() uint32 {
	switch {
	case len(t.Created) > 0:
		return t.Created[len(t.Created)-1].Place
	case len(t.Spent) > 0:
		return t.Spent[len(t.Spent)-1].Place
	}
	return uint32(t.Index)
}

// BlockEvent is one event of a subscription for blocks.
type BlockEvent struct {
	Kind  EventKind     // Applied or RolledBack
	Block *AppliedBlock // shared; nil for RolledBack
	At    At            // see UTxOEvent.At
	Mark  *At           // of RolledBack where the reader stood before
}

// Cursor returns where a reader stands that has taken this event.
func (e *BlockEvent) Cursor() (Cursor, bool) { return Cursor{At: e.At, Place: WholeBlock}, true }

// ID returns a stable name for the event.
func (e *BlockEvent) ID() string { return otherID(e.Kind, e.At, e.Mark) }

func placeID(k EventKind, at At, place uint32) string {
	return k.String() + ":" + at.Point.String() + "+" + strconv.FormatUint(uint64(place), 10)
}

// otherID names an event that is about a whole block. Two rollbacks to one
// point are two events: what they left tells them apart.
func otherID(k EventKind, at At, from *At) string {
	id := k.String() + ":" + at.Point.String()
	if from != nil {
		id += "<" + from.Point.String()
	}
	return id
}
