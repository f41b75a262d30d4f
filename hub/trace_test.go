package hub

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/shared"
)

// differs tells how an outcome is not what the trace wants, or "".
func (r *traceRun) differs(l *traceLine, got outcome) string {
	if l.Result != got.Result {
		return fmt.Sprintf("result %q, want %q", got.Result, l.Result)
	}
	class := func(s string) string {
		if l.Call == "after" && (s == "older" || s == "unknown" || s == "gap" || s == "resync required") {
			return "cannot go on"
		}
		return s
	}
	if class(l.Reason) != class(got.Reason) {
		return fmt.Sprintf("reason %q, want %q", got.Reason, l.Reason)
	}
	if l.Watermark != nil && l.Result != "dead" && (got.Watermark == nil || *got.Watermark != *l.Watermark) {
		return fmt.Sprintf("watermark %v, want %d", got.Watermark, *l.Watermark)
	}
	// The traces' hub keeps the ids of submitted transactions for ever, but not
	// what became of them: of one that was confirmed and lies below the window it
	// still says pending. Ours forgets both and says that it does not know.
	settled := l.Call == "status" && r.onChain[l.Tx] && r.submitted[l.Tx] && got.Status == "unknown" && wantStatus(l.Status) == "pending"
	if want := wantStatus(l.Status); !settled && want != got.Status {
		return fmt.Sprintf("status %q, want %q", got.Status, want)
	}
	if !reflect.DeepEqual(nonNil(l.Died), got.Died) {
		return fmt.Sprintf("died %v, want %v", got.Died, l.Died)
	}
	names := map[string]bool{}
	for n := range l.Events {
		names[n] = true
	}
	for n := range got.Events {
		names[n] = true
	}
	for n := range names {
		var want []string
		for _, e := range l.Events[n] {
			want = append(want, e.text())
		}
		freeOrder(want)
		if len(want) != len(got.Events[n]) {
			return fmt.Sprintf("%s got\n    %s\n  want\n    %s", n, strings.Join(got.Events[n], "\n    "), strings.Join(want, "\n    "))
		}
		for i := range want {
			if !sameText(want[i], got.Events[n][i]) {
				return fmt.Sprintf("%s event %d is\n    %s\n  want\n    %s", n, i, got.Events[n][i], want[i])
			}
		}
	}
	for _, x := range []struct {
		what      string
		want, got []string
	}{{"accepted", l.Accepted, got.Accepted}, {"stale", l.Stale, got.Stale}} {
		sort.Strings(x.want)
		sort.Strings(x.got)
		if strings.Join(x.want, " ") != strings.Join(x.got, " ") {
			return fmt.Sprintf("%s %v, want %v", x.what, x.got, x.want)
		}
	}
	changed := map[string]string{}
	for tx, s := range l.Changed {
		changed[tx] = wantStatus(s)
	}
	for tx := range changed {
		if changed[tx] != got.Changed[tx] {
			return fmt.Sprintf("status of %s changed to %q, want %q", tx, got.Changed[tx], changed[tx])
		}
	}
	if len(changed) != len(got.Changed) {
		return fmt.Sprintf("changed %v, want %v", got.Changed, changed)
	}
	return ""
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// replayTrace feeds a trace to hubs and reports the first differences.
func replayTrace(t *testing.T, in io.Reader, thin bool) (lines, episodes int) {
	t.Helper()
	r := &traceRun{traceNames: newTraceNames(), thin: thin}
	lost, bad := false, 0
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		lines++
		var l traceLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("line %d: %v", lines, err)
		}
		switch l.Call {
		case "episode":
			episodes++
			r.traceNames = newTraceNames()
			r.head, r.kept, lost = l, nil, false
			r.start()
			continue
		case "restart":
			if lost {
				continue
			}
			r.start()
			s := State{Tip: r.at(l.Tip), Highest: chain.Height(l.Highest), Floor: r.at(l.Floor)}
			for _, b := range l.Journal {
				s.Blocks = append(s.Blocks, r.block(b))
				for _, t := range b.Txs {
					r.onChain[t.ID] = true
				}
			}
			if err := r.hub.Restore(s); err != nil {
				t.Fatalf("line %d: %v", lines, err)
			}
			continue
		}
		if lost {
			continue // after a difference the rest of an episode means nothing
		}
		if why := r.differs(&l, r.perform(&l)); why != "" {
			lost = true
			if bad++; bad <= 3 {
				t.Errorf("line %d, episode %s: %s\n  %s", lines, r.head.Seed, why, clipLine(sc.Text()))
			}
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if bad > 3 {
		t.Errorf("%d episodes differ", bad)
	}
	return lines, episodes
}

func clipLine(s string) string {
	if len(s) > 1500 {
		return s[:1500] + "…"
	}
	return s
}

// replayFile replays a trace twice: on a hub that keeps whole blocks and on one
// that reads them again when it needs them.
func replayFile(t *testing.T, path string) {
	for _, thin := range []bool{false, true} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var in io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if in, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		}
		lines, episodes := replayTrace(t, in, thin)
		if episodes == 0 {
			t.Fatal("nothing to replay")
		}
		t.Logf("%s: %d lines in %d episodes, contents kept elsewhere: %v", filepath.Base(path), lines, episodes, thin)
	}
}

func TestTraceShared(t *testing.T) {
	replayFile(t, filepath.Join(shared.Dir(t), "contract_traces.jsonl.gz"))
}

// TestTraceNamed replays the files, separated like a PATH, that OUROTAIL_TRACES
// names.
func TestTraceNamed(t *testing.T) {
	names := os.Getenv("OUROTAIL_TRACES")
	if names == "" {
		t.Skip("OUROTAIL_TRACES names no traces")
	}
	for _, path := range filepath.SplitList(names) {
		replayFile(t, path)
	}
}

// TestTraceFresh has the executable reading of the contract write new traces
// and replays them.
func TestTraceFresh(t *testing.T) {
	model := filepath.Join(shared.Dir(t), "contract_model.py")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to write traces with")
	}
	path := filepath.Join(t.TempDir(), "fresh.jsonl")
	if out, err := exec.Command(python, model, "--dump", path, "--episodes", "60", "--from", "70000").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	replayFile(t, path)
}
