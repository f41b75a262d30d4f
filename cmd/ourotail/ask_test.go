package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/store"
)

// holder holds a data directory as a follower does that is asked on its control
// socket.
type holder struct {
	dir *ourotail.Dir
	srv *http.Server
}

func hold(t *testing.T, dir string, answer http.HandlerFunc) *holder {
	t.Helper()
	d, err := ourotail.OpenDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	path, done, err := controlPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{d, &http.Server{Handler: answer, ReadHeaderTimeout: time.Second}}
	go func() { _ = h.srv.Serve(l) }()
	t.Cleanup(h.end)
	return h
}

func (h *holder) end() {
	h.srv.Close()
	h.dir.Close()
}

// TestFollowerThatEndsWhileAsked: whatever a follower does with a question while it
// is ending, the answer comes from the directory that it leaves.
func TestFollowerThatEndsWhileAsked(t *testing.T) {
	s := serve(t, 60)
	dir := t.TempDir()
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	must(t, append([]string{"run", "--exit-at-tip"}, node...)...)
	want := must(t, "utxos", "--format", "lines", "--data-dir", dir)
	breakOff := func(first int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, want[:first])
			panic(http.ErrAbortHandler)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"it says so":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, endingText, http.StatusServiceUnavailable) },
		"it hangs up":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"it breaks off":     breakOff(100),
		"it ends the lines": endsLines,
	} {
		t.Run(name, func(t *testing.T) {
			h := hold(t, dir, answer)
			time.AfterFunc(300*time.Millisecond, h.end)
			began := time.Now()
			if got, errs, code := ourotailCmd(t.Context(), "utxos", "--format", "lines", "--data-dir", dir); code != exitOK || got != want {
				t.Errorf("utxos: exit code %d: %s", code, errs)
			}
			if took := time.Since(began); took < 200*time.Millisecond || took > 5*time.Second {
				t.Errorf("the answer took %v", took)
			}
		})
		t.Run(name+", others", func(t *testing.T) {
			h := hold(t, dir, answer)
			time.AfterFunc(100*time.Millisecond, h.end)
			for _, args := range [][]string{{"status", "--data-dir", dir}, append([]string{"audit"}, node...)} {
				if _, errs, code := ourotailCmd(t.Context(), args...); code != exitOK {
					t.Errorf("%s: exit code %d: %s", args[0], code, errs)
				}
			}
		})
	}
	t.Run("longer than any buffer", func(t *testing.T) {
		hold(t, dir, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000000")
			_, _ = io.WriteString(w, strings.Repeat("x", 300_000))
			panic(http.ErrAbortHandler)
		})
		out, errs, code := ourotailCmd(t.Context(), "utxos", "--format", "lines", "--data-dir", dir)
		if code != exitFailed || !strings.Contains(errs, "in the middle of its answer") || len(out) > 300_000 {
			t.Errorf("exit code %d after %d bytes: %s", code, len(out), errs)
		}
	})
	t.Run("it never ends", func(t *testing.T) {
		h := hold(t, dir, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		defer h.end()
		asked := 0
		err := askOrRead(t.Context(), dir, nil, 100*time.Millisecond, func() error {
			asked++
			_, err := remoteStatus(t.Context(), dir, false)
			return err
		}, func(*ourotail.Dir) error { return errors.New("the directory was opened") })
		if exitCode(err) != exitHeld || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), dir) || asked < 2 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// endsLines ends its answer in order, and says in the trailer that it is not whole.
func endsLines(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/utxos" {
		http.Error(w, endingText, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Trailer", errorHeader)
	_, _ = io.WriteString(w, "half a line")
	w.Header().Set(errorHeader, endingText)
}

// TestHandlersEndFirst: what is read from is closed only when nobody reads any
// more, and an error that comes of the end is told as the end.
func TestHandlersEndFirst(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	h := &handlers{ending: ctx, mux: http.NewServeMux()}
	asked, goOn := make(chan struct{}), make(chan struct{})
	h.on("GET /slow", func(_ http.ResponseWriter, r *http.Request) error {
		close(asked)
		<-goOn
		return context.Canceled
	})
	h.on("GET /bad", func(http.ResponseWriter, *http.Request) error { return fmt.Errorf("%w: a table", store.ErrDamaged) })
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if r := get("/bad"); r.Code != http.StatusInternalServerError || exitCode(remoteError("", r.Header())) != exitDamaged {
		t.Errorf("%d %v", r.Code, r.Header())
	}
	slow := make(chan *httptest.ResponseRecorder, 1)
	go func() { slow <- get("/slow") }()
	<-asked
	end()
	waited := make(chan struct{})
	go func() { h.wait(); close(waited) }()
	select {
	case <-waited:
		t.Fatal("a request is still being answered")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-waited
	for _, r := range []*httptest.ResponseRecorder{<-slow, get("/bad")} {
		if r.Code != http.StatusServiceUnavailable || !strings.Contains(r.Body.String(), endingText) {
			t.Errorf("%d: %s", r.Code, r.Body)
		}
	}
}
