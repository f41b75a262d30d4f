package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// lockedBuffer is written by a command and read by the test meanwhile.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// ourotailCmd runs the command line and returns what it printed.
func ourotailCmd(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, errs lockedBuffer
	code = execute(ctx, args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := ourotailCmd(t.Context(), args...)
	if code != exitOK {
		t.Fatalf("ourotail %s: exit code %d: %s", strings.Join(args, " "), code, errs)
	}
	return out
}

type served struct {
	chain          *devnode.Chain
	socket, config string
}

func serve(t *testing.T, blocks int) served { return serveSeed(t, 3, blocks) }

func serveSeed(t *testing.T, seed uint64, blocks int) served {
	t.Helper()
	c := devtest.Generate(t, forge.Options{Seed: seed, EpochBlocks: 8, K: 50}, blocks)
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	return served{c, devtest.Start(t, devnode.Config{Chain: c}).Socket(), filepath.Join(dir, "config.json")}
}

// effectLines are the oracle's canonical lines of the whole chain.
func (s served) effectLines(t *testing.T) []string {
	t.Helper()
	path, err := s.chain.Oracle().Path(s.chain.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range path {
		e, err := s.chain.Oracle().Effects(l.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.EffectLines()...)
	}
	return out
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// TestTailUTxOsStatusAgreeWithTheOracle drives the commands as a user would.
func TestTailUTxOsStatusAgreeWithTheOracle(t *testing.T) {
	s := serve(t, 150)
	dir := t.TempDir()
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	got := lines(must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--format", "effects"}, node...)...))
	if want := s.effectLines(t); !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("line %d: %s\n  want %s", i, got[i], want[i])
				break
			}
		}
		t.Fatalf("%d effect lines, want %d", len(got), len(want))
	}

	tip := s.chain.Tip()
	want, err := s.chain.Oracle().Lines(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(must(t, "utxos", "--data-dir", dir, "--format", "lines")); !slices.Equal(got, want) {
		t.Errorf("%d outputs, want %d", len(got), len(want))
	}

	sum, err := s.chain.Oracle().Summary(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var st ourotail.Status
	if err := json.Unmarshal([]byte(must(t, "status", "--data-dir", dir, "--json", "--digest")), &st); err != nil {
		t.Fatal(err)
	}
	lovelace := strconv.FormatUint(sum.Lovelace, 10)
	if st.Head != tip.Point || st.Height != int64(tip.Height) || st.UTxOs != int64(sum.Count) || st.Lovelace != lovelace || st.Digest == nil ||
		st.Digest.Accumulator != hex.EncodeToString(sum.Accumulator[:]) || st.Digest.UTxOs != int64(sum.Count) || st.Digest.Lovelace != lovelace {
		t.Errorf("status %+v %+v, want %+v at %v", st, st.Digest, sum, tip)
	}

	// A second run from here: the directory has no history of what was spent.
	if _, errs, code := ourotailCmd(t.Context(), append([]string{"tail", "--from", "origin"}, node...)...); code != exitUsage || !strings.Contains(errs, "history") {
		t.Errorf("tail from origin again: exit code %d: %s", code, errs)
	}
	// But of the last k blocks it has.
	path, err := s.chain.Oracle().Path(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	from := path[len(path)-20]
	var after []string
	for _, l := range path[len(path)-19:] {
		e, err := s.chain.Oracle().Effects(l.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		after = append(after, e.EffectLines()...)
	}
	got = lines(must(t, append([]string{"tail", "--from", from.Point.String(), "--exit-at-tip", "--format", "effects"}, node...)...))
	if !slices.Equal(got, after) {
		t.Errorf("tail from %v: %d lines, want %d", from.At(), len(got), len(after))
	}
}

// TestFollowerAnswersForItsDirectory: while a follower runs, status and utxos
// on its directory are answered by it, and a second follower is told who holds it.
func TestFollowerAnswersForItsDirectory(t *testing.T) {
	s := serve(t, 60)
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 12)) // longer than a socket address
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		_, _, code := ourotailCmd(ctx, append([]string{"run"}, node...)...)
		ended <- code
	}()
	tip := s.chain.Tip()
	var st ourotail.Status
	devtest.Eventually(t, "the follower at the tip", func() bool {
		out, _, code := ourotailCmd(ctx, "status", "--data-dir", dir, "--json", "--digest")
		return code == exitOK && json.Unmarshal([]byte(out), &st) == nil && st.Head == tip.Point && st.Running
	})
	if st.Tip == nil || st.Tip.Point != tip.Point || st.Phase == "" {
		t.Errorf("status %+v", st)
	}
	want, err := s.chain.Oracle().Lines(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(must(t, "utxos", "--data-dir", dir, "--format", "lines")); !slices.Equal(got, want) {
		t.Errorf("%d outputs from the follower, want %d", len(got), len(want))
	}
	if _, errs, code := ourotailCmd(ctx, "utxos", "--data-dir", dir, "((("); code != exitBadInput {
		t.Errorf("a bad query: exit code %d: %s", code, errs)
	}
	if _, errs, code := ourotailCmd(ctx, append([]string{"run"}, node...)...); code != exitHeld || !strings.Contains(errs, "process") {
		t.Errorf("a second follower: exit code %d: %s", code, errs)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("run ended with %d", code)
	}
}

// TestMessagesSayWhatToDo: what a user meets first when something is wrong.
func TestMessagesSayWhatToDo(t *testing.T) {
	s := serve(t, 5)
	t.Setenv("CARDANO_NODE_SOCKET_PATH", "")
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no socket named":      {[]string{"run", "--network", "preview"}, exitUsage, "--socket-path"},
		"no network":           {[]string{"run", "--socket-path", s.socket}, exitUsage, "--network"},
		"unknown network":      {[]string{"run", "--socket-path", s.socket, "--network", "atlantis"}, exitUsage, "preview"},
		"unknown magic":        {[]string{"run", "--socket-path", s.socket, "--testnet-magic", "77"}, exitUsage, "--config"},
		"two networks":         {[]string{"run", "--socket-path", s.socket, "--mainnet", "--testnet-magic", "2"}, exitUsage, "--mainnet"},
		"mainnet from origin":  {[]string{"run", "--socket-path", s.socket, "--mainnet", "--data-dir", dir + "/m"}, exitUsage, "--config"},
		"nobody there":         {[]string{"run", "--socket-path", dir + "/none", "--network", "preview", "--data-dir", dir + "/n", "--exit-at-tip"}, exitNode, "node"},
		"wrong network":        {[]string{"run", "--socket-path", s.socket, "--network", "preview", "--data-dir", dir + "/w"}, exitNode, "42"},
		"no directory":         {[]string{"status", "--data-dir", dir + "/nothing"}, exitNotThere, "hint: is this the right --data-dir"},
		"keep and give up":     {[]string{"run", "--socket-path", s.socket, "--network", "preview", "--data-dir", dir + "/a", "--archive", "--compact"}, exitUsage, "--compact"},
		"bad format":           {[]string{"tail", "--format", "xml"}, exitUsage, "pretty"},
		"bad query":            {[]string{"utxos", "--data-dir", dir, "addr1notreally"}, exitBadInput, "column"},
		"bad start":            {[]string{"tail", "--from", "yesterday"}, exitUsage, "SLOT.HEADERHASH"},
		"unknown command":      {[]string{"tial"}, exitUsage, "tail"},
		"unknown flag":         {[]string{"run", "--sokcet", "x"}, exitUsage, "--help"},
		"nothing to serve":     {[]string{"devnode", "--socket", dir + "/s"}, exitUsage, "--immutable"},
		"not an ImmutableDB":   {[]string{"devnode", "--socket", dir + "/s", "--immutable", dir, "--network", "preview"}, exitBadInput, "ImmutableDB"},
		"no files there":       {[]string{"run", "--socket-path", s.socket, "--network", "preview", "--data-dir", dir + "/f", "--immutable", dir + "/none"}, exitBadInput, "hint: the folder is called immutable"},
		"no chunk there":       {[]string{"run", "--socket-path", s.socket, "--network", "preview", "--data-dir", dir + "/f", "--immutable", dir}, exitBadInput, "hint"},
		"memory in no unit":    {[]string{"run", "--socket-path", s.socket, "--network", "preview", "--memory", "lots"}, exitUsage, "256MiB"},
		"environment nonsense": {[]string{"run", "--socket-path", s.socket, "--config", "/none.json"}, exitBadInput, "/none.json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := ourotailCmd(t.Context(), append(c.args, "--log-level", "error")...)
			if code != c.code || !strings.Contains(errs, c.says) {
				t.Errorf("exit code %d, want %d; it says: %s", code, c.code, errs)
			}
		})
	}
}

// TestFilesBesideTheSocket: run reads the node's files and goes on over its socket;
// files of another chain are refused with the exit code of another chain.
func TestFilesBesideTheSocket(t *testing.T) {
	dir := t.TempDir()
	for i, seed := range []string{"1", "2"} {
		must(t, "devnode", "--generate", "varied", "--blocks", "150", "--seed", seed, "--k", "20", "--out", filepath.Join(dir, strconv.Itoa(i)))
	}
	config := filepath.Join(dir, "0", "config.json")
	socket := devtest.Socket(t)
	chain, err := devnode.OpenImmutable(filepath.Join(dir, "0", "immutable"), immutable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	devtest.Start(t, devnode.Config{Socket: socket, Chain: chain})
	run := []string{"run", "--config", config, "--socket-path", socket, "--exit-at-tip", "--data-dir", filepath.Join(dir, "data"), "--immutable"}
	_, errs, code := ourotailCmd(t.Context(), append(run, filepath.Join(dir, "1", "immutable"))...)
	if code != exitDiverged || !strings.Contains(errs, "another chain") || !strings.Contains(errs, "hint: ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	_, errs, code = ourotailCmd(t.Context(), append(run, filepath.Join(dir, "0", "immutable"))...)
	if code != exitOK || !strings.Contains(errs, "reading the node's files") || !strings.Contains(errs, "going on") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	var st ourotail.Status
	if err := json.Unmarshal([]byte(must(t, "status", "--data-dir", filepath.Join(dir, "data"), "--json")), &st); err != nil || st.Head != chain.Tip().Point {
		t.Errorf("head %v, the node's tip is %v: %v", st.Head, chain.Tip(), err)
	}
}
