package hub

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// traceRun is a hub being driven by a trace.
type traceRun struct {
	*traceNames
	// thin makes the hub keep contents only as long as somebody is owed them, and
	// read them from kept.
	thin  bool
	kept  keptBlocks
	head  traceLine
	hub   *Hub
	subs  map[string]*UTxOSubscription
	watch map[string]Subscription[TxStatus]
	known map[string]string
	// submitted and onChain are the transactions submitted to this hub, and those
	// that were in a block it was given.
	submitted, onChain map[string]bool
}

// keptBlocks is a journal that forgets nothing.
type keptBlocks map[chain.Point]*chain.AppliedBlock

func (k keptBlocks) Block(at chain.At) (*chain.AppliedBlock, error) {
	if b := k[at.Point]; b != nil {
		return b, nil
	}
	return nil, errors.New("no such block")
}

func (r *traceRun) start() {
	if r.kept == nil {
		r.kept = keptBlocks{}
	}
	r.subs, r.watch, r.known = map[string]*UTxOSubscription{}, map[string]Subscription[TxStatus]{}, map[string]string{}
	r.submitted, r.onChain = map[string]bool{}, map[string]bool{}
	genesis := make([]*chain.UTxO, len(r.head.Genesis))
	for i, g := range r.head.Genesis {
		genesis[i] = r.utxo(g, chain.Origin)
	}
	cfg := Config{
		Capabilities: Capabilities{
			Kinds: allKinds(), Partial: r.head.Provider == "partial", Indexed: ^query.Kinds(0), Replay: true,
			Horizon: chain.Height(r.head.K), MaxConfirmations: chain.Height(r.head.Deepest), Idle: r.head.Idle,
		},
		FirstHeight: chain.Height(r.head.First), SeedWindow: chain.Height(r.head.Bound), Bound: Unbounded,
		Genesis: func(q query.UTxO) (rows []*chain.UTxO, err error) {
			for _, u := range genesis {
				if q.Match(u) {
					rows = append(rows, u)
				}
			}
			return rows, nil
		},
	}
	if r.thin && !cfg.Capabilities.Partial {
		cfg.Contents = r.kept
	}
	r.hub = New(cfg)
}

func (r *traceRun) options(l *traceLine) Options {
	o := Options{Confirmations: chain.Height(l.Depth), NoRollback: l.NoRollback, Idle: l.Idle}
	if len(l.Kinds) == 1 {
		o.Events = CreatedOnly
		if l.Kinds[0] == "spent" {
			o.Events = SpentOnly
		}
	}
	return o
}

func reasonOf(err error) string {
	var older *OlderError
	var gap *GapError
	switch {
	case errors.As(err, &older):
		return "older"
	case errors.As(err, &gap):
		return "gap"
	}
	for reason, e := range map[string]error{
		"dead": ErrFailed, "depth": ErrUnsupported, "reach": ErrReach, "shallow": ErrShallow, "unknown": ErrUnknownPoint,
		"height": ErrHeight, "ahead": ErrAhead, "seed unreadable": ErrSeed,
	} {
		if errors.Is(err, e) {
			return reason
		}
	}
	if errors.Is(err, ErrResync) {
		return "resync required"
	}
	return err.Error()
}

type subState struct{ await, held bool }

func (r *traceRun) states() map[string]subState {
	out := map[string]subState{}
	for name, s := range r.subs {
		out[name] = subState{s.state == await, s.state == await && s.wait.held}
	}
	return out
}

