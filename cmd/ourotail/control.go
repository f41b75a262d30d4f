package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/query"
)

// controlName is the socket in the data directory on which a follower answers
// other commands. HTTP over it, so that curl --unix-socket works too.
const controlName = "control.sock"

// controlPath returns a name of the socket that fits into a socket address,
// which holds about a hundred bytes: a longer one is reached through the open
// directory. done gives the name up.
func controlPath(dir string) (path string, done func(), err error) {
	path = filepath.Join(dir, controlName)
	if len(path) < 100 {
		return path, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), controlName), func() { d.Close() }, nil
}

// serveControl answers on the control socket until ctx ends.
func serveControl(ctx context.Context, f *ourotail.Follower) (wait func(), err error) {
	path, done, err := controlPath(f.Path())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	// We hold the data directory: a socket that is there is a dead process's.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		s, err := f.Status(r.Context(), r.URL.Query().Has("digest"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s) // who asked has gone
	})
	mux.HandleFunc("GET /utxos", func(w http.ResponseWriter, r *http.Request) {
		q, err := parseQueries(r.URL.Query()["query"])
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		v := f.View()
		defer v.Close()
		// An error in the middle must not look like the end: the trailer says.
		w.Header().Set("Trailer", "Ourotail-Error")
		if err := writeUTxOs(r.Context(), w, io.Discard, v, q, r.URL.Query().Get("format")); err != nil {
			w.Header().Set("Ourotail-Error", strings.ReplaceAll(err.Error(), "\n", " "))
		}
	})
	mux.HandleFunc("GET /audit", serveAudit(f))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(l) // it ends when it is closed
	}()
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	return func() {
		stop()
		srv.Close()
		<-ended
		done() // the listener removes the socket by this name
	}, nil
}

// exitHeader tells with which code a command is to end whose work failed in the
// follower: errors themselves do not travel.
const exitHeader = "Ourotail-Exit-Code"

func controlError(w http.ResponseWriter, err error) {
	w.Header().Set(exitHeader, strconv.Itoa(exitCode(err)))
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// askControl sends a request to the follower that holds a data directory.
func askControl(ctx context.Context, dir, path string, values url.Values) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		socket, done, err := controlPath(dir)
		if err != nil {
			return nil, err
		}
		defer done()
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ourotail"+path+"?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	for wait := 50 * time.Millisecond; err != nil && ctx.Err() == nil && wait < 4*time.Second; wait *= 2 {
		time.Sleep(wait) // it may be about to listen, or about to end
		resp, err = client.Do(req)
	}
	if err != nil {
		return nil, coded(exitHeld, fmt.Errorf("the data directory %s is in use, and its holder does not answer on its control socket: %w", dir, err))
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		code := exitFailed
		if resp.StatusCode == http.StatusBadRequest {
			code = exitBadInput
		}
		if n, err := strconv.Atoi(resp.Header.Get(exitHeader)); err == nil {
			code = n
		}
		return nil, coded(code, errors.New(strings.TrimSpace(string(text))))
	}
	return resp, nil
}

// remoteStatus asks the holder of a data directory for its status.
func remoteStatus(ctx context.Context, dir string, digest bool) (s ourotail.Status, err error) {
	values := url.Values{}
	if digest {
		values.Set("digest", "1")
	}
	resp, err := askControl(ctx, dir, "/status", values)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// remoteUTxOs copies the holder's answer to w.
func remoteUTxOs(ctx context.Context, w io.Writer, dir string, queries []string, format string) error {
	resp, err := askControl(ctx, dir, "/utxos", url.Values{"query": queries, "format": {format}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out := bufio.NewWriterSize(w, 1<<16)
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("the follower's answer broke off: %w", err)
	}
	if text := resp.Trailer.Get("Ourotail-Error"); text != "" {
		return errors.New(text)
	}
	return out.Flush()
}

// parseQueries joins queries: an output that any of them wants is wanted; none
// wants everything.
func parseQueries(texts []string) (query.UTxO, error) {
	var arms []query.UTxO
	for _, text := range texts {
		q, err := query.ParseUTxO(text)
		if err != nil {
			return query.UTxO{}, coded(exitBadInput, err)
		}
		arms = append(arms, q)
	}
	if len(arms) == 0 {
		return query.Everything(), nil
	}
	return query.AnyOf(arms...), nil
}
