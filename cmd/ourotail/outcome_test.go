package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/store"
)

// TestHarmlessErrorsHideNoOther: an end that was asked for and a reader that had
// enough are no failures, and nothing that comes with them is dropped.
func TestHarmlessErrorsHideNoOther(t *testing.T) {
	running := t.Context()
	over, stop := context.WithCancel(running)
	stop()
	gone := &outputError{&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}}
	full := &outputError{&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}}
	hungUp := &chainsync.Error{Op: "handshake", Path: "s", Kind: chainsync.ErrDisconnected, Cause: &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}}
	cut := &chainsync.Error{Op: "intersect", Path: "s", Kind: chainsync.ErrClosed, Cause: context.Canceled}
	damage := fmt.Errorf("%w: a table is short", store.ErrDamaged)
	fatal := &follow.FatalError{Op: "committing", Cause: fmt.Errorf("%w: %w", store.ErrBroken, damage)}
	disk := &ourotail.DiskError{Dir: "d"}
	differs := coded(exitDiffers, errors.New("the node does not agree"))
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		says string
	}{
		"nothing":                         {running, nil, exitOK, ""},
		"a signal":                        {over, context.Canceled, exitOK, ""},
		"a signal while asking":           {over, fmt.Errorf("the tip: %w", cut), exitOK, ""},
		"a signal, twice":                 {over, errors.Join(context.Canceled, errors.Join(cut)), exitOK, ""},
		"ended, and nobody asked":         {running, context.Canceled, exitFailed, "context canceled"},
		"a reader that had enough":        {running, gone, exitOK, ""},
		"the same, while following":       {running, errors.Join(fmt.Errorf("line 7: %w", gone), gone), exitOK, ""},
		"a reader that had enough, alone": {over, errors.Join(gone, context.Canceled), exitOK, ""},
		"a node that hung up":             {running, hungUp, exitNode, "closed the connection"},
		"a node that hung up, reader too": {running, errors.Join(gone, hungUp), exitNode, "closed the connection"},
		"a node that hung up, and signal": {over, errors.Join(context.Canceled, hungUp), exitNode, "closed the connection"},
		"damage, and a signal":            {over, errors.Join(context.Canceled, fatal), exitDamaged, "a table is short"},
		"damage, and a signal, closing":   {over, errors.Join(context.Canceled, errors.Join(fatal, damage)), exitDamaged, "a table is short"},
		"damage, and a reader":            {running, errors.Join(gone, damage), exitDamaged, "a table is short"},
		"damage after all":                {running, errors.Join(differs, damage), exitDamaged, "does not agree"},
		"damage because of an end":        {over, fmt.Errorf("%w: %w", store.ErrDamaged, context.Canceled), exitDamaged, "damaged"},
		"a full disk, and a signal":       {over, errors.Join(context.Canceled, disk), exitDisk, "free some space"},
		"a full disk, deep":               {over, fmt.Errorf("closing: %w", errors.Join(context.Canceled, disk)), exitDisk, "free some space"},
		"output that cannot be written":   {running, full, exitDisk, "writing the output"},
		"a verdict nobody reads":          {running, errors.Join(differs, gone), exitDiffers, "does not agree"},
		"a verdict that cannot be read":   {running, errors.Join(differs, full), exitDiffers, "does not agree"},
	} {
		err := ended(c.ctx, without(c.err, readerGone))
		if code := exitCode(err); code != c.code || (err == nil) != (c.code == exitOK) || err != nil && !strings.Contains(describe(err), c.says) {
			t.Errorf("%s: exit code %d, want %d: %v", name, code, c.code, err)
		}
	}
	if err := without(errors.Join(fatal, damage), readerGone); strings.Count(err.Error(), "a table is short") != 1 {
		t.Errorf("it is said twice: %v", err)
	}
	// A command that has an end of its own has not reached it.
	if err := outcome(over, fmt.Errorf("reading: %w", context.Canceled)); exitCode(err) != exitFailed || err.Error() != "interrupted" {
		t.Error(err)
	}
}

// TestInterruptedIsNotFoundRight: what was to find something out, and was stopped,
// found nothing out.
func TestInterruptedIsNotFoundRight(t *testing.T) {
	s := serve(t, 60)
	dir := t.TempDir()
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir}
	must(t, append([]string{"run", "--exit-at-tip", "--log-level", "error"}, node...)...)
	over, stop := context.WithCancel(t.Context())
	stop()
	for _, args := range [][]string{{"check", "--data-dir", dir}, {"status", "--digest", "--data-dir", dir}, append([]string{"audit"}, node...), {"utxos", "--data-dir", dir}} {
		if _, errs, code := ourotailCmd(over, args...); code != exitFailed || !strings.Contains(errs, "interrupted") {
			t.Errorf("%s: exit code %d: %s", args[0], code, errs)
		}
	}
	for _, name := range []string{"run", "tail"} {
		if _, errs, code := ourotailCmd(over, append([]string{name}, node...)...); code != exitOK {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
}

// TestNodeThatHangsUpIsNoSuccess: the node's socket breaks with the same error as
// a pipe to a reader that had enough, and it means something else.
func TestNodeThatHangsUpIsNoSuccess(t *testing.T) {
	s := serve(t, 60)
	dir := t.TempDir()
	must(t, "run", "--exit-at-tip", "--log-level", "error", "--socket-path", s.socket, "--config", s.config, "--data-dir", dir)
	socket := devtest.Socket(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	defer func() { l.Close(); <-served }()
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.UnixConn).CloseRead() // what is written to it from now on is EPIPE, and nothing ends
			time.AfterFunc(300*time.Millisecond, func() { c.Close() })
		}
	}()
	node := []string{"--socket-path", socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	for _, args := range [][]string{{"audit"}, {"tail", "--exit-at-tip"}, {"run", "--exit-at-tip"}} {
		if _, errs, code := ourotailCmd(t.Context(), append(args, node...)...); code != exitNode || !strings.Contains(errs, "closed the connection") {
			t.Errorf("%s: exit code %d: %s", args[0], code, errs)
		}
	}
}

