package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/ledger"
)

// TestCheckAfterAKill: a directory as a kill leaves it, at whatever step, is not
// damaged. If a large write is half done check says so with a code of its own, and
// after one start there is nothing left to say.
func TestCheckAfterAKill(t *testing.T) {
	s := serve(t, 300)
	g, err := ledger.LoadGenesis(s.config)
	if err != nil {
		t.Fatal(err)
	}
	dir, killed := filepath.Join(t.TempDir(), "data"), t.TempDir()
	seen := map[string]int{}
	var copies []string
	step := func(name string) {
		// Some of each kind, from the first on.
		if seen[name]++; seen[name] > 2 && seen[name]%40 != 0 || len(copies) > 60 {
			return
		}
		to := filepath.Join(killed, fmt.Sprintf("%02d %s", len(copies), name))
		if copied(t, dir, to) {
			copies = append(copies, to)
		}
	}
	ctx := trial.With(t.Context(), &trial.Trial{Step: step, MemTable: 128 << 10})
	f, err := ourotail.Open(ctx, ourotail.Config{SocketPath: s.socket, Genesis: g, DataDir: dir, Memory: 16 << 20, ExitAtTip: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	unfinished := 0
	for _, dir := range copies {
		out, errs, code := ourotailCmd(t.Context(), "check", "--data-dir", dir)
		switch code {
		case exitOK, exitNotThere: // killed before there was anything
		case exitUnfinished:
			if unfinished++; !strings.Contains(errs, "check again") || strings.Contains(errs+out, "resync") || strings.Contains(out, "WRONG") {
				t.Errorf("%s: it says\n%s\n%s", dir, out, errs)
			}
			must(t, "status", "--data-dir", dir)
			must(t, "check", "--data-dir", dir)
		default:
			t.Errorf("%s: exit code %d\n%s\n%s", filepath.Base(dir), code, out, errs)
		}
	}
	if unfinished == 0 {
		t.Errorf("of %d copies none has a large write half done: %v", len(copies), seen)
	}
}

// copied copies a data directory as a kill would leave it now. Badger moves files
// about on goroutines of its own: a copy in which it did is none of a moment, and is
// made again, a few times.
func copied(t *testing.T, from, to string) bool {
	t.Helper()
	state := func() string {
		manifest, err := os.ReadFile(filepath.Join(from, "db", "MANIFEST"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(from, "db", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return string(manifest) + strings.Join(names, "\n")
	}
	for range 10 {
		before := state()
		err := os.CopyFS(to, os.DirFS(from))
		if err == nil && state() == before {
			return true
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	return false
}
