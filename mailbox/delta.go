package mailbox

import (
	"context"
	"errors"
	"io"
	"iter"
)

// Owner is told what happens to a Delta. Both methods run with no lock of the
// mailbox held.
type Owner[T any] interface {
	// Overflowed returns the error with which a mailbox that overflowed fails.
	Overflowed(Overflow[T]) error
	// Ended is called exactly once, when the mailbox has died by whatever
	// route: ErrCancelled, io.EOF after a clean close, or the failure.
	Ended(cause error)
}

// Overflow tells what a bounded mailbox lost when it filled up.
type Overflow[T any] struct {
	Last       T    // what Next returned last
	Returned   bool // false: Next has returned nothing yet, Last is zero
	Lost       int  // values that come after Last and will never be read
	SeedUnread bool // the seed was not read to its end
}

// ErrOverflow is the failure of a Delta without an owner.
var ErrOverflow = errors.New("mailbox overflowed")

// errFull marks an overflow until Flush can tell what was lost.
var errFull = errors.New("full")

// Delta is a queue for events that change state. It never drops: a bounded one
// that fills up fails, because an event missed in the middle spoils whatever
// the reader builds from them. The zero value is not usable; see Init.
type Delta[T any] struct {
	life
	owner Owner[T]
	bound int // unread values beside the seed; 0 means no bound

	seed      func(i int) T // values that come before all others, built when they are read
	seedNext  int
	seedLen   int
	seedShown bool

	ring  []T // the length is a power of two, or 0
	head  int
	n     int // values in the ring
	shown int // of which so many are visible
	lost  int // values offered after it was full

	last     T
	returned bool
}

// NewDelta returns a mailbox that holds at most bound unread values beside its
// seed; 0 means no bound. The owner may be nil.
func NewDelta[T any](bound int, owner Owner[T]) *Delta[T] {
	d := new(Delta[T])
	d.Init(bound, owner)
	return d
}

// Init prepares a Delta that is part of another struct; see NewDelta. It is
// called once, before anything else.
func (d *Delta[T]) Init(bound int, owner Owner[T]) { d.bound, d.owner = max(bound, 0), owner }

// OfferBuffered appends values, in the order given, without letting anybody
// see them: until Flush, Next behaves as if this had not happened. They become
// visible together. If they do not all fit, none is kept and the mailbox fails
// at Flush. Offers to a mailbox that is dead or about to die are dropped.
func (d *Delta[T]) OfferBuffered(values ...T) {
	if len(values) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end != nil {
		return
	}
	if d.pending != nil {
		if d.pending == errFull {
			d.lost += len(values)
		}
		return
	}
	d.dirty = true
	if d.bound > 0 && d.n+len(values) > d.bound {
		d.pending, d.lost = errFull, len(values)
		return
	}
	d.growLocked(d.n + len(values))
	for _, v := range values {
		d.ring[(d.head+d.n)&(len(d.ring)-1)] = v
		d.n++
	}
}

// Offer is OfferBuffered and Flush.
func (d *Delta[T]) Offer(values ...T) {
	d.OfferBuffered(values...)
	d.Flush()
}

// SeedBuffered puts n values before everything else. They do not count towards
// the bound and are built one by one by item, called with the mailbox's lock
// held, when they are read; item must not call back. Like an offer they are
// seen only after Flush. A mailbox takes one seed, before anything was read.
func (d *Delta[T]) SeedBuffered(n int, item func(i int) T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end != nil || d.pending != nil || n == 0 {
		return
	}
	if d.seed != nil || d.returned {
		panic("mailbox: a second seed, or one after values were read")
	}
	d.seed, d.seedLen, d.dirty = item, n, true
}

// FailBuffered ends the mailbox with a failure, at Flush: what was not read is
// dropped. A cause that wraps io.EOF is no longer found to be that: see failure.
func (d *Delta[T]) FailBuffered(cause error) { d.endBuffered(failed(cause)) }

// Fail is FailBuffered and Flush.
func (d *Delta[T]) Fail(cause error) {
	d.endBuffered(failed(cause))
	d.Flush()
}

// CloseBuffered ends the mailbox cleanly, at Flush: readers get what is
// buffered, then io.EOF.
func (d *Delta[T]) CloseBuffered() { d.endBuffered(io.EOF) }

// Close is CloseBuffered and Flush.
func (d *Delta[T]) Close() {
	d.endBuffered(io.EOF)
	d.Flush()
}

func (d *Delta[T]) endBuffered(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end == nil && d.pending == nil {
		d.pending, d.dirty = cause, true
	}
}

