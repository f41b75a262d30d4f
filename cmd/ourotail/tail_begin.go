package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
)

// exitCursor is tail's: the place to go on from is not to be had any more, or not yet.
const exitCursor = 16

// catchUp brings a follower to a height, or waits until it has come there.
type catchUp func(context.Context, chain.Height) error

// begin subscribes where a request says. Events that come before the stream's own
// are returned in first.
func (q *tailRequest) begin(ctx context.Context, f *ourotail.Follower, bound int, catchUp catchUp) (sub hub.Stream[chain.UTxOEvent], first []chain.UTxOEvent, err error) {
	opts := q.options(bound)
	what := "--from " + q.from.text
	switch {
	case q.after != nil:
		what = "the cursor"
		first, err = q.beginAfter(ctx, f, &opts, catchUp)
	case q.from.tip:
		var tip chain.Tip
		if tip, err = f.NodeTip(ctx); err == nil && tip.Height > f.State().Head.Height {
			err = catchUp(ctx, tip.Height)
		}
	case q.from.era != 0:
		var at chain.At
		if at, err = f.BeforeEra(q.from.era); err == nil {
			opts.Start, opts.After = hub.After, chain.Cursor{At: at, Place: chain.WholeBlock}
		}
		if at.IsOrigin() {
			opts.Start = hub.Origin
		}
		if errors.Is(err, ourotail.ErrNoEra) {
			err = usage("--from %s: %w", q.from.text, err)
		}
	case q.from.point.IsOrigin():
		opts.Start = hub.Origin
	default:
		first, err = q.beginAt(f, &opts)
	}
	if err != nil {
		return nil, nil, err
	}
	sub, err = f.SubscribeUTxOs(ctx, q.query, opts)
	return sub, first, q.refusal(f, what, err)
}

// beginAfter goes on behind a cursor.
func (q *tailRequest) beginAfter(ctx context.Context, f *ourotail.Follower, opts *hub.Options, catchUp catchUp) (first []chain.UTxOEvent, err error) {
	c := q.after.Cursor
	if magic := f.State().Magic; q.after.Magic != magic {
		return nil, coded(exitDiverged, fmt.Errorf("the cursor is of the network with magic %d, %s is of %d: it was kept for another stream; %s", q.after.Magic, f.Path(), magic, again(f, nil)))
	}
	if c.At.Height > f.State().Highest { // a directory that was made anew may have to come there first
		tip, err := f.NodeTip(ctx)
		if err != nil {
			return nil, err
		}
		if tip.Height < c.At.Height {
			return nil, coded(exitCursor, fmt.Errorf("the cursor is from the future: it stands at %v, the node's tip is %v: has the node been set back? If it has, %s", c.At, tip, again(f, nil)))
		}
		if err := catchUp(ctx, c.At.Height); err != nil {
			return nil, err
		}
	}
	opts.Start, opts.After, opts.Seed = hub.Resume, c, hub.NoSeed
	if !q.undo || q.noRollback {
		return nil, nil
	}
	ours := c.At.IsOrigin()
	if !ours {
		if _, ours, err = f.Find(c.At.Point); err != nil {
			return nil, err
		}
	}
	if ours { // otherwise the stream itself begins with an undo
		undo := chain.UTxOEvent{Kind: chain.RolledBack, At: c.At, NoCursor: c.Place >= 0}
		if c.HasBase {
			undo.Base = &c.Base
		}
		first = append(first, undo)
	}
	return first, nil
}

// beginAt begins behind a point that was ours once.
func (q *tailRequest) beginAt(f *ourotail.Follower, opts *hub.Options) (first []chain.UTxOEvent, err error) {
	at, err := f.Ancestor(q.from.point)
	if errors.Is(err, ourotail.ErrForgotten) {
		return nil, coded(exitUsage, fmt.Errorf("--from %s: %w; the head of %s is %s: give an older point of yours; %s", q.from.point, err, f.Path(), f.State().Head.At(), again(f, nil)))
	}
	if err != nil {
		return nil, err
	}
	found, ok, err := f.Find(q.from.point)
	if err != nil {
		return nil, err
	}
	if !ok || found != at { // undone meanwhile: what lies above has to be discarded
		first = append(first, chain.UTxOEvent{Kind: chain.RolledBack, At: at})
	}
	opts.Start, opts.After = hub.After, chain.Cursor{At: at, Place: chain.WholeBlock}
	return first, nil
}

// refusal says why lines cannot begin where they should, and what is left to do.
func (q *tailRequest) refusal(f *ourotail.Follower, what string, err error) error {
	if err == nil {
		return nil
	}
	code := exitUsage
	if q.after != nil {
		code = exitCursor
	}
	var older *hub.OlderError
	isOlder := errors.As(err, &older)
	again := again(f, older)
	switch {
	case isOlder && what == "--from origin":
		return coded(code, fmt.Errorf("%s needs the history of spent outputs, which this data directory does not keep: %s. Or give an empty --data-dir", what, again))
	case isOlder:
		return coded(code, fmt.Errorf("%s lies at %v, before the history that is kept: %s", what, older.Point, again))
	case errors.Is(err, ourotail.ErrFuture): // a fork came between our look and this
		return coded(code, fmt.Errorf("%s is from the future: %w; %s", what, err, again))
	case errors.Is(err, hub.ErrUnknownPoint), errors.Is(err, ourotail.ErrForgotten):
		return coded(code, fmt.Errorf("%s is forgotten: its block is not on the chain, and was not undone lately (%w); %s", what, err, again))
	case errors.Is(err, hub.ErrResync):
		return coded(code, fmt.Errorf("%s: %w; %s", what, err, again))
	case errors.Is(err, hub.ErrShallow):
		return coded(code, fmt.Errorf("%s lies above what may be shown yet (%w): it was kept with fewer confirmations; %s", what, err, again))
	}
	return err
}

// again is the way on that every refusal names. older is what the hub says, if it does.
func again(f *ourotail.Follower, older *hub.OlderError) string {
	st := f.State()
	switch {
	case older != nil:
		return wayOn(f.Path(), older.Oldest)
	case st.Archive:
		return wayOn(f.Path(), chain.Origin)
	}
	return wayOn(f.Path(), st.Floor)
}

func wayOn(dir string, oldest fmt.Stringer) string {
	return fmt.Sprintf("the oldest point from which %s can go on is %v. To start over, begin with what exists: --include-existing", dir, oldest)
}

// withWayOn names the way on where a cursor cannot be read, which is seen before the
// directory is: as far as that can be asked at once.
func withWayOn(cmd *cobra.Command, err error) error {
	if !errors.Is(err, chain.ErrCursor) {
		return err
	}
	dir, derr := readDir(cmd)
	if derr != nil {
		return err
	}
	st, serr := statusOf(cmd.Context(), dir, time.Second)
	if serr != nil {
		return err //nolint:nilerr // the cursor is what is wrong
	}
	oldest := st.Floor
	if st.Retention == "archive" {
		oldest = chain.Origin.Point
	}
	return fmt.Errorf("%w; %s", err, wayOn(dir, oldest))
}
