package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ourotail/ourotail"
)

// TestCheckAndResync: a directory that was just filled is found whole, with the
// digest that status has; a damaged one is refused by everything that opens it,
// named by check, and filled again by run --resync.
func TestCheckAndResync(t *testing.T) {
	s := serve(t, 150)
	dir := t.TempDir()
	node := []string{"--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	run := append([]string{"run", "--exit-at-tip"}, node...)
	must(t, run...)
	check := func(code int) (r ourotail.CheckReport, errs string) {
		t.Helper()
		out, errs, got := ourotailCmd(t.Context(), "check", "--data-dir", dir, "--json")
		if got != code {
			t.Fatalf("exit code %d, want %d: %s %s", got, code, out, errs)
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r, errs
	}
	whole, _ := check(exitOK)
	if !whole.OK || !whole.Complete || whole.Digest == nil || whole.Height != int64(s.chain.Tip().Height) || whole.Records < 50 || whole.RawBytes == 0 || whole.Indexed == 0 {
		t.Errorf("%+v", whole)
	}
	var st ourotail.Status
	if err := json.Unmarshal([]byte(must(t, "status", "--data-dir", dir, "--digest", "--json")), &st); err != nil {
		t.Fatal(err)
	}
	if *st.Digest != *whole.Digest {
		t.Errorf("status has %+v, check %+v", *st.Digest, *whole.Digest)
	}
	if text := must(t, "check", "--data-dir", dir); !strings.Contains(text, whole.Digest.Accumulator) || !strings.Contains(text, "All of it agrees") {
		t.Errorf("it says\n%s", text)
	}

	spoilt := spoilTable(t, dir)
	bad, errs := check(exitDamaged)
	if bad.OK || len(bad.Findings) != 1 || bad.Findings[0].Kind != "table" || !strings.Contains(bad.Findings[0].First, spoilt) || !strings.Contains(errs, "--resync") {
		t.Errorf("%+v, %s", bad, errs)
	}
	for _, args := range [][]string{run, {"status", "--data-dir", dir}, {"utxos", "--data-dir", dir}} {
		_, errs, code := ourotailCmd(t.Context(), args...)
		if code != exitDamaged || !strings.Contains(errs, spoilt) || !strings.Contains(errs, "--resync") {
			t.Errorf("%s on a damaged directory: exit code %d: %s", args[0], code, errs)
		}
	}
	must(t, append(run, "--resync")...)
	if again, _ := check(exitOK); *again.Digest != *whole.Digest {
		t.Errorf("after a resync %+v, want %+v", again.Digest, whole.Digest)
	}
}

// TestForkDeeperThanK: following ends with what to do, the directory stays as it
// was, and run --resync follows the new chain from its first block.
func TestForkDeeperThanK(t *testing.T) {
	s, other := serve(t, 150), serveSeed(t, 3, 150)
	dir := t.TempDir()
	run := func(s served, more ...string) (string, int) {
		_, errs, code := ourotailCmd(t.Context(), append([]string{"run", "--exit-at-tip", "--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}, more...)...)
		return errs, code
	}
	if errs, code := run(s); code != exitOK {
		t.Fatal(errs)
	}
	if err := other.chain.Fork(90, 95); err != nil {
		t.Fatal(err)
	}
	before := must(t, "utxos", "--data-dir", dir, "--format", "lines")
	errs, code := run(other)
	if code != exitDiverged || !strings.Contains(errs, "--resync") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if after := must(t, "utxos", "--data-dir", dir, "--format", "lines"); after != before {
		t.Error("the directory changed")
	}
	if errs, code := run(other, "--resync"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	want, err := other.chain.Oracle().Lines(other.chain.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(must(t, "utxos", "--data-dir", dir, "--format", "lines")); !slices.Equal(got, want) {
		t.Errorf("%d outputs, want %d", len(got), len(want))
	}
}