// Flush shows what was buffered, wakes readers and, if the mailbox has died,
// tells the owner. It is idempotent and cheap; call it with no lock held.
func (d *Delta[T]) Flush() {
	d.mu.Lock()
	if !d.dirty {
		d.mu.Unlock()
		return
	}
	d.dirty = false
	if d.end != nil { // cancelled between the two halves
		d.mu.Unlock()
		return
	}
	if d.pending == errFull {
		o := Overflow[T]{Last: d.last, Returned: d.returned, Lost: d.unreadLocked() + d.lost, SeedUnread: d.seed != nil}
		if d.owner == nil {
			d.pending = ErrOverflow
		} else {
			owner := d.owner
			d.mu.Unlock() // the owner may look at the mailbox
			err := owner.Overflowed(o)
			d.mu.Lock()
			if d.end != nil {
				d.mu.Unlock()
				return
			}
			d.pending = err
		}
	}
	if d.pending != nil {
		d.endLocked(d.pending)
	} else {
		d.shown, d.seedShown = d.n, true
	}
	d.leaveLocked()
}

// Cancel ends the mailbox at once and drops what was not read. Cancelling what
// is dead changes nothing, except that the rest of a closed mailbox is dropped.
func (d *Delta[T]) Cancel() {
	d.mu.Lock()
	if d.end != nil && (d.end != io.EOF || d.unreadLocked() == 0) {
		d.mu.Unlock()
		return
	}
	d.endLocked(ErrCancelled)
	d.leaveLocked()
}

// endLocked makes the end visible.
func (d *Delta[T]) endLocked(cause error) {
	d.end, d.pending = cause, nil
	d.shown, d.seedShown = d.n, true
	if cause != io.EOF {
		d.ring, d.head, d.n, d.shown = nil, 0, 0, 0
		d.seed, d.seedNext, d.seedLen = nil, 0, 0
	}
}

// leaveLocked releases the lock and does what has to happen outside it.
func (d *Delta[T]) leaveLocked() {
	d.notifyLocked()
	cause, owner := d.end, d.owner
	tell := cause != nil && !d.told
	d.told = d.told || tell
	wake := d.wake != nil
	d.mu.Unlock()
	if tell && owner != nil {
		owner.Ended(cause)
	}
	if wake {
		d.runWake()
	}
}

// Next returns the oldest value. It waits for one, until the context ends
// (which loses nothing: the next call goes on) or the mailbox is dead: io.EOF
// after a clean close, ErrCancelled, or the failure.
func (d *Delta[T]) Next(ctx context.Context) (T, error) {
	for {
		d.mu.Lock()
		v, ok, err := d.takeLocked()
		if ok || err != nil {
			d.mu.Unlock()
			return v, err
		}
		ch := d.waiterLocked()
		d.mu.Unlock()
		if err := await(ctx, ch); err != nil {
			return v, err
		}
	}
}

// Poll is Next for a reader that does not wait: false if there is nothing yet.
func (d *Delta[T]) Poll() (v T, ok bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takeLocked()
}

// All yields values until the mailbox is dead or the context ends; every end
// but a clean close is yielded as an error. Leaving the loop does not cancel.
func (d *Delta[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, d.Next) }

func all[T any](ctx context.Context, next func(context.Context) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := next(ctx)
			if errors.Is(err, io.EOF) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Pending returns how many values have not been read, those not flushed yet
// included.
func (d *Delta[T]) Pending() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unreadLocked()
}

// Last returns what Next returned last, whether it has returned anything, and
// whether everything offered has been read.
func (d *Delta[T]) Last() (v T, returned, drained bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last, d.returned, d.unreadLocked() == 0
}

func (d *Delta[T]) unreadLocked() int { return d.seedLen - d.seedNext + d.n }

func (d *Delta[T]) takeLocked() (v T, ok bool, err error) {
	switch {
	case d.seed != nil && d.seedShown:
		v = d.seed(d.seedNext)
		if d.seedNext++; d.seedNext == d.seedLen {
			d.seed, d.seedNext, d.seedLen = nil, 0, 0
		}
	case d.shown > 0:
		var zero T
		v, d.ring[d.head] = d.ring[d.head], zero
		d.head = (d.head + 1) & (len(d.ring) - 1)
		d.n--
		if d.shown--; d.n == 0 {
			d.ring, d.head = nil, 0 // an idle mailbox costs nothing but itself
		}
	default:
		return v, false, d.end
	}
	d.last, d.returned = v, true
	return v, true, nil
}

func (d *Delta[T]) growLocked(n int) {
	if n <= len(d.ring) {
		return
	}
	size := max(len(d.ring), 1) // many mailboxes never hold more than one value
	for size < n {
		size *= 2
	}
	ring := make([]T, size)
	for i := range d.n {
		ring[i] = d.ring[(d.head+i)&(len(d.ring)-1)]
	}
	d.ring, d.head = ring, 0
}
