package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
func serveControl(ctx context.Context, f *ourotail.Follower, lead *leading) (wait func(), err error) {
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
	ctx, stop := context.WithCancel(ctx)
	h := &handlers{ending: ctx, mux: http.NewServeMux()}
	h.on("GET /status", func(w http.ResponseWriter, r *http.Request) error {
		s, err := f.Status(r.Context(), r.URL.Query().Has("digest"))
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s) // who asked has gone
		return nil
	})
	h.on("GET /utxos", func(w http.ResponseWriter, r *http.Request) error {
		q, err := parseQueries(r.URL.Query()["query"])
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
		v := f.View()
		defer v.Close()
		// An error in the middle must not look like the end: the trailers say.
		w.Header().Set("Trailer", errorHeader+", "+exitHeader)
		if err := writeUTxOs(r.Context(), w, io.Discard, v, q, r.URL.Query().Get("format")); err != nil {
			w.Header().Set(errorHeader, strings.ReplaceAll(h.describe(err), "\n", " "))
			w.Header().Set(exitHeader, strconv.Itoa(exitCode(err)))
		}
		return nil
	})
	h.on("GET /audit", serveAudit(f))
	h.on("GET /tail", serveTail(h, f, lead))
	if lead != nil {
		h.on("POST /leave", lead.give)
	}
	h.on("GET /tx", serveTx(h, f))
	srv := &http.Server{Handler: h.mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(l) // it ends when it is closed
	}()
	unhook := context.AfterFunc(ctx, func() { _ = srv.Close() })
	return func() {
		stop()
		unhook()
		srv.Close()
		<-ended
		h.wait()
		done() // the listener removes the socket by this name
	}, nil
}

// handlers answer requests, until the follower ends: then they end first, before
// what they read from is closed.
type handlers struct {
	ending context.Context // over when the follower is about to end
	mux    *http.ServeMux
	busy   sync.RWMutex // held for reading by each request
}

func (h *handlers) on(pattern string, answer func(http.ResponseWriter, *http.Request) error) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		h.busy.RLock()
		defer h.busy.RUnlock()
		err := h.ending.Err()
		if err == nil {
			err = answer(w, r)
		}
		switch {
		case err == nil:
		case h.ending.Err() != nil:
			http.Error(w, endingText, http.StatusServiceUnavailable)
		default:
			w.Header().Set(exitHeader, strconv.Itoa(exitCode(err)))
			http.Error(w, describe(err), http.StatusInternalServerError)
		}
	})
}

// wait returns when no request is being answered; from the end of h.ending on
// none is begun.
func (h *handlers) wait() {
	h.busy.Lock()
	h.busy.Unlock() //nolint:staticcheck // to have got it is all
}

// describe is what goes over the socket of an error.
func (h *handlers) describe(err error) string {
	if h.ending.Err() != nil {
		return endingText
	}
	return describe(err)
}

// askedMagic is the network that whoever asks has in mind, 0 for any.
func askedMagic(r *http.Request) (uint32, error) {
	text := r.URL.Query().Get("magic")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), coded(exitBadInput, err)
}

// Errors themselves do not travel: what goes over the socket is their text, and
// the code with which a command is to end whose work failed in the follower.
const (
	errorHeader = "Ourotail-Error"
	exitHeader  = "Ourotail-Exit-Code"
)

// endingText is what a follower says that was asked to end: the directory is about
// to be free, ask there.
const endingText = "the follower is ending"

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
