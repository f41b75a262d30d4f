package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/store"
)

// errNoAnswer is wrapped when a data directory is held and nobody answers on its
// control socket: the holder is starting, or ending, or reads itself.
var errNoAnswer = errors.New("no answer on the control socket")

// askPatience is how long a directory may be held by somebody who does not answer.
// A follower ends within seconds.
const askPatience = 10 * time.Second

// askOrRead answers a question about a data directory: from its holder if there is
// one that answers, by reading it if not. Holders come and go, so both are tried
// in turn, until patience ends.
func askOrRead(ctx context.Context, dir string, log *slog.Logger, patience time.Duration, ask func() error, read func(*ourotail.Dir) error) error {
	began := time.Now()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 400*time.Millisecond) {
		d, err := ourotail.OpenDir(dir, log)
		if err == nil {
			err = read(d)
			if cerr := d.Close(); errors.Is(cerr, store.ErrDamaged) { // what it has read may be wrong; for the rest, nothing was written
				err = errors.Join(err, cerr)
			}
			return err
		}
		var held *store.HeldError
		if !errors.As(err, &held) {
			return err
		}
		if err = ask(); !errors.Is(err, errNoAnswer) {
			return err
		}
		if time.Since(began) > patience {
			return coded(exitHeld, fmt.Errorf("%w, which does not answer: it is starting, ending, or only reads; try again", held))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// askControl sends a request to the follower that holds a data directory. It
// asks once.
func askControl(ctx context.Context, dir, path string, values url.Values) (*http.Response, error) {
	return requestControl(ctx, http.MethodGet, dir, path, values)
}

func requestControl(ctx context.Context, method, dir, path string, values url.Values) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		socket, done, err := controlPath(dir)
		if err != nil {
			return nil, err
		}
		defer done()
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, method, "http://ourotail"+path+"?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%w: %s", errNoAnswer, text)
	}
	return nil, remoteError(string(text), resp.Header)
}

// remoteError is an error that happened in the follower.
func remoteError(text string, header http.Header) error {
	code, err := strconv.Atoi(header.Get(exitHeader))
	if err != nil || code == exitOK {
		code = exitFailed
	}
	return coded(code, &toldError{strings.TrimSpace(text)})
}

// toldError is another process's, hint included.
type toldError struct{ text string }

func (e *toldError) Error() string { return e.text }

// askJSON asks for something that comes as a whole.
func askJSON(ctx context.Context, dir, path string, values url.Values, answer any) error {
	resp, err := askControl(ctx, dir, path, values)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: it broke off: %w", errNoAnswer, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the follower that holds %s answers what is none: %w", dir, err)
	}
	return nil
}

// remoteStatus asks the holder of a data directory for its status.
func remoteStatus(ctx context.Context, dir string, digest bool) (s ourotail.Status, err error) {
	values := url.Values{}
	if digest {
		values.Set("digest", "1")
	}
	err = askJSON(ctx, dir, "/status", values, &s)
	return s, err
}

// remoteUTxOs copies the holder's answer to w. It is errNoAnswer only while w has
// got nothing. magic may be 0.
func remoteUTxOs(ctx context.Context, w io.Writer, dir string, magic uint32, queries []string, format string) error {
	resp, err := askControl(ctx, dir, "/utxos", url.Values{"query": queries, "format": {format}, "magic": {strconv.FormatUint(uint64(magic), 10)}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	to := &countingWriter{w: w}
	out := bufio.NewWriterSize(to, 1<<16)
	_, err = io.Copy(out, resp.Body)
	told := resp.Trailer.Get(errorHeader)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case to.failed:
		return err
	case err == nil && told == "":
		return out.Flush()
	case err == nil && told != endingText:
		return errors.Join(remoteError(told, resp.Trailer), out.Flush())
	case to.n == 0:
		return fmt.Errorf("%w: it broke off", errNoAnswer)
	}
	return errors.Join(errors.New("the follower ended in the middle of its answer: ask again"), out.Flush())
}

// countingWriter knows what got through.
type countingWriter struct {
	w      io.Writer
	n      int64
	failed bool
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.failed = c.failed || err != nil
	return n, err
}
