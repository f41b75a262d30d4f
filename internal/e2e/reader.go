package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger/canon"
)

// held is what a reader knows of one output.
type held struct {
	utxo    *chain.UTxO
	created chain.Height // of the event that told of it
	spent   chain.Height // noSpend if it is unspent
}

const noSpend chain.Height = -2

// Reader folds the events of a subscription into the set they describe, as the
// contract (4.1) tells a reader to, and checks what it can check alone.
type Reader struct {
	sub  hub.Subscription[chain.UTxOEvent]
	seen sync.WaitGroup

	mu       sync.Mutex
	set      map[chain.TxIn]*held
	at       chain.At // of the newest event
	deepest  chain.Height
	rolled   int
	events   int
	failures []string
	err      error
}

// NewReader reads a subscription on a goroutine of its own until it ends.
func NewReader(ctx context.Context, sub hub.Subscription[chain.UTxOEvent]) *Reader {
	r := &Reader{sub: sub, set: map[chain.TxIn]*held{}, at: chain.Origin}
	r.seen.Go(func() {
		for ev, err := range sub.All(ctx) {
			r.mu.Lock()
			if err != nil {
				r.err = err
			} else {
				r.take(&ev)
			}
			r.mu.Unlock()
		}
	})
	return r
}

// Wait waits for the end of the subscription.
func (r *Reader) Wait() { r.seen.Wait() }

func (r *Reader) fail(format string, args ...any) {
	if len(r.failures) < 5 {
		r.failures = append(r.failures, fmt.Sprintf(format, args...))
	}
}

func (r *Reader) take(e *chain.UTxOEvent) {
	r.events++
	switch e.Kind {
	case chain.RolledBack:
		r.rolled++
		// It may stand above its newest event: silence was given to it too.
		if e.Mark == nil || e.Mark.Height <= e.At.Height {
			r.fail("rolled back to %v from %v", e.At, e.Mark)
		} else {
			r.deepest = max(r.deepest, e.Mark.Height-e.At.Height)
		}
		for ref, h := range r.set {
			switch {
			case h.created > e.At.Height:
				delete(r.set, ref)
			case h.spent > e.At.Height:
				h.spent = noSpend
			}
		}
		if r.at.Height > e.At.Height {
			r.at = e.At
		}
		return
	case chain.Idle:
		r.at = e.At
		return
	}
	if e.Because == chain.Live {
		if e.At.Height < r.at.Height || e.At.Height == r.at.Height && e.At != r.at {
			r.fail("%v after %v", e.At, r.at)
		}
		r.at = e.At
	}
	ref := e.UTxO.Ref
	h := r.set[ref]
	switch {
	case e.Kind == chain.Created && h != nil:
		r.fail("%v created twice, at %v and height %d", ref, e.At, h.created)
	case e.Kind == chain.Created:
		r.set[ref] = &held{utxo: e.UTxO, created: e.At.Height, spent: noSpend}
	case h == nil:
		r.set[ref] = &held{utxo: e.UTxO, created: chain.OriginHeight, spent: e.At.Height} // made before we looked
	case h.spent != noSpend:
		r.fail("%v spent twice, at %v and height %d", ref, e.At, h.spent)
	default:
		h.spent = e.At.Height
	}
}

// Lines returns the canonical lines of the set, sorted.
func (r *Reader) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, h := range r.set {
		if h.spent == noSpend {
			out = append(out, string(canon.AppendUTxO(nil, h.utxo.Ref, &h.utxo.Out)))
		}
	}
	slices.Sort(out)
	return out
}

// Problems returns what the reader found wrong by itself.
func (r *Reader) Problems() (problems []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures, r.err
}