// brokenWriter fails from the first byte on.
type brokenWriter struct{ err error }

func (b brokenWriter) Write([]byte) (int, error) { return 0, b.err }

// TestOutputThatCannotBeWrittenIsNoticed by every command that prints; and one
// that gives a verdict gives it all the same.
func TestOutputThatCannotBeWrittenIsNoticed(t *testing.T) {
	s := serve(t, 60)
	_, conway := serveConway(t)
	dir := t.TempDir()
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir}
	must(t, append([]string{"run", "--exit-at-tip", "--log-level", "error"}, node...)...)
	block := write(t, "block", lastBlock(t, s))
	on := []string{"--data-dir", dir}
	for _, args := range [][]string{
		append([]string{"status"}, on...), append([]string{"status", "--json"}, on...), append([]string{"status", "--digest"}, on...),
		append([]string{"utxos"}, on...), append([]string{"utxos", "--format", "json"}, on...), append([]string{"utxos", "--format", "lines"}, on...),
		append([]string{"check"}, on...), append([]string{"check", "--json"}, on...),
		append([]string{"audit"}, node...), append([]string{"audit", "--json"}, node...),
		{"tail", "--from", "origin", "--exit-at-tip", "--socket-path", s.socket, "--config", s.config, "--data-dir", "fresh"},
		{"tail", "--from", "origin", "--exit-at-tip", "--format", "json", "--socket-path", s.socket, "--config", s.config, "--data-dir", "fresh"},
		{"inspect", block}, {"inspect", "--json", block},
		append([]string{"params"}, conway...), append([]string{"params", "--json"}, conway...),
		append([]string{"mempool"}, conway...), append([]string{"mempool", "--json"}, conway...),
		{"time", "1", "--mainnet"}, {"time", "1", "--mainnet", "--json"},
		{"devnode", "--generate", "varied", "--blocks", "5", "--out", "fresh"},
		{"demo", "--duration", "2s", "--interval", "100ms"},
		{"drill", "--list"}, {"version"}, {"--help"}, {"run", "--help"}, {},
		{"completion", "bash"},
	} {
		for _, c := range []struct {
			err  error
			code int
			says string
		}{{syscall.ENOSPC, exitDisk, "writing the output"}, {syscall.EIO, exitFailed, "writing the output"}, {syscall.EPIPE, exitOK, ""}} {
			args := slices.Clone(args)
			for i, a := range args {
				if a == "fresh" {
					args[i] = filepath.Join(t.TempDir(), "fresh")
				}
			}
			var errs lockedBuffer
			// As it comes from a file: within a *fs.PathError.
			code := execute(t.Context(), args, strings.NewReader(""), brokenWriter{&os.PathError{Op: "write", Path: "/dev/stdout", Err: c.err}}, &errs)
			if code != c.code || !strings.Contains(errs.String(), c.says) || c.code == exitOK && strings.Contains(errs.String(), "ourotail:") {
				t.Errorf("%v with %v: exit code %d, want %d: %s", args, c.err, code, c.code, errs.String())
			}
		}
	}
	// The real thing.
	if null, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		defer null.Close()
		if code := execute(t.Context(), []string{"status", "--data-dir", dir}, strings.NewReader(""), null, io.Discard); code != exitDisk {
			t.Errorf("status to /dev/full: exit code %d", code)
		}
	}
}

// lastBlock is the newest raw block of a served chain, as hexadecimal text.
func lastBlock(t *testing.T, s served) string {
	t.Helper()
	raw, err := s.chain.Raw(s.chain.Len() - 1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", raw)
}

// TestVerdictsStandWhoeverReads: with nobody to read it, a report that something
// is wrong is no success.
func TestVerdictsStandWhoeverReads(t *testing.T) {
	s := serve(t, 150)
	dir := t.TempDir()
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	must(t, append([]string{"run", "--exit-at-tip"}, node...)...)
	liar := devtest.Start(t, devnode.Config{Chain: s.chain, Behaviour: devnode.Behaviour{OnUTxO: func(chain.At, chain.TxIn, []byte) []byte { return nil }}})
	unread := func(args ...string) int {
		return execute(t.Context(), args, strings.NewReader(""), brokenWriter{syscall.EPIPE}, io.Discard)
	}
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"audit":        {[]string{"audit", "--sample", "10", "--socket-path", liar.Socket(), "--config", s.config, "--data-dir", dir}, exitDiffers},
		"audit --json": {[]string{"audit", "--json", "--sample", "10", "--socket-path", liar.Socket(), "--config", s.config, "--data-dir", dir}, exitDiffers},
		"status":       {[]string{"status", "--check", "--data-dir", dir}, exitNotThere},
	} {
		if code := unread(c.args...); code != c.code {
			t.Errorf("%s: exit code %d, want %d", name, code, c.code)
		}
	}
	spoilTable(t, dir)
	for _, more := range [][]string{{}, {"--json"}} {
		if code := unread(append([]string{"check", "--data-dir", dir}, more...)...); code != exitDamaged {
			t.Errorf("check %v: exit code %d", more, code)
		}
	}
}

// spoilTable changes a bit of a data directory's first table.
func spoilTable(t *testing.T, dir string) (name string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 1
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(tables[0])
}
