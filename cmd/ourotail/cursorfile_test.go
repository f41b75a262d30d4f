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
