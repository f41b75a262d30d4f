package model

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger/canon"
	"github.com/ourotail/ourotail/query"
)

// held is what a reader knows of one output.
type held struct {
	line    string
	created chain.Height
	spent   chain.Height // notSpent if it is unspent
}

const notSpent chain.Height = -2

// reader takes events and checks each against what it took before; it goes on
// from one follower to the next.
type reader struct {
	w     *world
	name  string
	kind  hub.Kind
	q     query.UTxO
	opts  hub.Options
	rate  int // events read at a look, -1 for all, 0 for none before everything is settled
	s     stream
	ended bool // cancelled for good

	start   chain.At // events of blocks above it are due
	known   bool     // whether start is
	pos     chain.At // of the newest event
	cursor  chain.Cursor
	resumes bool         // cursor is set
	last    chain.Cursor // of the last event of this stream
	stood   bool         // whether that has one
	blocks  map[chain.Point][]string
	at      map[chain.Point]chain.At
	sound   chain.Height // blocks up to it have been compared
	ids     map[string]chain.Height
	set     map[chain.TxIn]*held
	folds   bool // the set means something
	seeding bool
	early   bool // it asked for a depth that the journal did not reach then
	base    chain.At
	based   bool
	events  int
	rolled  int
}

func (r *reader) forget() {
	r.start, r.known, r.pos, r.resumes = chain.Origin, false, chain.Origin, false
	r.blocks, r.at, r.ids, r.set = map[chain.Point][]string{}, map[chain.Point]chain.At{}, map[string]chain.Height{}, map[chain.TxIn]*held{}
	r.sound, r.seeding, r.based = chain.OriginHeight, false, false
	r.folds = r.kind == hub.UTxOs && r.opts.Events == hub.CreatedAndSpent && (r.opts.Start == hub.Origin || r.opts.Seed != hub.NoSeed)
}

func (r *reader) seeded() bool {
	return r.kind == hub.UTxOs && r.opts.Start == hub.Tip && r.opts.Seed != hub.NoSeed && r.opts.Events != hub.SpentOnly
}

func (r *reader) depth() chain.Height {
	if r.opts.NoRollback {
		return max(r.opts.Confirmations, r.w.k)
	}
	return r.opts.Confirmations
}

func (r *reader) fail(format string, args ...any) {
	r.w.t.Helper()
	r.w.fail("reader %s at %v: %s", r.name, r.pos, fmt.Sprintf(format, args...))
}

// subscribe opens a stream with options.
func (r *reader) subscribe(app *ourotail.Follower, o hub.Options) (stream, error) {
	r.stood = false
	switch r.kind {
	case hub.UTxOs:
		sub, err := app.SubscribeUTxOs(r.w.t.Context(), r.q, o)
		if err != nil {
			return nil, err
		}
		return typedStream[chain.UTxOEvent]{sub, flatUTxO}, nil
	case hub.Txs:
		sub, err := app.SubscribeTxs(query.EveryTx(), o)
		if err != nil {
			return nil, err
		}
		return typedStream[chain.TxEvent]{sub, flatTx}, nil
	default:
		sub, err := app.SubscribeBlocks(query.EveryBlock(), o)
		if err != nil {
			return nil, err
		}
		return typedStream[chain.BlockEvent]{sub, r.w.flatBlock}, nil
	}
}

