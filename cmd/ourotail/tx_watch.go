package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// txReport is what is known of a transaction at one moment, and a line of tx --json.
type txReport struct {
	ID    chain.TxID `json:"id"`
	State string     `json:"state"` // pending, confirmed, failed, notfound or unknown
	// Of confirmed and failed: its block, when that was, and how many blocks were on
	// top of it.
	Point  *chain.Point `json:"point,omitempty"`
	Height chain.Height `json:"height,omitempty"`
	Time   *time.Time   `json:"time,omitempty"`
	OnTop  chain.Height `json:"on_top,omitempty"`
	// Of unknown: the oldest block that the answer speaks for.
	KnownFrom *chain.Point `json:"known_from,omitempty"`
}

func (r *txReport) onChain() bool { return r.Point != nil }

// txRequest is what is asked about a transaction.
type txRequest struct {
	id    chain.TxID
	wait  bool
	depth chain.Height // how many blocks have to be on top of its block
}

// report says what a status means for the request; tip is the height of the head.
func (q *txRequest) report(f *ourotail.Follower, st hub.TxStatus, tip chain.Height) txReport {
	r := txReport{ID: q.id, State: st.State.String()}
	switch st.State {
	case hub.TxConfirmed, hub.TxFailed:
		r.Point, r.Height, r.OnTop = &st.At.Point, st.At.Height, max(tip-st.At.Height, 0)
		if at, err := f.Time(st.At.Point.Slot); err == nil {
			r.Time = &at
		}
	case hub.TxUnknown:
		r.KnownFrom = &st.At.Point
	}
	return r
}

// now reports once.
func (q *txRequest) now(ctx context.Context, f *ourotail.Follower, emit func(txReport) error) error {
	st, err := f.TxStatus(ctx, q.id)
	if err != nil {
		return err
	}
	return emit(q.report(f, st, f.State().Head.Height))
}

// errFollowerEnds is returned when the follower was closed while it was watched.
var errFollowerEnds = errors.New(endingText)

// watch reports every change until the transaction is in a block that is as deep as
// asked.
func (q *txRequest) watch(ctx context.Context, f *ourotail.Follower, emit func(txReport) error) error {
	sub, err := f.SubscribeStatus(q.id)
	if err != nil {
		return err
	}
	defer sub.Cancel()
	tips, err := f.SubscribeTips()
	if err != nil {
		return err
	}
	defer tips.Cancel()
	news := make(chan struct{}, 1)
	wake := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	sub.Wake(wake)
	tips.Wake(wake)
	var st hub.TxStatus
	var last txReport
	for {
		changed, err := newest(sub, &st)
		if err != nil {
			return err
		}
		var tip chain.Tip
		if _, err := newest(tips, &tip); err != nil {
			return err
		}
		r := q.report(f, st, f.Progress().Head.Height)
		deep := r.onChain() && r.OnTop >= q.depth
		if changed || deep && last.OnTop < r.OnTop {
			last = r
			if err := emit(r); err != nil {
				return err
			}
		}
		if deep {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newest replaces v by the newest value of a subscription, if there is one that was
// not read.
func newest[T any](sub hub.Subscription[T], v *T) (bool, error) {
	got, ok, err := sub.Poll()
	if errors.Is(err, io.EOF) {
		err = errFollowerEnds
	}
	if ok && err == nil {
		*v = got
	}
	return ok, err
}

// text is a report for people.
func (r *txReport) text() string {
	switch {
	case r.onChain():
		when := ""
		if r.Time != nil {
			when = ", " + r.Time.Format(time.RFC3339)
		}
		what := "confirmed"
		if r.State == hub.TxFailed.String() {
			what = "failed: its scripts did, and its collateral was taken;"
		}
		return fmt.Sprintf("%s at %s, height %d%s, %s on top", what, r.Point, r.Height, when, plural(int(r.OnTop), "block"))
	case r.State == hub.TxPending.String():
		return "pending: in the node's mempool, or submitted"
	case r.State == hub.TxNotFound.String():
		return "not found: neither on the chain nor in the node's mempool"
	}
	return fmt.Sprintf("unknown: not in the node's mempool, and not in a block above %s; nothing is kept to tell of what lies before", r.KnownFrom)
}

// Exit codes of tx.
const (
	exitTxFailed  = 17 // in a block, but its scripts failed
	exitTxWaiting = 18 // pending, or not as deep as asked
	exitTxUnknown = 19 // not found, or not known
)

// verdict is what tx exits with.
func (q *txRequest) verdict(r *txReport) error {
	switch {
	case r == nil:
		return coded(exitTxUnknown, fmt.Errorf("nothing is known of %s", q.id))
	case r.State == hub.TxFailed.String():
		return coded(exitTxFailed, fmt.Errorf("%s %s", q.id, r.text()))
	case r.onChain() && r.OnTop >= q.depth:
		return nil
	case r.onChain(), r.State == hub.TxPending.String():
		return coded(exitTxWaiting, fmt.Errorf("%s %s", q.id, r.text()))
	}
	return coded(exitTxUnknown, fmt.Errorf("%s %s", q.id, r.text()))
}
