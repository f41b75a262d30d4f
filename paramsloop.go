package ourotail

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger/params"
)

// ParamsEvent are protocol parameters that have come into force, with where and when
// the node was asked.
type ParamsEvent struct {
	hub.ProtocolParams // Raw is as the node encodes them
	// Params is Raw taken apart, nil if it cannot be: DecodeError says why.
	Params      *params.Params
	DecodeError error
}

// Params yields the protocol parameters in force, the present ones first, as soon as
// the node has told them, then those of each epoch in which, and each fork after which,
// others may hold. A slow reader misses those in between, never the last. In Byron,
// which has others, there are none.
//
// They are asked of the node beside following, which is started as with UTxOs. That
// they cannot be had ends this loop and others like it with an error, nothing else;
// it may be begun again.
func (f *Follower) Params(ctx context.Context) iter.Seq2[ParamsEvent, error] {
	return func(yield func(ParamsEvent, error) bool) {
		sub, err := f.SubscribeParams()
		if err != nil {
			yield(ParamsEvent{}, err)
			return
		}
		defer sub.Cancel()
		defer f.demand()()
		for {
			p, err := sub.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			e := ParamsEvent{ProtocolParams: p}
			if err == nil {
				e.Params, e.DecodeError = params.Decode(p.Era, p.Raw)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
