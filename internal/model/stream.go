package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger/canon"
)

// event is an event of a subscription of any kind, as far as a reader looks.
type event struct {
	kind    chain.EventKind
	because chain.Because
	at      chain.At
	mark    *chain.At
	id      string
	key     string // what it says, in a form that the oracle's blocks can be put into too
	cursor  chain.Cursor
	stands  bool // it has a cursor
	utxo    *chain.UTxO
}

// stream is a subscription of any kind.
type stream interface {
	// poll returns the next event; where it is still read from the past, it waits.
	poll(wait time.Duration) (event, bool, error)
	replaying() bool
	cancel()
	cursor() (chain.Cursor, bool)
}

type typedStream[E any] struct {
	sub  hub.Subscription[E]
	flat func(*E) event
}

func (s typedStream[E]) cancel() { s.sub.Cancel() }

func (s typedStream[E]) cursor() (chain.Cursor, bool) {
	return s.sub.(interface{ Cursor() (chain.Cursor, bool) }).Cursor()
}

func (s typedStream[E]) poll(wait time.Duration) (event, bool, error) {
	if s.replaying() { // what it reads takes time
		ctx, stop := context.WithTimeout(context.Background(), wait)
		defer stop()
		e, err := s.sub.Next(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return event{}, false, nil
		case err != nil:
			return event{}, false, err
		}
		return s.flat(&e), true, nil
	}
	e, ok, err := s.sub.Poll()
	if !ok || err != nil {
		return event{}, false, err
	}
	return s.flat(&e), true, nil
}

// replaying tells whether the stream is still in the past.
func (s typedStream[E]) replaying() bool {
	past, is := s.sub.(interface{ Replaying() bool })
	return is && past.Replaying()
}

func flatUTxO(e *chain.UTxOEvent) event {
	out := event{kind: e.Kind, because: e.Because, at: e.At, mark: e.Mark, id: e.ID(), utxo: e.UTxO}
	out.cursor, out.stands = e.Cursor()
	switch {
	case e.Kind == chain.Idle:
		out.key = "idle"
	case e.Kind == chain.Created:
		out.key = fmt.Sprintf("+%s@%d valid=%v", canon.AppendUTxO(nil, e.UTxO.Ref, &e.UTxO.Out), e.UTxO.At.Height, e.TxValid)
	case e.Kind == chain.Spent:
		out.key = fmt.Sprintf("-%s by %s@%d valid=%v", canon.AppendUTxO(nil, e.UTxO.Ref, &e.UTxO.Out), e.Tx, e.UTxO.At.Height, e.TxValid)
	}
	return out
}

func flatTx(e *chain.TxEvent) event {
	out := event{kind: e.Kind, at: e.At, mark: e.Mark, id: e.ID()}
	out.cursor, out.stands = e.Cursor()
	switch e.Kind {
	case chain.Idle:
		out.key = "idle"
	case chain.Included:
		out.key = fmt.Sprintf("%s valid=%v -%d +%d", e.Tx.ID, e.Tx.Valid, len(e.Tx.Spent), len(e.Tx.Created))
	}
	return out
}

func (w *world) flatBlock(e *chain.BlockEvent) event {
	out := event{kind: e.Kind, at: e.At, mark: e.Mark, id: e.ID()}
	out.cursor, out.stands = e.Cursor()
	switch e.Kind {
	case chain.Idle:
		out.key = "idle"
	case chain.Applied:
		out.key = "block"
		if e.Block.At != e.At || !slices.Equal(e.Block.Block, w.raw[e.At.Point]) {
			at := 0
			a, b := e.Block.Block, w.raw[e.At.Point]
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			out.key = fmt.Sprintf("a block %v of %d bytes that differs at %d from the %d it has", e.Block.At, len(a), at, len(b))
		}
	}
	return out
}
