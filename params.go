package ourotail

import (
	"bytes"
	"context"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
)

// paramsPatience is how many attempts in a row fail before the subscribers for
// parameters do, while the node serves its chain. One that is away is waited for,
// as everybody else waits.
const paramsPatience = 3

// learned is what the node was last asked.
type learned struct {
	ever   bool
	epoch  uint64       // whose parameters they are
	height chain.Height // of the block they were read at
	slot   chain.Slot   // of the tip when the node was asked
	params *chainsync.Params
}

// learn asks the node for calendar and parameters: at the beginning, when the tip
// has come into another epoch, forward or by a fork, and when the calendar is about
// to end. That is one short connection each; nothing else depends on it. Errors
// end neither following nor this.
func (f *Follower) learn(ctx context.Context) error {
	node, ok := f.node.(ledgerNode)
	if !ok {
		return nil
	}
	tick := time.NewTicker(factsEvery)
	defer tick.Stop()
	var last learned
	var again time.Time // not before
	for failures := 0; ; {
		now := f.Progress()
		if f.connected.Load() && time.Now().After(again) && f.unlearned(&last, now.Tip) {
			switch err := f.ask(ctx, node, &last, now.Tip); {
			case ctx.Err() != nil:
			case err == nil:
				failures = 0
			default:
				failures++
				again = time.Now().Add(min(slowRetry, factsEvery<<min(failures, 10)))
				f.paramsFailed(err, failures, now.Phase)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// unlearned tells whether the node would have something new to say.
func (f *Follower) unlearned(last *learned, tip chain.Tip) bool {
	if !last.ever {
		return true
	}
	if tip.Point.IsOrigin() || tip.Height < last.height {
		return false // the node was further when it was asked than what it has sent
	}
	calendar := f.calendar.best()
	epoch, _, err := calendar.Epoch(tip.Point.Slot)
	if err != nil || epoch != last.epoch {
		return true
	}
	// A hard fork can be no nearer than the safe zone. Once that reaches beyond the
	// horizon a node knows the next one, or will soon.
	zone := chain.Slot(calendar.List[len(calendar.List)-1].SafeZone)
	horizon, _, ends := calendar.Horizon()
	return ends && zone > 0 && tip.Point.Slot+zone >= horizon && tip.Point.Slot > last.slot+zone/8
}

// ask asks and tells who wants to know.
func (f *Follower) ask(ctx context.Context, node ledgerNode, last *learned, tip chain.Tip) error {
	calendar, p, err := node.facts(ctx)
	if len(calendar.List) > 0 {
		f.calendar.set(calendar)
	}
	if err != nil {
		return err
	}
	next := learned{ever: true, height: tip.Height, slot: tip.Point.Slot, params: p}
	if p == nil { // in Byron, whose parameters are others: ask again in the next epoch
		next.epoch, _, _ = calendar.Epoch(tip.Point.Slot)
	} else {
		next.epoch, next.height = p.Epoch, p.At.Height
		if last.params == nil || last.params.Epoch != p.Epoch || !bytes.Equal(last.params.Raw, p.Raw) {
			f.hub.SetParams(hub.ProtocolParams(*p))
		}
	}
	*last = next
	return nil
}

// paramsFailed tells the subscribers for parameters, and nobody else, once it is
// no passing trouble.
func (f *Follower) paramsFailed(err error, failures int, phase follow.Phase) {
	serving := phase == follow.Following || phase == follow.Syncing
	if failures == 1 {
		f.cfg.Logger.Warn("the node does not tell its protocol parameters, trying again", "error", err)
	}
	if !chainsync.Retryable(err) || serving && failures >= paramsPatience {
		f.hub.ParamsFailed(err)
	}
}
