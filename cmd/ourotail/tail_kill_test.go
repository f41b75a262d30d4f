package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/feed/record"
)

// The long form: go test ./cmd/ourotail -run TestKilling -v -timeout 60m -args -long
var (
	long     = flag.Bool("long", false, "five hundred kills")
	killSeed = flag.Uint64("seed", 0, "of the kills; 0 for a new one")
)

const (
	mainEnv   = "OUROTAIL_TEST_MAIN"   // be the command line
	readerEnv = "OUROTAIL_TEST_READER" // be a reader that keeps its state in this file
)

// readerState is what a reader has made of the lines that it has acknowledged, and
// where it stands, in one file: the acknowledgement is the state itself.
type readerState struct {
	Cursor string
	Height int64
	Set    map[string][2]int64 // reference -> heights at which it was made and spent
	Lines  int                 // that it ever took
}

const unspentYet = -2

func loadReader(path string) (s readerState, err error) {
	s.Set = map[string][2]int64{}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// take takes a line. A record that the state has already, or that cannot be, is an
// error: nothing acknowledged comes twice, nothing is left out.
func (s *readerState) take(line []byte) (ends bool, err error) {
	var e record.Envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return false, err
	}
	s.Lines++
	if e.Event == "undo" {
		for ref, o := range s.Set {
			switch {
			case o[0] > e.Height:
				delete(s.Set, ref)
			case o[1] > e.Height:
				s.Set[ref] = [2]int64{o[0], unspentYet}
			}
		}
	}
	if r := e.Record; r != nil {
		ref := fmt.Sprintf("%s#%d", r.Output.TransactionID, r.Output.OutputIndex)
		o, ok := s.Set[ref]
		switch {
		case r.Kind == "created" && !ok:
			s.Set[ref] = [2]int64{e.Height, unspentYet}
		case r.Kind == "spent" && ok && o[1] == unspentYet:
			s.Set[ref] = [2]int64{o[0], e.Height}
		default:
			return false, fmt.Errorf("%s, height %d, behind %s (%d): it has %v", r.ID, e.Height, s.Cursor, s.Height, o)
		}
	}
	if e.Cursor != "" && (e.Record == nil || e.Record.LastOfTx || e.Event == "seed") {
		s.Cursor, s.Height = e.Cursor, e.Height
		return true, nil
	}
	return false, nil
}

// prune forgets what was spent so deep that no fork of the test undoes it.
func (s *readerState) prune() {
	for ref, o := range s.Set {
		if o[1] >= 0 && o[1] < s.Height-killK/2 {
			delete(s.Set, ref)
		}
	}
}

// acknowledge is a reader: it takes lines, and now and then acknowledges.
func acknowledge(path string, lines io.Reader) int {
	s, err := loadReader(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		return 1
	}
	in := bufio.NewReaderSize(lines, 1<<16)
	last := time.Now()
	for {
		line, rerr := in.ReadBytes('\n')
		if rerr != nil { // a line that a kill tore is none
			return 0
		}
		ends, err := s.take(line)
		if err != nil {
			fmt.Fprintln(os.Stderr, "reader:", err)
			return 1
		}
		if !ends || in.Buffered() > 0 && time.Since(last) < time.Duration(rand.IntN(20))*time.Millisecond {
			continue
		}
		s.prune()
		text, err := json.Marshal(&s)
		if err == nil {
			err = os.WriteFile(path+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "reader:", err)
			return 1
		}
		last = time.Now()
	}
}

const killK = 432 // more than the chain grows while nothing is acknowledged

// pipeline is what the kills are about.
type pipeline struct {
	t     *testing.T
	r     *rand.Rand
	s     served
	dir   string
	said  lockedBuffer
	kills int
}

func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	c := devtest.Generate(t, forge.Options{Seed: seed, EpochBlocks: 30, K: killK}, 80)
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	return &pipeline{t: t, r: rand.New(rand.NewPCG(seed, 7)), dir: dir,
		s: served{c, devtest.Start(t, devnode.Config{Chain: c}).Socket(), filepath.Join(dir, "config.json")}}
}

// start starts the test binary as something else.
func (p *pipeline) start(in, out *os.File, env string, args ...string) *exec.Cmd {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), self, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env), &p.said
	if in != nil {
		cmd.Stdin = in
	}
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd
}

// end waits for a process; what ends otherwise than by a signal of ours, or well, or
// with one of the codes, is a failure.
func (p *pipeline) end(what string, cmd *exec.Cmd, codes ...int) {
	p.t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1 && !slices.Contains(codes, exit.ExitCode())) {
		p.t.Fatalf("after %d kills the %s ended with %v: %s", p.kills, what, err, p.said.String())
	}
}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended

