package main

import (
	"bufio"
	"context"
	"io"
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

// TestARunGetsTheDirectoryOfATailThatFollows: whoever reads from the tail, itself
// included, goes on with the run, through a fork, with nothing lost and nothing twice;
// and when the run has gone for good, by itself again.
func TestARunGetsTheDirectoryOfATailThatFollows(t *testing.T) {
	impatient(t, 2*time.Second)
	s := serve(t, 30)
	dir := t.TempDir()
	node := s.node(dir)
	tails := make([]*command, 2)
	for i := range tails {
		tails[i] = start(t, append([]string{"tail", "--from", "origin", "--json", "--idle"}, node...)...)
		s.shown(t, tails[i])
	}
	shown := func() {
		t.Helper()
		for _, c := range tails {
			s.shown(t, c)
		}
	}
	for range 3 {
		run := start(t, append([]string{"run"}, node...)...)
		devtest.Eventually(t, "the run to lead", func() bool {
			return leads(t, dir) == "run"
		})
		if err := s.chain.Fork(2, 3); err != nil {
			t.Fatal(err)
		}
		shown()
		run.ends(t)
		if err := s.chain.Fork(3, 4); err != nil {
			t.Fatal(err)
		}
		shown()
	}
	want, err := s.chain.Oracle().Lines(s.chain.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tails {
		c.ends(t)
		if got := foldLines(t, c.out.String()); len(got) != len(want) {
			t.Errorf("%d outputs, want %d", len(got), len(want))
		}
	}
}

// leads tells who follows into a directory.
func leads(t *testing.T, dir string) string {
	t.Helper()
	resp, err := askControl(t.Context(), dir, "/tail", (&tailRequest{from: startAt{text: "origin"}, format: "json"}).values())
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	if by := resp.Header.Get(leaderHeader); by != "" {
		return by
	}
	return "run"
}

// TestATailThatIsNotReadHoldsUpNobodyWhoSharesIt: it loses its subscription, not its
// place; a run gets its directory meanwhile; and once it is read, every line comes once.
func TestATailThatIsNotReadHoldsUpNobodyWhoSharesIt(t *testing.T) {
	on, off := brakeOn, brakeOff
	brakeOn, brakeOff = 100, 50
	t.Cleanup(func() { brakeOn, brakeOff = on, off })
	for _, takes := range []bool{false, true} {
		s := serve(t, 10)
		dir := t.TempDir()
		node := s.node(dir)
		r, w := io.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		code := make(chan int, 1)
		go func() {
			code <- execute(ctx, append([]string{"tail", "--from", "origin", "--json"}, node...), strings.NewReader(""), w, os.Stderr)
			w.Close()
		}()
		in := bufio.NewReaderSize(r, 16)
		if _, err := in.Peek(1); err != nil { // it leads, and now nobody reads
			t.Fatal(err)
		}
		other := start(t, append([]string{"tail", "--from", "origin", "--json", "--idle"}, node...)...)
		for range 13 {
			if err := s.chain.Extend(3); err != nil {
				t.Fatal(err)
			}
			s.shown(t, other)
		}
		var run *command
		if takes {
			run = start(t, append([]string{"run"}, node...)...)
			devtest.Eventually(t, "the run to lead", func() bool { return leads(t, dir) == "run" })
		}
		want := lines(must(t, append([]string{"tail", "--from", "origin", "--json", "--exit-at-tip"}, node...)...))
		for i := range want {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if withoutFinal(strings.TrimSuffix(line, "\n")) != withoutFinal(want[i]) {
				t.Fatalf("line %d is %s\nwant %s", i, line, want[i])
			}
		}
		stop()
		go func() { _, _ = io.Copy(io.Discard, in) }()
		if c := <-code; c != exitOK {
			t.Errorf("it ended with %d", c)
		}
		other.ends(t)
		if takes {
			run.ends(t)
		}
	}
}
