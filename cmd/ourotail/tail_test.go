package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/feed/record"
)

// node are the flags that name a served node and a directory.
func (s served) node(dir string) []string {
	return []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
}

func envelopes(t *testing.T, text string) (out []record.Envelope) {
	t.Helper()
	for _, l := range lines(text) {
		var e record.Envelope
		if l == "" {
			continue
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		out = append(out, e)
	}
	return out
}

// whole tells whether a line ends a transaction, or is one that belongs to none.
func whole(e *record.Envelope) bool { return e.Record == nil || e.Event == "seed" || e.Record.LastOfTx }

// withoutFinal is a line but for what depends on when it was printed.
func withoutFinal(line string) string {
	i := strings.LastIndex(line, `,"final":`)
	if i < 0 {
		return line
	}
	return line[:i]
}

// TestAfterAnyCursor: behind any line, the lines that follow are the rest; for
// lines inside a transaction too. Final is true of what is k deep.
func TestAfterAnyCursor(t *testing.T) {
	s := serve(t, 45) // fewer than k: all of it can be had again
	dir := t.TempDir()
	node := s.node(dir)
	all := lines(must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--json", "--idle"}, node...)...))
	envs := envelopes(t, strings.Join(all, "\n"))
	for i, e := range envs { // as the command time gives it; a seed of the genesis has none
		var f timeFacts
		if i%40 == 0 && e.Point != nil {
			if err := json.Unmarshal([]byte(must(t, "time", strconv.FormatUint(e.Point.Slot, 10), "--json", "--config", s.config)), &f); err != nil {
				t.Fatal(err)
			}
		}
		if (e.Time == "") != (e.Point == nil) || !f.Time.IsZero() && e.Time != f.Time.Format(time.RFC3339Nano) {
			t.Fatalf("the time of %v is %q, want %v", e.Point, e.Time, f.Time)
		}
	}
	tried := 0
	for i := 0; i < len(all); i += 1 + len(all)/25 {
		if envs[i].Cursor == "" {
			continue
		}
		got := must(t, append([]string{"tail", "--after", envs[i].Cursor, "--exit-at-tip", "--json", "--idle"}, node...)...)
		want := strings.Join(all[i+1:], "\n")
		var g, w []string
		for _, l := range lines(got) {
			g = append(g, withoutFinal(l))
		}
		for _, l := range lines(want) {
			w = append(w, withoutFinal(l))
		}
		if !slices.Equal(g, w) {
			t.Errorf("after line %d (%s): %d lines, want %d", i, envs[i].Cursor, len(g), len(w))
		}
		tried++
	}
	if tried < 15 {
		t.Errorf("%d cursors tried of %d lines", tried, len(all))
	}
	// From the beginning again, and from an era's.
	if got := must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--json", "--idle"}, node...)...); len(lines(got)) != len(all) {
		t.Errorf("from origin again: %d lines, want %d", len(lines(got)), len(all))
	}
	path, err := s.chain.Oracle().Path(s.chain.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var first chain.Link
	for _, l := range path {
		if l.Era == chain.Shelley {
			first = l
			break
		}
	}
	i := slices.IndexFunc(envs, func(e record.Envelope) bool { return e.Height == int64(first.Height) && e.Event != "seed" })
	if got := must(t, append([]string{"tail", "--from", "shelley", "--exit-at-tip", "--json", "--idle"}, node...)...); i < 0 || len(lines(got)) != len(all)-i {
		t.Errorf("from shelley: %d lines, want those from line %d of %d", len(lines(got)), i, len(all))
	}
	if _, errs, code := ourotailCmd(t.Context(), append([]string{"tail", "--from", "conway"}, node...)...); code != exitUsage || !strings.Contains(errs, "has not begun") {
		t.Errorf("from conway: exit code %d: %s", code, errs)
	}
}

// TestTypesExistingConfirmations: what the flags leave out is what they say.
func TestTypesExistingConfirmations(t *testing.T) {
	s := serve(t, 40)
	dir := t.TempDir()
	node := s.node(dir)
	tail := func(args ...string) []record.Envelope {
		t.Helper()
		return envelopes(t, must(t, slices.Concat([]string{"tail", "--exit-at-tip", "--json"}, args, node)...))
	}
	all := tail("--from", "origin")
	for _, kind := range []string{"created", "spent"} {
		var want, got []string
		for _, e := range all {
			if e.Record.Kind == kind {
				want = append(want, e.Record.ID)
			}
		}
		for _, e := range tail("--from", "origin", "--types", kind) {
			got = append(got, e.Record.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("--types %s: %d lines, want %d", kind, len(got), len(want))
		}
	}
	top := s.chain.Tip().Height
	for _, c := range []struct {
		flag string
		most chain.Height
	}{{"--confirmations=7", top - 7}, {"--no-rollback", top - 50}} {
		n := 0
		for _, e := range all {
			if e.Event == "seed" || e.Height <= int64(c.most) {
				n++
			}
		}
		if got := tail("--from", "origin", c.flag); len(got) != n {
			t.Errorf("%s: %d lines, want %d", c.flag, len(got), n)
		}
	}
	sum, err := s.chain.Oracle().Summary(s.chain.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	seeds := tail("--include-existing")
	if len(seeds) != sum.Count || seeds[len(seeds)-1].Cursor == "" || seeds[0].Event != "seed" || seeds[0].Cursor != "" {
		t.Errorf("--include-existing: %d lines, want %d", len(seeds), sum.Count)
	}
	if got := tail("--include-existing", "--limit", "3"); len(got) != 3 {
		t.Errorf("--limit 3 of what exists: %d lines", len(got))
	}
}

// TestCursorFileGoesOn: a tail that ends again and again, wherever, prints with its
// file every line once.
func TestCursorFileGoesOn(t *testing.T) {
	s := serve(t, 45)
	dir := t.TempDir()
	node := s.node(filepath.Join(dir, "data"))
	all := envelopes(t, must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--json"}, s.node(t.TempDir())...)...))
	file := filepath.Join(dir, "cursor")
	var got []record.Envelope
	for range 1000 {
		ls := envelopes(t, must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--json", "--limit", "40", "--cursor-file", file}, node...)...))
		got = append(got, ls...)
		n := len(ls)
		if n == 0 {
			break
		}
		if !whole(&got[len(got)-1]) || n < 40 && len(got) < len(all) {
			t.Fatalf("%d lines, and then the end", n)
		}
	}
	if len(got) != len(all) {
		t.Fatalf("%d lines, want %d", len(got), len(all))
	}
	for i := range all {
		if got[i].Record.ID != all[i].Record.ID {
			t.Fatalf("line %d is %s, want %s", i, got[i].Record.ID, all[i].Record.ID)
		}
	}
	// After a kill, which is what a file without its newline tells, the lines begin
	// with an undo to where it stands.
	if err := os.WriteFile(file, []byte(all[len(all)-1].Cursor), 0o600); err != nil {
		t.Fatal(err)
	}
	out := must(t, append([]string{"tail", "--exit-at-tip", "--json", "--cursor-file", file}, node...)...)
	if e := envelopes(t, out); out[0] != '\n' || len(e) != 1 || e[0].Event != "undo" || e[0].Height != all[len(all)-1].Height {
		t.Errorf("after a kill it prints %q", out)
	}
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestCursorsThatCannotBeResumed: each is refused in its own words, with what to do.
func TestCursorsThatCannotBeResumed(t *testing.T) {
	s := serve(t, 150)
	dir := t.TempDir()
	node := s.node(filepath.Join(dir, "data"))
	all := envelopes(t, must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--json"}, node...)...))
	newest := all[len(all)-1].Cursor
	st, err := statusOf(t.Context(), filepath.Join(dir, "data"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	oldest := "can go on is " + st.Floor.String()
	good, err := chain.ParseToken(newest)
	if err != nil {
		t.Fatal(err)
	}
	with := func(f func(*chain.Token)) string {
		c := good
		f(&c)
		return c.String()
	}
	for name, c := range map[string]struct {
		cursor string
		code   int
		says   string
	}{
		"another network": {with(func(c *chain.Token) { c.Magic = 2 }), exitDiverged, "magic 2"},
		"damaged":         {newest[:len(newest)-1] + "x", exitBadInput, "checksum"},
		"cut off":         {newest[:20], exitBadInput, "not a cursor"},
		"from the future": {with(func(c *chain.Token) { c.At.Height += 1000 }), exitCursor, "from the future"},
		"older":           {all[len(all)/4].Cursor, exitCursor, "oldest point from which"},
		"never was":       {with(func(c *chain.Token) { c.At.Point.Hash[0]++ }), exitCursor, "forgotten"},
	} {
		for _, flag := range []string{"--after", "--cursor-file"} {
			text := c.cursor
			if flag == "--cursor-file" {
				text = filepath.Join(dir, "cursor")
				if err := os.WriteFile(text, []byte(c.cursor+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, code := ourotailCmd(t.Context(), append([]string{"tail", flag, text, "--exit-at-tip"}, node...)...)
			if code != c.code || !strings.Contains(errs, c.says) || out != "" {
				t.Errorf("%s, %s: exit code %d, want %d: %s", name, flag, code, c.code, errs)
			}
			if !strings.Contains(errs, "--include-existing") || !strings.Contains(errs, oldest) {
				t.Errorf("%s: no way on is named, want %s: %s", name, oldest, errs)
			}
		}
	}
	unknown := good.At.Point
	unknown.Hash[0]++
	for _, from := range []string{unknown.String(), "5." + strings.Repeat("ab", 32)} {
		_, errs, code := ourotailCmd(t.Context(), append([]string{"tail", "--from", from, "--exit-at-tip"}, node...)...)
		if code != exitUsage || !strings.Contains(errs, oldest) {
			t.Errorf("--from %s: exit code %d, want the way on from %s: %s", from, code, oldest, errs)
		}
	}
}

// TestFlagsOfTailThatContradict are refused with a sentence, before anything is done.
func TestFlagsOfTailThatContradict(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--after 1 --from origin", "leave one out"},
		{"--after 1 --cursor-file f", "leave one out"},
		{"--after 1 --include-existing", "leave one out"},
		{"--after nonsense", "not a cursor"},
		{"--include-existing --from origin", "does not go with --from origin"},
		{"--include-existing --types spent", "leave one out"},
		{"--no-rollback --confirmations 5", "leave out --confirmations"},
		{"--confirmations -1", "negative"},
		{"--idle --format effects", "no line"},
		{"--json --format pretty", "contradict"},
		{"--limit 0", "want 1 or more"},
		{"--types all", "created, spent, both"},
		{"--from babylon", "era"},
	} {
		_, errs, code := ourotailCmd(t.Context(), append(strings.Fields("tail --data-dir /nowhere "+c.args), "--log-level", "error")...)
		if code != exitUsage && code != exitBadInput || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d: %s", c.args, code, errs)
		}
	}
}

// TestTailsShareAFollower: several tails read from one run, each what it would have
// read alone; when the follower ends one of them goes on by itself, and the others
// with it.
func TestTailsShareAFollower(t *testing.T) {
	impatient(t, time.Second)
	s := serve(t, 45)
	dir := t.TempDir()
	node := s.node(dir)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan int, 1)
	go func() {
		_, _, code := ourotailCmd(ctx, append([]string{"run"}, node...)...)
		ran <- code
	}()
	devtest.Eventually(t, "the follower at the tip", func() bool {
		out, _, code := ourotailCmd(t.Context(), "status", "--data-dir", dir, "--json")
		return code == exitOK && strings.Contains(out, fmt.Sprintf(`"height":%d`, s.chain.Tip().Height))
	})
	for _, format := range []string{"json", "pretty", "effects"} {
		alone := must(t, append([]string{"tail", "--from", "origin", "--exit-at-tip", "--format", format}, s.node(t.TempDir())...)...)
		// Whoever shares needs neither node nor network.
		shared := must(t, "tail", "--from", "origin", "--exit-at-tip", "--format", format, "--data-dir", dir)
		a, b := lines(alone), lines(shared)
		for i := range a {
			a[i] = withoutFinal(a[i])
		}
		for i := range b {
			b[i] = withoutFinal(b[i])
		}
		if !slices.Equal(a, b) {
			t.Errorf("--format %s: %d lines shared, %d alone", format, len(b), len(a))
		}
	}
	if got := must(t, "tail", "--from", "origin", "--limit", "10", "--json", "--data-dir", dir); len(lines(got)) < 10 {
		t.Errorf("--limit 10: %d lines", len(lines(got)))
	}
	if _, errs, code := ourotailCmd(t.Context(), "tail", "--after", "2:origin:00000000", "--data-dir", dir); code != exitBadInput {
		t.Errorf("a damaged cursor: exit code %d: %s", code, errs)
	}
	if _, errs, code := ourotailCmd(t.Context(), "tail", "--after", (chain.Token{Magic: 7, Cursor: chain.Cursor{At: chain.Origin, Place: chain.WholeBlock}}).String(), "--data-dir", dir); code != exitDiverged {
		t.Errorf("a cursor of another network: exit code %d: %s", code, errs)
	}

	// Two that go on, through forks and the follower's end.
	type reader struct {
		out  lockedBuffer
		code chan int
	}
	readers := make([]*reader, 2)
	rctx, end := context.WithCancel(t.Context())
	for i := range readers {
		r := &reader{code: make(chan int, 1)}
		readers[i] = r
		go func() {
			r.code <- execute(rctx, append([]string{"tail", "--from", "origin", "--json", "--idle"}, node...), strings.NewReader(""), &r.out, os.Stderr)
		}()
	}
	atTip := func() {
		t.Helper()
		tip := s.chain.Tip().Height
		for _, r := range readers {
			devtest.Eventually(t, "the reader at the tip", func() bool {
				text := r.out.String()
				i := strings.LastIndexByte(text, '\n')
				if i < 0 {
					return false
				}
				ls := lines(text[:i+1])
				var e record.Envelope
				return json.Unmarshal([]byte(ls[len(ls)-1]), &e) == nil && e.Height == int64(tip) && (e.Event == "idle" || e.Record != nil && e.Record.LastOfBlock)
			})
		}
	}
	atTip()
	fork := func() {
		t.Helper()
		if err := s.chain.Fork(3, 5); err != nil {
			t.Fatal(err)
		}
	}
	fork()
	atTip()
	stop()
	if code := <-ran; code != exitOK {
		t.Errorf("run ended with %d", code)
	}
	fork()
	atTip() // one of them follows now
	end()
	want, err := s.chain.Oracle().Lines(s.chain.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readers {
		if code := <-r.code; code != exitOK {
			t.Errorf("a tail ended with %d", code)
		}
		if got := foldLines(t, r.out.String()); len(got) != len(want) {
			t.Errorf("%d outputs, want %d", len(got), len(want))
		}
	}
}

// foldLines is what a reader by the rules comes to: the unspent outputs.
func foldLines(t *testing.T, text string) map[string]bool {
	t.Helper()
	type out struct{ made, spent int64 }
	const never = -2
	set := map[string]*out{}
	for _, e := range envelopes(t, text) {
		switch {
		case e.Event == "undo":
			for ref, o := range set {
				if o.made > e.Height {
					delete(set, ref)
				} else if o.spent > e.Height {
					o.spent = never
				}
			}
		case e.Record == nil:
		default:
			ref := fmt.Sprintf("%s#%d", e.Record.Output.TransactionID, e.Record.Output.OutputIndex)
			switch h, o := e.Height, set[ref]; {
			case e.Record.Kind == "created" && o == nil:
				set[ref] = &out{h, never}
			case e.Record.Kind == "created" || o == nil || o.spent != never:
				t.Fatalf("%s of %s at %d comes twice, or out of turn", e.Record.Kind, ref, h)
			default:
				o.spent = h
			}
		}
	}
	unspent := map[string]bool{}
	for ref, o := range set {
		if o.spent == never {
			unspent[ref] = true
		}
	}
	return unspent
}

// TestSlowReaderOfASharedFollower: one that does not read loses its subscription, and
// nothing else: the others read on, and once it reads again it has every line.
func TestSlowReaderOfASharedFollower(t *testing.T) {
	old := sharedBound
	sharedBound = 100
	t.Cleanup(func() { sharedBound = old })
	s := serve(t, 10)
	dir := t.TempDir()
	node := s.node(dir)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan int, 1)
	go func() {
		_, _, code := ourotailCmd(ctx, append([]string{"run"}, node...)...)
		ran <- code
	}()
	atTip := func() bool {
		out, _, code := ourotailCmd(t.Context(), "status", "--data-dir", dir, "--json")
		return code == exitOK && strings.Contains(out, fmt.Sprintf(`"height":%d,`, s.chain.Tip().Height))
	}
	devtest.Eventually(t, "the follower at the tip", atTip)
	r, w := io.Pipe()
	slow := make(chan int, 1)
	sctx, end := context.WithCancel(t.Context())
	go func() {
		code := execute(sctx, []string{"tail", "--from", "origin", "--json", "--data-dir", dir, "--log-level", "error"}, strings.NewReader(""), w, os.Stderr)
		w.Close()
		slow <- code
	}()
	in := bufio.NewReader(r)
	if _, err := in.Peek(1); err != nil { // it has begun, and now nobody reads
		t.Fatal(err)
	}
	for range 13 {
		if err := s.chain.Extend(3); err != nil {
			t.Fatal(err)
		}
		devtest.Eventually(t, "the follower at the tip, whoever does not read", atTip)
	}
	quick := must(t, "tail", "--from", "origin", "--json", "--exit-at-tip", "--data-dir", dir)
	var text strings.Builder
	for range lines(quick) {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(line)
	}
	end()
	go func() { _, _ = io.Copy(io.Discard, in) }() // what comes now is too much
	if code := <-slow; code != exitOK {
		t.Errorf("the slow one ended with %d", code)
	}
	a, b := lines(quick), lines(text.String())
	if len(a) != len(b) {
		t.Fatalf("%d lines, want %d", len(b), len(a))
	}
	for i := range a {
		if withoutFinal(a[i]) != withoutFinal(b[i]) {
			t.Fatalf("line %d is %s\nwant %s", i, b[i], a[i])
		}
	}
	stop()
	if code := <-ran; code != exitOK {
		t.Errorf("run ended with %d", code)
	}
}