func (r *traceRun) perform(l *traceLine) outcome {
	before := r.states()
	o := outcome{Result: "ok", Events: map[string][]string{}, Died: map[string]string{}, Changed: map[string]string{}}
	refuse := func(err error) {
		if err != nil {
			o.Result, o.Reason = "refused", reasonOf(err)
			if r.hub.failed != nil && (l.Call == "apply" || l.Call == "rollback") {
				o.Result = "dead"
			}
		}
	}
	skip := ""
	switch l.Call {
	case "subscribe", "after":
		opts := r.options(l)
		if l.Call == "after" {
			opts.Start, opts.After = Resume, r.cursor(l.Cursor)
		} else {
			if l.Start == "origin" {
				opts.Start = Origin
			}
			switch l.seedMode() {
			case "now":
				opts.Seed, opts.Rows = SeedNow, r.rows(l.Rows)
			case "later":
				opts.Seed = SeedLater
			}
		}
		s, err := r.hub.SubscribeUTxO(r.query(l.Query), opts)
		refuse(err)
		if err == nil {
			r.subs[l.Sub] = s
			if s.state == await && l.seedMode() == "now" {
				o.Result = "stale"
			}
			if s.state == await && s.wait.held {
				o.Result = "held"
			}
			w := int64(s.watermark())
			o.Watermark = &w
			if s.state == dead {
				o.Result = "dead"
			}
		}
	case "seed":
		if s := r.subs[l.Sub]; s != nil {
			o.Result = s.Seed(r.at(l.At), r.rows(l.Rows)).String()
		} else {
			o.Result = "ignored"
		}
	case "seed_fail":
		o.Result = "ignored"
		if s := r.subs[l.Sub]; s != nil {
			s.SeedFailed(errors.New("disk"))
			if s.state == dead {
				o.Result = "dead"
			}
		}
	case "cancel":
		if s := r.subs[l.Sub]; s != nil {
			s.Cancel()
			delete(r.subs, l.Sub)
		}
		skip = l.Sub
	case "apply":
		for _, t := range l.Block.Txs {
			r.onChain[t.ID] = true
		}
		refuse(r.hub.ApplyBlock(r.block(l.Block)))
	case "rollback":
		refuse(r.hub.RollbackTo(r.at(l.To)))
	case "status":
		s, err := r.hub.SubscribeStatus(r.tx(l.Tx))
		if err != nil {
			o.Result, o.Reason = "refused", reasonOf(err)
			break
		}
		st, _, _ := s.Poll()
		o.Status = r.statusText(st)
		if old := r.watch[l.Tx]; old != nil {
			defer old.Cancel()
		}
		r.watch[l.Tx], r.known[l.Tx] = s, o.Status
		for tx, s := range r.watch {
			if !contains(l.Watched, tx) {
				s.Cancel()
				delete(r.watch, tx)
			}
		}
	case "submit":
		r.submitted[l.Tx] = true
		o.Status = r.statusText(r.hub.Submitted(r.tx(l.Tx)))
	default:
		panic("call " + l.Call)
	}
	for name, s := range r.subs {
		if name == skip {
			continue
		}
		for {
			e, ok, err := s.Poll()
			if err != nil {
				o.Died[name] = reasonOf(err)
				if name == l.Sub && l.Call != "cancel" {
					o.Reason = o.Died[name]
				}
				delete(r.subs, name)
			}
			if !ok {
				break
			}
			o.Events[name] = append(o.Events[name], r.eventText(&e))
		}
		freeOrder(o.Events[name])
		had := before[name]
		if s.state == live && had.await && name != l.Sub {
			o.Accepted = append(o.Accepted, name)
		}
		if s.state == await && had.held && !s.wait.held && name != l.Sub {
			o.Stale = append(o.Stale, name)
		}
	}
	for tx, s := range r.watch {
		if st, ok, _ := s.Poll(); ok {
			if text := r.statusText(st); text != r.known[tx] {
				o.Changed[tx] = text
				r.known[tx] = text
			}
		}
	}
	return o
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}

func (r *traceRun) statusText(s TxStatus) string {
	if s.onChain() {
		return s.State.String() + " " + r.atText(s.At)
	}
	return s.State.String()
}

func wantStatus(s []any) string {
	if len(s) == 0 {
		return ""
	}
	text := s[0].(string)
	if len(s) > 1 {
		at := s[1].([]any)
		text += fmt.Sprintf(" %v@%v", at[0], at[1])
	}
	return text
}