// begin subscribes anew; false if that is refused for a reason that holds.
func (r *reader) begin() bool {
	w := r.w
	w.t.Helper()
	r.forget()
	synctest.Wait() // what the state is must still hold when it has subscribed
	app := w.life.app
	st := app.State()
	s, err := r.subscribe(app, r.opts)
	if err != nil {
		tip := w.published(st.Head.At())
		gate := tip.Height - r.depth()
		switch {
		case w.life.ended(): // while another reader waited for its past
		case r.opts.Start == hub.Origin && (isA[*hub.OlderError](err) || errors.Is(err, hub.ErrReach)) && !w.published(st.Floor).IsOrigin():
		case errors.Is(err, hub.ErrReach) && gate < st.Floor.Height:
		case r.opts.Start == hub.Tip && r.opts.Seed != hub.NoSeed && errors.Is(err, hub.ErrUnsupported) && !r.opts.AcceptScan:
		default:
			r.fail("refused: %v (head %v, floor %v, highest %d)", err, st.Head.At(), st.Floor, st.Highest)
		}
		return false
	}
	r.s = s
	switch {
	case r.opts.Start == hub.Origin:
		r.start, r.known = chain.Origin, true
	case r.opts.Start == hub.After:
		r.start, r.known = r.opts.After.At, true
	case r.seeded():
		r.seeding, r.early = true, st.Floor.Height > w.published(st.Head.At()).Height-r.depth()
		if c, ok := s.cursor(); ok { // an empty seed has it at once
			r.seedEnds(c.At)
		}
	default:
		r.start, r.known = w.gate(st.Head.At(), r.depth()), true
	}
	r.pos, r.sound = r.start, r.start.Height
	return true
}

func (r *reader) seedEnds(at chain.At) {
	r.seeding = false
	r.start, r.known, r.pos, r.sound = at, true, at, at.Height
	r.base, r.based = at, true
}

// resume goes on in another follower, or behind an overflow, where the reader
// stands.
func (r *reader) resume() {
	w := r.w
	w.t.Helper()
	if !r.resumes {
		r.startOver("nothing to resume from")
		return
	}
	synctest.Wait()
	app := w.life.app
	st := app.State()
	o := r.opts
	o.Seed, o.Start, o.After = hub.NoSeed, hub.Resume, r.cursor
	s, err := r.subscribe(app, o)
	switch {
	case err == nil:
		r.s = s
	case isA[*hub.OlderError](err):
		inside := r.cursor.Place >= 0 && r.cursor.At.Height == st.Floor.Height // the rest of that block is gone
		if r.cursor.At.Height >= st.Floor.Height && !inside && w.onChain(r.cursor.At) {
			r.fail("cursor %v refused: %v", r.cursor, err)
		}
		r.startOver(err.Error())
	case errors.Is(err, hub.ErrUnknownPoint):
		r.ancestor(app, o, err)
	case isA[*hub.GapError](err) && r.cursor.Place >= 0 && r.cursor.At.Height <= st.Floor.Height: // the rest of that block is gone
		r.startOver(err.Error())
	case errors.Is(err, hub.ErrResync) && (r.cursor.HasBase || w.common(r.cursor.At, originOr(st.Head)).Height < st.Floor.Height):
		r.startOver(err.Error())
	default:
		r.fail("cursor %v refused: %v (head %v, floor %v, highest %d)", r.cursor, err, st.Head.At(), st.Floor, st.Highest)
	}
}

// ancestor goes on from where the branch that the reader stands on left the
// chain, which the store remembers.
func (r *reader) ancestor(app *ourotail.Follower, o hub.Options, why error) {
	w := r.w
	w.t.Helper()
	synctest.Wait()
	st := app.State()
	at, err := app.Ancestor(r.cursor.At.Point)
	if err != nil {
		if common := w.common(r.cursor.At, st.Head.At()); st.Highest-common.Height <= w.k && w.remembered(r.cursor.At.Point) {
			r.fail("%v is not known, though its branch left %d blocks below the highest: %v, %v", r.cursor, st.Highest-common.Height, err, why)
		}
		r.startOver(err.Error())
		return
	}
	if want := w.published(w.common(r.cursor.At, st.Head.At())); at != want {
		r.fail("the ancestor of %v is %v, want %v", r.cursor.At, at, want)
	}
	if r.cursor.HasBase && r.cursor.Base.Height > at.Height {
		r.startOver("the base is above the ancestor")
		return
	}
	r.rollBack(at, nil)
	o.After = chain.Cursor{At: at, Place: chain.WholeBlock, Base: r.cursor.Base, HasBase: r.cursor.HasBase}
	s, err := r.subscribe(app, o)
	if err != nil {
		if at.Height < st.Floor.Height && (isA[*hub.OlderError](err) || errors.Is(err, hub.ErrResync)) {
			r.startOver(err.Error())
			return
		}
		r.fail("going on after %v refused: %v (floor %v)", at, err, st.Floor)
	}
	r.cursor = o.After
	r.s = s
}

