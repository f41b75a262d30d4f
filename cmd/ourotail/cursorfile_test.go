package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/devnode/devtest"
)

// TestACursorFileIsForOneTail: a second one is refused while the first lives, whether
// that has written the file anew or not, and not after its end.
func TestACursorFileIsForOneTail(t *testing.T) {
	s := serve(t, 20)
	dir := t.TempDir()
	file := filepath.Join(dir, "cursor")
	node := s.node(filepath.Join(dir, "data"))
	args := append([]string{"tail", "--from", "origin", "--json", "--idle", "--cursor-file", file}, node...)
	first := start(t, args...)
	for range 3 {
		s.shown(t, first)
		devtest.Eventually(t, "the cursor in its file", func() bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), s.chain.Tip().Point.String())
		})
		if out, errs, code := ourotailCmd(t.Context(), append(args, "--exit-at-tip")...); code != exitHeld || out != "" || !strings.Contains(errs, "another tail") {
			t.Errorf("a second tail: exit code %d: %s%s", code, out, errs)
		}
		if err := s.chain.Extend(1); err != nil {
			t.Fatal(err)
		}
	}
	first.ends(t)
	must(t, append(args, "--exit-at-tip")...)
	if left, err := filepath.Glob(file + "?*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestACursorFileKnowsItsLines: it is refused for other lines, with the way to go on
// all the same; a file that does not say so is taken, an empty one is none.
func TestACursorFileKnowsItsLines(t *testing.T) {
	s := serve(t, 20)
	dir := t.TempDir()
	file := filepath.Join(dir, "cursor")
	tail := func(args ...string) (out, errs string, code int) {
		return ourotailCmd(t.Context(), slices.Concat([]string{"tail", "--from", "origin", "--exit-at-tip", "--json", "--cursor-file", file}, args, s.node(filepath.Join(dir, "data")))...)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := tail("*", "*/*"); code != exitOK || len(lines(out)) < 20 || out[0] == '\n' {
		t.Fatalf("with an empty file: exit code %d: %s", code, errs)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines(string(whole))) != 1 {
		t.Errorf("the file is more than a line: %q", whole)
	}
	for _, other := range [][]string{{"*"}, {"*", "*/*", "--types", "spent"}, {"*", "*/*", "--confirmations", "3"}, {"*", "*/*", "--no-rollback"}} {
		if out, errs, code := tail(other...); code != exitCursor || out != "" || !strings.Contains(errs, "other lines") || !strings.Contains(errs, "hint: ") {
			t.Errorf("%v: exit code %d: %s%s", other, code, out, errs)
		}
	}
	if out, errs, code := tail("*/*", "*", "--idle"); code != exitOK || out != "" { // the same, said otherwise
		t.Errorf("the same lines: exit code %d: %s%s", code, out, errs)
	}
	cursor, _, _ := strings.Cut(string(whole), " ")
	if err := os.WriteFile(file, []byte(cursor+"\n"), 0o600); err != nil { // as the hint says, and as it was before
		t.Fatal(err)
	}
	if out, errs, code := tail("*"); code != exitOK || out != "" {
		t.Errorf("a cursor alone: exit code %d: %s%s", code, out, errs)
	}
	if _, errs, code := ourotailCmd(t.Context(), append([]string{"tail", "--after", string(whole), "--exit-at-tip"}, s.node(filepath.Join(dir, "data"))...)...); code != exitOK {
		t.Errorf("--after the text of the file: exit code %d: %s", code, errs)
	}
}

// TestKilledBeforeTheFirstCursor: a tail that was killed when genesis outputs were out,
// but no cursor, begins anew; its reader is told to discard what it had, and once there
// is a cursor nobody hears of that again.
func TestKilledBeforeTheFirstCursor(t *testing.T) {
	s := serve(t, 20)
	dir := t.TempDir()
	file := filepath.Join(dir, "cursor")
	tail := func() string {
		out, errs, code := ourotailCmd(t.Context(), append([]string{"tail", "*", "--from", "origin", "--exit-at-tip", "--json", "--cursor-file", file}, s.node(filepath.Join(dir, "data"))...)...)
		if code != exitOK {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		return out
	}
	whole := tail()
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, asked, _ := strings.Cut(string(kept), " ")
	if err := os.WriteFile(file, []byte(begunMark+" "+strings.TrimSpace(asked)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil { // origin again, in a directory that is not an archive
		t.Fatal(err)
	}
	again := tail()
	undo, rest, _ := strings.Cut(strings.TrimPrefix(again, "\n"), "\n")
	if again[0] != '\n' || !strings.Contains(undo, `"event":"undo"`) || !strings.Contains(undo, `"height":-2`) || strings.Contains(undo, "cursor") {
		t.Errorf("it begins with %q", again[:min(len(again), 200)])
	}
	if lines(rest)[0] != lines(whole)[0] || len(lines(rest)) != len(lines(whole)) {
		t.Errorf("%d lines, %d before", len(lines(rest)), len(lines(whole)))
	}
	if out := tail(); out != "" {
		t.Errorf("behind the cursor came %q", out)
	}
}

// TestTheFirstLineIsNoted: before a line goes out the file says that lines do.
func TestTheFirstLineIsNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cursor")
	c := &cursorFile{path: file, asked: "query=1"}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	var seen string
	s := newSink(writerFunc(func(b []byte) (int, error) {
		text, err := os.ReadFile(file)
		seen = string(text)
		return len(b), err
	}))
	s.file = c
	for _, err := range []error{s.begin(), s.take(&piece{Line: "a seed\n", Counts: true}), s.flush()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != "- query=1" {
		t.Errorf("when the line went out the file held %q", seen)
	}
	c.close()
	next := &cursorFile{path: file, asked: "query=1"}
	if err := next.open(); err != nil || next.known() || !next.begun {
		t.Errorf("%+v, %v", next, err)
	}
	next.close()
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
