package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
)

func (q *txRequest) values(magic uint32) url.Values {
	v := url.Values{"id": {q.id.String()}, "confirmations": {strconv.FormatInt(int64(q.depth), 10)},
		"magic": {strconv.FormatUint(uint64(magic), 10)}}
	if q.wait {
		v.Set("wait", "1")
	}
	return v
}

func parseTxRequest(v url.Values) (q txRequest, err error) {
	if q.id, err = parseTxID(v.Get("id")); err != nil {
		return q, coded(exitBadInput, err)
	}
	q.wait = v.Get("wait") != ""
	if text := v.Get("confirmations"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return q, coded(exitBadInput, fmt.Errorf("confirmations: %w", err))
		}
		q.depth = chain.Height(n)
	}
	return q, nil
}

// parseTxID reads 64 hexadecimal digits.
func parseTxID(text string) (id chain.TxID, err error) {
	if id, err = chain.ParseHash(text); err != nil {
		err = fmt.Errorf("%q is no transaction id: %w", text, err)
	}
	return id, err
}

// serveTx answers GET /tx: a report a line, as JSON; with wait set one for each
// change, until the transaction is as deep as asked.
func serveTx(h *handlers, f *ourotail.Follower) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := parseTxRequest(r.URL.Query())
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
		enc, flusher := json.NewEncoder(w), http.NewResponseController(w)
		emit := func(r txReport) error {
			if err := enc.Encode(r); err != nil {
				return err
			}
			return flusher.Flush()
		}
		if !q.wait {
			return q.now(r.Context(), f, emit)
		}
		w.Header().Set("Trailer", errorHeader+", "+exitHeader+", "+againHeader)
		if err := q.watch(r.Context(), f, emit); err != nil {
			if errors.Is(err, errFollowerEnds) || h.ending.Err() != nil {
				w.Header().Set(againHeader, "1")
			}
			w.Header().Set(errorHeader, strings.ReplaceAll(h.describe(err), "\n", " "))
			w.Header().Set(exitHeader, strconv.Itoa(exitCode(err)))
		}
		return nil
	}
}

// remote has the holder of a directory report. Errors wrap errNoAnswer if there is
// none, or it ended.
func (q *txRequest) remote(ctx context.Context, dir string, magic uint32, emit func(txReport) error) error {
	resp, err := askControl(ctx, dir, "/tx", q.values(magic))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadBytes('\n')
		if err == nil {
			var r txReport
			if err := json.Unmarshal(line, &r); err != nil {
				return fmt.Errorf("the follower that holds %s sends what is no report: %w", dir, err)
			}
			if err := emit(r); err != nil {
				return err
			}
			continue
		}
		told := resp.Trailer.Get(errorHeader)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, io.EOF) || resp.Trailer.Get(againHeader) != "":
			return fmt.Errorf("%w: it ended: %w", errNoAnswer, err)
		case told != "":
			return remoteError(told, resp.Trailer)
		}
		return nil
	}
}
