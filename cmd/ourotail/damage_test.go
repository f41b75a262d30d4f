package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/devtest"
)

// TestDamageWhileItRuns: a question finds the tables damaged while the chain is
// quiet. Whoever asks is told with the exit code of damage, and run ends with it.
func TestDamageWhileItRuns(t *testing.T) {
	s := serve(t, 120)
	dir := t.TempDir()
	run := []string{"run", "--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	must(t, append(run, "--exit-at-tip")...)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	ended := make(chan int, 1)
	var errs lockedBuffer
	go func() { ended <- execute(ctx, run, strings.NewReader(""), &lockedBuffer{}, &errs) }()
	devtest.Eventually(t, "the tip", func() bool {
		st, err := remoteStatus(ctx, dir, false)
		return err == nil && st.Running && st.Head == s.chain.Tip().Point && st.Health.Grade == ourotail.Healthy
	})
	zeroTables(t, dir)
	if _, says, code := ourotailCmd(ctx, "status", "--digest", "--data-dir", dir); code != exitDamaged || !strings.Contains(says, "--resync") {
		t.Errorf("status --digest: exit code %d: %s", code, says)
	}
	if _, says, code := ourotailCmd(ctx, "status", "--check", "--data-dir", dir); code == exitOK {
		t.Errorf("status --check: %s", says)
	}
	if code := <-ended; code != exitDamaged || ctx.Err() != nil || !strings.Contains(errs.String(), "damaged") {
		t.Errorf("run: exit code %d, in time: %v: %s", code, ctx.Err() == nil, errs.String())
	}
	for _, args := range [][]string{{"status", "--check", "--data-dir", dir}, {"utxos", "--data-dir", dir}, run} {
		if _, says, code := ourotailCmd(t.Context(), args...); code != exitDamaged {
			t.Errorf("%s afterwards: exit code %d: %s", args[0], code, says)
		}
	}
}

// TestDamageFoundByClosing: what was printed came from tables that turn out to be
// damaged only afterwards.
func TestDamageFoundByClosing(t *testing.T) {
	s := serve(t, 120)
	dir := t.TempDir()
	must(t, "run", "--exit-at-tip", "--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error")
	err := askOrRead(t.Context(), dir, nil, time.Second, func() error { return errNoAnswer }, func(d *ourotail.Dir) error {
		zeroTables(t, dir)
		if _, err := d.Status(t.Context(), true); err == nil {
			t.Error("nothing was found")
		}
		return nil // as if it had been found by a compaction
	})
	if exitCode(err) != exitDamaged {
		t.Errorf("exit code %d: %v", exitCode(err), err)
	}
}

// zeroTables overwrites the middle of each table of a data directory.
func zeroTables(t *testing.T, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(make([]byte, info.Size()/2), info.Size()/8)
		if f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