// grow changes the chain: it grows by a few blocks, now and then on another branch.
func (p *pipeline) grow() {
	p.t.Helper()
	var err error
	if p.r.IntN(3) == 0 {
		depth := 1 + p.r.IntN(12)
		err = p.s.chain.Fork(depth, depth+p.r.IntN(3))
	} else {
		err = p.s.chain.Extend(1 + p.r.IntN(4))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipeline) pause(most time.Duration) {
	time.Sleep(time.Duration(p.r.Int64N(int64(most))))
}

// compare compares what a reader has come to with the chain's ledger.
func (p *pipeline) compare(s *readerState) {
	p.t.Helper()
	set, err := p.s.chain.Oracle().Set(p.s.chain.Tip().Point.Hash)
	if err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for _, o := range s.Set {
		if o[1] == unspentYet {
			n++
		}
	}
	for ref := range set {
		if o, ok := s.Set[ref.String()]; !ok || o[1] != unspentYet {
			p.t.Errorf("%s is unspent, the reader has %v", ref, o)
			return
		}
	}
	if n != len(set) {
		p.t.Errorf("the reader has %d outputs, the ledger %d", n, len(set))
	}
}

func rounds() int {
	switch {
	case *long:
		return 500
	case testing.Short():
		return 8
	}
	return 20
}

// TestKillingEitherSideOfAPipeLosesNothing: either side of tail | reader is killed
// again and again at random instants, or both, or the follower that tail shares, on a
// chain that forks. The reader acknowledges now and then, and is started with what it
// has acknowledged. It never gets twice what it has acknowledged, and in the end has
// what the ledger has.
func TestKillingEitherSideOfAPipeLosesNothing(t *testing.T) {
	p := newPipeline(t)
	state := filepath.Join(p.dir, "state")
	node := p.s.node(filepath.Join(p.dir, "data"))
	var run *exec.Cmd
	endRun := func() {
		if run != nil {
			cmd := run
			run = nil
			kill(cmd)
			p.end("run", cmd, exitHeld) // the tail that began beside it may have been first
		}
	}
	defer endRun()
	for end := false; ; {
		s, err := loadReader(state)
		if err != nil {
			t.Fatal(err)
		}
		if !end && run == nil && p.r.IntN(3) == 0 {
			run = p.start(nil, nil, mainEnv+"=1", append([]string{"run"}, node...)...)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		where := []string{"tail", "--json", "--idle", "--after", s.Cursor}
		if s.Cursor == "" {
			where = append(where, "--from", "origin")
		}
		tail := p.start(nil, w, mainEnv+"=1", append(where, node...)...)
		reader := p.start(r, nil, readerEnv+"="+state)
		r.Close()
		w.Close()
		if end { // this one lives
			want := p.s.chain.Tip()
			devtest.Eventually(t, "the reader at the tip", func() bool {
				s, err := loadReader(state)
				return err == nil && strings.Contains(s.Cursor, want.Point.String())
			})
		}
		for range p.r.IntN(4) {
			if s.Height < int64(p.s.chain.Tip().Height)-killK/4 || end {
				break
			}
			p.pause(60 * time.Millisecond)
			p.grow()
		}
		if !end {
			p.pause(700 * time.Millisecond)
		}
		switch x := p.r.IntN(4); {
		case end || x == 0:
			_ = tail.Process.Signal(syscall.SIGTERM) // the reader gets the rest
		case x == 1:
			kill(tail)
		case x == 2:
			kill(reader)
			p.pause(100 * time.Millisecond)
			kill(tail) // it may have nothing to write, and so not know
		default:
			kill(tail)
			kill(reader)
		}
		p.kills++
		if p.r.IntN(2) == 0 {
			endRun()
		}
		p.end("tail", tail)
		p.end("reader", reader)
		if end {
			break
		}
		end = p.kills >= rounds()
	}
	endRun()
	s, err := loadReader(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills, %d lines taken, the chain has %d blocks", p.kills, s.Lines, p.s.chain.Len())
	p.compare(&s)
}

// TestKillingTailWithACursorFileLosesNothing: tail keeps the cursor itself and is
// killed again and again, its reader lives. By undo alone, without a look at ids, it
// has in the end what the ledger has.
func TestKillingTailWithACursorFileLosesNothing(t *testing.T) {
	p := newPipeline(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := readerState{Set: map[string][2]int64{}}
	var mu sync.Mutex
	var torn, undos int
	var failed atomic.Pointer[error]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			if len(line) == 1 {
				continue
			}
			mu.Lock()
			var e record.Envelope
			if json.Unmarshal(line, &e) != nil { // a kill tore it
				torn++
			} else if _, err := s.take(line); err != nil && failed.Load() == nil {
				failed.Store(&err)
			}
			if e.Event == "undo" {
				undos++
			}
			mu.Unlock()
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	args := append([]string{"tail", "--from", "origin", "--json", "--idle", "--cursor-file", filepath.Join(p.dir, "cursor")}, p.s.node(filepath.Join(p.dir, "data"))...)
	for p.kills < rounds() {
		tail := p.start(nil, w, mainEnv+"=1", args...)
		for range p.r.IntN(4) {
			p.pause(60 * time.Millisecond)
			mu.Lock()
			behind := s.Height < int64(p.s.chain.Tip().Height)-killK/4
			mu.Unlock()
			if !behind {
				p.grow()
			}
		}
		p.pause(600 * time.Millisecond)
		if p.kills++; p.r.IntN(4) == 0 {
			_ = tail.Process.Signal(syscall.SIGINT)
		} else {
			kill(tail)
		}
		p.end("tail", tail)
		if err := failed.Load(); err != nil {
			t.Fatalf("after %d kills: %v", p.kills, *err)
		}
	}
	tail := p.start(nil, w, mainEnv+"=1", args...)
	want := p.s.chain.Tip()
	devtest.Eventually(t, "the reader at the tip", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ctx.Err() != nil || strings.Contains(s.Cursor, want.Point.String())
	})
	_ = tail.Process.Signal(syscall.SIGINT)
	p.end("tail", tail)
	w.Close()
	<-ended
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
	t.Logf("%d kills, %d lines, %d undos, %d torn lines, the chain has %d blocks", p.kills, s.Lines, undos, torn, p.s.chain.Len())
	p.compare(&s)
}