func (r *reader) startOver(why string) {
	r.w.note("  reader %s starts over: %s", r.name, why)
	r.w.report.Fresh++
	if r.opts.Start == hub.After || r.opts.Start == hub.Resume {
		r.opts.Start = hub.Tip
	}
	if !r.begin() {
		r.end()
	}
}

func (r *reader) end() {
	r.ended, r.s = true, nil
	r.w.readers = slices.DeleteFunc(r.w.readers, func(x *reader) bool { return x == r })
}

// While it is given the past, a reader that wants all there is asks in vain so often,
// and waits so long each time; if it gets nothing for some time, it waits for longer,
// and that counts as often as it is longer.
const (
	endurance  = 20000
	impatience = 100 // if it will be looked at again soon
	wait       = 100 * time.Millisecond
	wholeWait  = 100
)

// read takes at most n events, all there are if n is negative.
func (r *reader) read(n, tries int) {
	r.w.t.Helper()
	for vain := 0; n != 0 && r.s != nil; n-- {
		past := r.s.replaying()
		times := 1
		if vain >= wholeWait {
			times = wholeWait
		}
		e, ok, err := r.s.poll(wait * time.Duration(times))
		if r.w.life.dead() { // the wait may have been long
			return
		}
		if err != nil {
			r.died(err)
			continue
		}
		if !ok && n < 0 && vain < tries && past {
			vain += times
			continue
		}
		if !ok {
			if c, ok := r.s.cursor(); ok { // a quiet reader's cursor does not age
				r.cursor, r.resumes = c, true
			}
			return
		}
		r.take(&e)
	}
}

// died handles the end of the stream that nobody asked for.
func (r *reader) died(err error) {
	w := r.w
	w.t.Helper()
	r.s = nil
	var full *hub.OverflowError
	var older *hub.OlderError
	switch {
	case errors.As(err, &full):
		w.report.Overflows++
		if full.Resumable != r.stood || full.Resumable && full.Cursor != r.last || full.Lost < 1 {
			r.fail("overflow names %v (%v), %d lost; the last event had %v (%v)", full.Cursor, full.Resumable, full.Lost, r.last, r.stood)
		}
		w.note("  reader %s: %v", r.name, err)
		if !r.stood { // it begins with more than it may hold
			r.opts.Bound = hub.Unbounded
		}
		r.resume()
	case errors.As(err, &older) && !w.archive: // it was so slow that its past is no longer within k
		w.note("  reader %s: %v", r.name, err)
		r.end()
	case !errors.Is(err, io.EOF) && w.life.ended(): // it failed with everything
	case errors.Is(err, hub.ErrResync) && r.based && r.forgotten(): // what would correct its seed is no longer known
		w.note("  reader %s: %v", r.name, err)
		r.end()
	case r.seeding && errors.Is(err, hub.ErrResync) && r.early:
		w.note("  reader %s has no seed so far from the tip: %v", r.name, err)
		r.end()
	default:
		r.fail("ended: %v", err)
	}
}

// forgotten tells whether a fork took a part of its base so long ago that the store
// may have forgotten what those blocks did.
func (r *reader) forgotten() bool {
	st := r.w.life.app.State()
	common := r.w.common(r.base, originOr(st.Head))
	return common.Height < r.base.Height && (common.Height < st.Highest-r.w.k || !r.w.remembered(r.base.Point))
}

