package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/store"
)

// takeOver is how long a run that served us may be away before we follow ourselves:
// clearly longer than a service manager takes to bring it back. A tail that served us
// nobody restarts: of those that are left the first goes on.
var (
	takeOver     = time.Minute
	takeOverTail = 5 * time.Second
)

// lonely is how long a directory may be held, or gone, with nobody who answers.
const lonely = 30 * time.Second

// absence is a time without lines.
type absence struct {
	patience time.Duration // of whoever served us, 0 if nobody has
	until    time.Time     // before that the directory is left to them
	alone    time.Time     // since when it is held by somebody who does not answer; zero if it is not
	told     bool
}

func absent(patience time.Duration) absence {
	return absence{patience: patience, until: time.Now().Add(patience)}
}

// heldLong notes that the directory is held, and tells whether that has gone on for
// too long.
func (a *absence) heldLong() bool {
	if a.alone.IsZero() {
		a.alone = time.Now()
	}
	return time.Since(a.alone) > lonely
}

// say tells a person once why no lines come.
func (a *absence) say(t *tail) {
	if a.patience == 0 || a.told {
		return
	}
	a.told = true
	then := "follow myself"
	if t.cannot != nil {
		then = "end: no node is named to follow myself"
	}
	t.log.Warn("the follower that the lines came from has ended: waiting for it to come back", "at most", a.patience.String(), "then", then)
}

// quickly is how soon a follower is asked again at first.
const quickly = 20 * time.Millisecond

// run prints lines: from the follower that holds the directory, and if nobody does by
// following itself. Followers come and go; lines go on behind the last.
func (t *tail) run(ctx context.Context) error {
	if err := t.sink.begin(); err != nil {
		return err
	}
	if t.cfg.Resync { // starting over is no matter of sharing
		f, err := openFollower(ctx, t.cfg)
		if err != nil {
			return err
		}
		if err := t.follow(ctx, f); !errors.Is(err, errGaveUp) {
			return err
		}
	}
	gone := absence{}
	for wait := quickly; ; wait = min(2*wait, 400*time.Millisecond) {
		n := t.sink.counted
		if err := t.sink.goOn(); err != nil {
			return err
		}
		err := t.share(ctx)
		switch {
		case !errors.Is(err, errNoAnswer):
			return err
		case t.sink.begun && t.sink.last == nil:
			return fmt.Errorf("%w, and the outputs that exist had not all been printed: there is nothing to go on from", err)
		case errors.Is(err, errServed) || t.sink.counted > n:
			gone, wait = absent(t.patience()), quickly
		default:
			gone.say(t)
		}
		if !time.Now().Before(gone.until) {
			f, oerr := t.open(ctx)
			switch {
			case oerr == nil:
				t.req = t.onward()
				if err := t.follow(ctx, f); !errors.Is(err, errGaveUp) {
					return err
				}
				t.log.Warn("a run takes the directory: the lines come from it now")
				gone, wait = absent(takeOver), quickly
				gone.told = true
			case !errors.Is(oerr, store.ErrHeld):
				return oerr
			case gone.heldLong():
				return coded(exitHeld, fmt.Errorf("%w, which does not answer (%w): it is starting, ending, or only reads; try again", oerr, err))
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// patience is how long whoever served us last may be away.
func (t *tail) patience() time.Duration {
	if t.byTail {
		return takeOverTail
	}
	return takeOver
}

// open opens the directory to follow into it.
func (t *tail) open(ctx context.Context) (*ourotail.Follower, error) {
	if t.cannot == nil {
		return ourotail.Open(ctx, t.cfg)
	}
	d, err := ourotail.OpenDir(t.dir, nil)
	switch {
	case errors.Is(err, store.ErrHeld):
		return nil, err
	case err == nil:
		err = d.Close()
	case errors.Is(err, store.ErrNoStore):
		err = nil
	}
	return nil, errors.Join(coded(exitNotThere, fmt.Errorf("no follower runs on %s: %w", t.dir, t.cannot)), err)
}

// errServed is wrapped when a follower that ended had begun to answer.
var errServed = errors.New("it had begun")

// onward is the request for what comes behind the last line.
func (t *tail) onward() tailRequest {
	req := t.req
	if t.sink.last != nil {
		req.after, req.undo = t.sink.last, req.undo && !t.sink.begun
	}
	return req
}

// share prints what the holder of the directory sends. Errors wrap errNoAnswer if
// another one may go on.
func (t *tail) share(ctx context.Context) error {
	req := t.onward()
	values := req.values()
	values.Set("framed", "1")
	values.Set("magic", strconv.FormatUint(uint64(t.magic), 10))
	resp, err := askControl(ctx, t.dir, "/tail", values)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	t.byTail = resp.Header.Get(leaderHeader) != ""
	in := bufio.NewReaderSize(resp.Body, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err == nil {
			var p piece
			if err := json.Unmarshal(line, &p); err != nil {
				return fmt.Errorf("the follower that holds %s sends what is none of its lines: %w", t.dir, err)
			}
			err = t.sink.take(&p)
			if errors.Is(err, errLimit) {
				return t.sink.end()
			}
			if err == nil && in.Buffered() == 0 {
				err = t.sink.flush()
			}
			if err != nil {
				return err
			}
			continue
		}
		t.sink.drop()
		told := resp.Trailer.Get(errorHeader)
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case !errors.Is(err, io.EOF) || resp.Trailer.Get(againHeader) != "":
			err = fmt.Errorf("%w: %w: %w", errNoAnswer, errServed, err)
		case told != "":
			err = remoteError(told, resp.Trailer)
		default:
			err = nil // as asked
		}
		return errors.Join(err, t.sink.end())
	}
}
