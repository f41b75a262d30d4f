package mailbox

import (
	"context"
	"io"
	"iter"
)

// Latest is one slot for a value of which only the newest matters: a tip, the
// protocol parameters, the status of a transaction. It never overflows. The
// zero value is ready for use and has no owner.
type Latest[T any] struct {
	life
	ended func(error)

	value T
	next  T
	fresh bool // value has not been read
	have  bool // next waits for a Flush
}

// NewLatest returns an empty slot. If ended is not nil it is called exactly
// once, with no lock held, when the slot has died: ErrCancelled, io.EOF after
// a clean close, or the failure.
func NewLatest[T any](ended func(cause error)) *Latest[T] { return &Latest[T]{ended: ended} }

// OfferBuffered replaces the value at the next Flush; until then Next behaves
// as if this had not happened.
func (l *Latest[T]) OfferBuffered(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil && l.pending == nil {
		l.next, l.have, l.dirty = v, true, true
	}
}

// Offer is OfferBuffered and Flush.
func (l *Latest[T]) Offer(v T) {
	l.OfferBuffered(v)
	l.Flush()
}

// FailBuffered ends the slot with a failure, at Flush.
func (l *Latest[T]) FailBuffered(cause error) { l.endBuffered(failed(cause)) }

// Fail is FailBuffered and Flush.
func (l *Latest[T]) Fail(cause error) {
	l.endBuffered(failed(cause))
	l.Flush()
}

// CloseBuffered ends the slot cleanly, at Flush: a value that was not read is
// delivered first.
func (l *Latest[T]) CloseBuffered() { l.endBuffered(io.EOF) }

// Close is CloseBuffered and Flush.
func (l *Latest[T]) Close() {
	l.endBuffered(io.EOF)
	l.Flush()
}

func (l *Latest[T]) endBuffered(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil && l.pending == nil {
		l.pending, l.dirty = cause, true
	}
}

// Flush shows what was buffered; see Delta.Flush.
func (l *Latest[T]) Flush() {
	l.mu.Lock()
	if !l.dirty {
		l.mu.Unlock()
		return
	}
	l.dirty = false
	if l.end != nil { // cancelled between the two halves
		l.mu.Unlock()
		return
	}
	if l.have {
		var zero T
		l.value, l.fresh = l.next, true
		l.next, l.have = zero, false
	}
	if l.pending != nil {
		l.endLocked(l.pending)
	}
	l.leaveLocked()
}

// Cancel ends the slot at once; see Delta.Cancel.
func (l *Latest[T]) Cancel() {
	l.mu.Lock()
	if l.end != nil && (l.end != io.EOF || !l.fresh) {
		l.mu.Unlock()
		return
	}
	l.endLocked(ErrCancelled)
	l.leaveLocked()
}

func (l *Latest[T]) endLocked(cause error) {
	l.end, l.pending = cause, nil
	if cause != io.EOF {
		var zero T
		l.value, l.fresh, l.next, l.have = zero, false, zero, false
	}
}

func (l *Latest[T]) leaveLocked() {
	l.notifyLocked()
	cause, ended := l.end, l.ended
	tell := cause != nil && !l.told
	l.told = l.told || tell
	wake := l.wake != nil
	l.mu.Unlock()
	if tell && ended != nil {
		ended(cause)
	}
	if wake {
		l.runWake()
	}
}

// Next returns the newest value that was not returned before, waiting for one;
// see Delta.Next for its ends.
func (l *Latest[T]) Next(ctx context.Context) (T, error) {
	for {
		l.mu.Lock()
		v, ok, err := l.takeLocked()
		if ok || err != nil {
			l.mu.Unlock()
			return v, err
		}
		ch := l.waiterLocked()
		l.mu.Unlock()
		if err := await(ctx, ch); err != nil {
			return v, err
		}
	}
}

// Poll is Next for a reader that does not wait: false if there is nothing new.
func (l *Latest[T]) Poll() (v T, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked()
}

// All yields values until the slot is dead or the context ends; see Delta.All.
func (l *Latest[T]) All(ctx context.Context) iter.Seq2[T, error] { return all(ctx, l.Next) }

// Pending returns 1 if there is a value that was not read, or not flushed yet.
func (l *Latest[T]) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh || l.have {
		return 1
	}
	return 0
}

func (l *Latest[T]) takeLocked() (v T, ok bool, err error) {
	if !l.fresh {
		return v, false, l.end
	}
	v, l.fresh = l.value, false
	var zero T
	l.value = zero
	return v, true, nil
}
