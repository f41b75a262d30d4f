package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
)

// sharedBound is how many events may wait for a reader on the control socket. One
// that is slower loses its subscription, which nobody else notices, and asks anew for
// what comes behind the last line that it has.
var sharedBound = 20_000

// againHeader is a trailer: what ended the lines is no failure, ask again.
const againHeader = "Ourotail-Again"

// serveTail answers GET /tail: the lines that a request wants, until whoever asked
// goes away. With framed set each is a piece.
func serveTail(h *handlers, f *ourotail.Follower, lead *leading) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		defer lead.join()()
		req, err := parseTailRequest(r)
		if err != nil {
			return err
		}
		magic, err := askedMagic(r)
		if err == nil {
			err = sameNetwork(f.Path(), f.State().Magic, magic)
		}
		if err != nil {
			return err
		}
		sub, first, err := req.begin(ctx, f, sharedBound, func(ctx context.Context, height chain.Height) error { return comesTo(ctx, f, height) })
		if err != nil {
			return err
		}
		defer sub.Cancel()
		if lead != nil {
			w.Header().Set(leaderHeader, "tail")
		}
		w.Header().Set("Trailer", errorHeader+", "+exitHeader+", "+againHeader)
		s := &sharing{f: f, req: &req, sub: sub, pieces: newPieces(&req, stampOf(f)), out: bufio.NewWriterSize(w, 1<<15), flusher: http.NewResponseController(w)}
		if r.URL.Query().Get("framed") != "" {
			s.frames = json.NewEncoder(s.out)
		}
		err = s.send(ctx, first)
		var full *hub.OverflowError
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, io.EOF): // closed: so will be the follower
			err = errors.New(endingText)
			fallthrough
		case errors.As(err, &full):
			w.Header().Set(againHeader, "1")
			fallthrough
		default:
			w.Header().Set(errorHeader, strings.ReplaceAll(h.describe(err), "\n", " "))
			w.Header().Set(exitHeader, strconv.Itoa(exitCode(err)))
		}
		return nil
	}
}

// comesTo waits until following has come to a height.
func comesTo(ctx context.Context, f *ourotail.Follower, height chain.Height) error {
	tips, err := f.SubscribeTips()
	if err != nil {
		return err
	}
	defer tips.Cancel()
	for {
		tip, err := tips.Next(ctx)
		if err != nil || tip.Height >= height {
			return err
		}
	}
}

// sharing sends one reader its lines.
type sharing struct {
	f       *ourotail.Follower
	req     *tailRequest
	sub     hub.Stream[chain.UTxOEvent]
	pieces  *pieces
	out     *bufio.Writer
	frames  *json.Encoder // nil for lines alone
	flusher *http.ResponseController
}

// send sends lines until there are no more to be had, nil if that is what was asked
// for.
func (s *sharing) send(ctx context.Context, first []chain.UTxOEvent) error {
	for i := range first {
		if err := s.event(&first[i]); err != nil {
			return err
		}
	}
	if c, ok := s.sub.Cursor(); ok {
		if err := s.piece(&piece{Cursor: &chain.Token{Magic: s.f.State().Magic, Cursor: c}}); err != nil {
			return err
		}
	}
	for {
		ev, ok, err := s.sub.Poll()
		if err == nil && !ok {
			if err := s.flush(); err != nil {
				return err
			}
			if done, err := s.atTip(ctx); done || err != nil {
				return err
			}
			if ev, ok, err = s.next(ctx); err == nil && !ok {
				continue
			}
		}
		if err == nil {
			err = s.event(&ev)
		}
		if err != nil {
			return errors.Join(err, s.flush())
		}
	}
}

// next waits for an event; only so long if the tip has to be looked at again.
func (s *sharing) next(ctx context.Context) (chain.UTxOEvent, bool, error) {
	if !s.req.exitAtTip {
		ev, err := s.sub.Next(ctx)
		return ev, err == nil, err
	}
	wait, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	defer stop()
	ev, err := s.sub.Next(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil && errors.Is(err, wait.Err()) {
		return ev, false, nil
	}
	return ev, err == nil, err
}

// atTip tells whether the node has no more blocks, and the reader has had all that
// it may be shown.
func (s *sharing) atTip(ctx context.Context) (bool, error) {
	if !s.req.exitAtTip {
		return false, nil
	}
	now := s.f.Progress()
	c, ok := s.sub.Cursor()
	if !ok || now.Phase != follow.Following || now.Head.Point != now.Tip.Point || c.At.Height < now.Head.Height-s.req.depth(s.f.State().K) {
		return false, nil
	}
	tip, err := s.f.NodeTip(ctx)
	if err != nil {
		return false, err
	}
	return tip.Point == now.Head.Point, nil
}

func (s *sharing) event(e *chain.UTxOEvent) error {
	p, err := s.pieces.of(e)
	if err != nil {
		return err
	}
	return s.piece(&p)
}

func (s *sharing) piece(p *piece) error {
	if s.frames != nil {
		return s.frames.Encode(p)
	}
	_, err := s.out.WriteString(p.Line)
	return err
}

func (s *sharing) flush() error { return errors.Join(s.out.Flush(), s.flusher.Flush()) }