func (r *reader) take(e *event) {
	w := r.w
	w.t.Helper()
	r.events++
	w.report.Events++
	w.traced("%s %v %v %s %s", r.name, e.kind, e.at, e.id, e.key)
	if e.kind == chain.RolledBack {
		if e.mark == nil || e.mark.Height <= e.at.Height {
			r.fail("rolled back to %v from %v", e.at, e.mark)
		}
		if highest := w.life.app.State().Highest; r.opts.NoRollback || highest-e.at.Height <= r.depth() {
			r.fail("at depth %d it sees a rollback to %v, the highest is %d", r.depth(), e.at, highest)
		}
		r.rollBack(e.at, e.mark)
		w.report.Rollbacks++
	} else {
		if old, ok := r.ids[e.id]; ok && e.because != chain.Correction {
			r.fail("%s again, the first time at height %d", e.id, old)
		}
		r.ids[e.id] = e.at.Height
		switch e.because {
		case chain.Seed:
			if r.known && !r.seeding && r.opts.Start != hub.Origin {
				r.fail("a seed event behind the seed: %s", e.id)
			}
			r.hold(e)
			if e.mark != nil && r.opts.Start != hub.Origin {
				r.seedEnds(*e.mark)
			}
		case chain.Correction:
			if !r.based || e.mark == nil {
				r.fail("a correction without a base: %s", e.id)
			}
			r.hold(e)
		default:
			r.live(e)
		}
	}
	r.last, r.stood = e.cursor, e.stands
	r.cursor, r.resumes = e.cursor, e.stands
}

// live takes an event of a block.
func (r *reader) live(e *event) {
	r.w.t.Helper()
	if r.seeding {
		r.fail("%s before the seed's end", e.id)
	}
	if !r.w.descends(e.at, r.pos) {
		r.fail("%s at %v does not stand on it: a rollback is missing, or comes late", e.id, e.at)
	}
	if highest := r.w.life.app.State().Highest; e.at.Height > highest-r.depth() {
		r.fail("%v is given %d below the highest, %d is asked for", e.at, highest-e.at.Height, r.depth())
	}
	r.pos = e.at
	r.blocks[e.at.Point] = append(r.blocks[e.at.Point], e.key)
	r.at[e.at.Point] = e.at
	switch {
	case e.utxo == nil:
	case e.kind == chain.Created:
		r.hold(e)
	case e.kind == chain.Spent:
		h := r.set[e.utxo.Ref]
		switch {
		case h == nil && r.folds:
			r.fail("%s spends what it does not know", e.id)
		case h == nil:
			r.set[e.utxo.Ref] = &held{created: chain.OriginHeight, spent: e.at.Height}
		case h.spent != notSpent:
			r.fail("%s spends what was spent at height %d", e.id, h.spent)
		default:
			h.spent = e.at.Height
		}
	}
}

// hold takes an output into the set.
func (r *reader) hold(e *event) {
	r.w.t.Helper()
	ref := e.utxo.Ref
	if h := r.set[ref]; h != nil && (r.folds || h.created > chain.OriginHeight) {
		if e.because == chain.Correction && h.spent == notSpent {
			return // a correction may come twice
		}
		r.fail("%s makes what was made at height %d", e.id, h.created)
	}
	r.set[ref] = &held{line: string(canon.AppendUTxO(nil, ref, &e.utxo.Out)), created: e.at.Height, spent: notSpent}
}

// rollBack discards what lies above a point; from is where the reader stood, nil
// if it finds out by itself.
func (r *reader) rollBack(to chain.At, from *chain.At) {
	w := r.w
	w.t.Helper()
	r.rolled++
	if r.seeding {
		r.fail("rolled back to %v before the seed's end", to)
	}
	if from != nil && (!w.descends(*from, r.pos) || !w.descends(*from, to)) {
		r.fail("rolled back to %v from %v", to, *from)
	}
	for p, at := range r.at {
		if at.Height > to.Height {
			delete(r.at, p)
			delete(r.blocks, p)
		}
	}
	for id, h := range r.ids {
		if h > to.Height {
			delete(r.ids, id)
		}
	}
	for ref, h := range r.set {
		switch {
		case h.created > to.Height:
			delete(r.set, ref)
		case h.spent > to.Height:
			h.spent = notSpent
		}
	}
	if r.pos.Height > to.Height {
		r.pos = to
	}
	if r.start.Height > to.Height {
		r.start = to
	}
	if r.based && r.base.Height > to.Height {
		r.base = to
	}
	r.sound = min(r.sound, to.Height)
}

func isA[T error](err error) bool {
	var as T
	return errors.As(err, &as)
}
