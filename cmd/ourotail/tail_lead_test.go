package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/devnode/devtest"
)

// impatient shortens the time for which tails wait for a run that ended.
func impatient(t *testing.T, d time.Duration) {
	t.Helper()
	run, tail := takeOver, takeOverTail
	takeOver, takeOverTail = d, d
	t.Cleanup(func() { takeOver, takeOverTail = run, tail })
}

// command is a command line that goes on.
type command struct {
	out, errs lockedBuffer
	code      chan int
	stop      context.CancelFunc
}

func start(t *testing.T, args ...string) *command {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &command{code: make(chan int, 1), stop: stop}
	go func() { c.code <- execute(ctx, args, strings.NewReader(""), &c.out, &c.errs) }()
	return c
}

// ends asks a command to end.
func (c *command) ends(t *testing.T) {
	t.Helper()
	c.stop()
	if code := <-c.code; code != exitOK {
		t.Errorf("ended with %d: %s", code, c.errs.String())
	}
}

// answers waits until whoever follows into a directory is at the tip.
func (s served) answers(t *testing.T, dir string) {
	t.Helper()
	devtest.Eventually(t, "the follower at the tip", func() bool {
		st, err := remoteStatus(t.Context(), dir, false)
		return err == nil && st.Height == int64(s.chain.Tip().Height)
	})
}

// shown waits until the last line of a tail is of the tip.
func (s served) shown(t *testing.T, c *command) {
	t.Helper()
	devtest.Eventually(t, "the lines of the tip", func() bool {
		text := c.out.String()
		return strings.Contains(text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:], s.chain.Tip().Point.Hash.String())
	})
}

// TestTailsWaitLongerThanAServiceManager: a unit of systemd that restarts is back long
// before a tail takes its directory.
func TestTailsWaitLongerThanAServiceManager(t *testing.T) {
	unit, err := os.ReadFile("../../packaging/systemd/ourotail.service")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(unit), "\nRestartSec=")
	text, _, _ := strings.Cut(after, "\n")
	restart, err := time.ParseDuration(text + "s")
	if !ok || err != nil || takeOver < 5*restart {
		t.Errorf("the unit restarts after %v, a tail takes over after %v: %v", restart, takeOver, err)
	}
}

// TestATailLeavesTheDirectoryToARunThatComesBack: it says that it waits, prints on
// from the run that was started again, and that run is not in its way.
func TestATailLeavesTheDirectoryToARunThatComesBack(t *testing.T) {
	s := serve(t, 20)
	dir := t.TempDir()
	node := s.node(dir)
	run := start(t, append([]string{"run"}, node...)...)
	s.answers(t, dir)
	tail := start(t, append(append([]string{"tail", "--from", "origin", "--json", "--idle"}, node...), "--log-level", "warn")...)
	s.shown(t, tail)
	run.ends(t)
	devtest.Eventually(t, "a word that it waits", func() bool { return strings.Contains(tail.errs.String(), "waiting for it to come back") })
	run = start(t, append([]string{"run"}, node...)...)
	if err := s.chain.Extend(2); err != nil {
		t.Fatal(err)
	}
	s.answers(t, dir)
	s.shown(t, tail)
	tail.ends(t)
	run.ends(t)
}

// TestATailWithoutANodeWaitsForTheRunAndThenSaysThatNoneRuns.
func TestATailWithoutANodeWaitsForTheRunAndThenSaysThatNoneRuns(t *testing.T) {
	impatient(t, 700*time.Millisecond)
	s := serve(t, 20)
	dir := t.TempDir()
	run := start(t, append([]string{"run"}, s.node(dir)...)...)
	s.answers(t, dir)
	tail := start(t, "tail", "--from", "origin", "--json", "--data-dir", dir)
	devtest.Eventually(t, "lines", func() bool { return tail.out.String() != "" })
	run.ends(t)
	ended := time.Now()
	if code := <-tail.code; code != exitNotThere || time.Since(ended) < takeOver/2 {
		t.Errorf("after %v it ends with %d: %s", time.Since(ended), code, tail.errs.String())
	}
	for _, says := range []string{"waiting for it to come back", "no follower runs", "--socket-path"} {
		if !strings.Contains(tail.errs.String(), says) {
			t.Errorf("it does not say %q: %s", says, tail.errs.String())
		}
	}
}
