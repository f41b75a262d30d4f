package drill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// tailArg makes this test binary a Tail process.
const tailArg = "drill-tail"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == tailArg {
		spec, err := ParseSpec(os.Args[2])
		if err == nil {
			log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			err = Tail(context.Background(), spec, os.Stdin, os.Stdout, log)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// example builds a program of the folder examples.
func example(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func config(t *testing.T, days []string, consumer ...string) Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found, err := Find(days)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Consumer: consumer, Tail: []string{self, tailArg}, Seed: 1, Days: found, Watch: 8,
		Patience: 5 * time.Minute} // however slow the machine is
}

func drill(t *testing.T, cfg Config) []Result {
	t.Helper()
	results, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Logf("%-16s %v: passed %t, %d blocks, %d lines, %d undos of %d forks, deepest %d, %d restarts, %d kills %s", r.Day,
			r.Took, r.Passed, r.Blocks, r.Lines, r.Undos, r.Forks, r.Deepest, r.Restarts, r.Kills, r.Problem)
	}
	return results
}

// TestGoodConsumerPassesAllDays is the promise of the drill to who writes a
// consumer by the rules, and the proof that the stream is right on all of them.
func TestGoodConsumerPassesAllDays(t *testing.T) {
	days := []string{"all"}
	if testing.Short() {
		days = []string{"two-in-a-row", "fork-while-down", "consumer-killed"}
	}
	cfg := config(t, days, example(t, "consumer-good"))
	if testing.Short() {
		cfg.K = MinK
	}
	for _, r := range drill(t, cfg) {
		if !r.Passed {
			t.Errorf("%s: %s\n%s", r.Day, r.Problem, strings.Join(r.Steps, "\n"))
		}
		if i := slices.IndexFunc(r.Steps, func(s string) bool { return strings.Contains(s, "another seed") }); i >= 0 {
			t.Errorf("%s: %s", r.Day, r.Steps[i])
		}
		if r.Day == "consumer-killed" && !slices.ContainsFunc(r.Steps, func(s string) bool { return strings.Contains(s, "goes on behind") }) {
			t.Errorf("the consumer kept no cursor:\n%s", strings.Join(r.Steps, "\n"))
		}
		if r.Day == "killed" && !slices.ContainsFunc(r.Steps, func(s string) bool { return strings.Contains(s, "half way") }) {
			t.Errorf("no kill hit the middle of a rollback:\n%s", strings.Join(r.Steps, "\n"))
		}
	}
}

// TestBadConsumersFail: each is caught on a day that says it catches its bug, and
// the report names day, address and bug.
func TestBadConsumersFail(t *testing.T) {
	bad := example(t, "consumer-bad")
	for _, c := range []struct {
		bug, day, diagnosis string
		long                bool
	}{
		{"undo", "depths", "ignores undo", true},
		{"undo", "frozen", "ignores undo", false},
		{"scripts", "failed-scripts", "tx_valid", false},
		{"cursor", "consumer-killed", "", true},
	} {
		t.Run(c.bug+" on "+c.day, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("long")
			}
			cfg := config(t, []string{c.day}, bad, "-bug", c.bug)
			if testing.Short() {
				cfg.K = MinK
			}
			cfg.Keep = t.TempDir()
			r := drill(t, cfg)[0]
			if r.Passed || r.Fault != ByConsumer || r.Day != c.day || r.Difference == nil || r.Difference.Expected == r.Difference.Got || r.Differences < 1 || len(r.Around) == 0 {
				t.Fatalf("%+v", r)
			}
			if !strings.Contains(r.Diagnosis, c.diagnosis) {
				t.Errorf("diagnosis %q, want one about %q", r.Diagnosis, c.diagnosis)
			}
			for _, name := range []string{"stream.jsonl", "answer.txt", "truth.txt", "consumer.log"} {
				if _, err := os.Stat(filepath.Join(cfg.Keep, c.day, name)); err != nil {
					t.Error(err)
				}
			}
			truth, err := os.ReadFile(filepath.Join(cfg.Keep, c.day, "truth.txt"))
			if err != nil || !strings.Contains(string(truth), r.Difference.Address+" "+r.Difference.Expected) && r.Difference.Expected != "0" {
				t.Errorf("truth.txt does not say what the report says: %v", err)
			}
		})
	}
}

// TestPythonConsumer: the one that the documentation shows.
func TestPythonConsumer(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	if testing.Short() {
		t.Skip("long")
	}
	cfg := config(t, []string{"origin"}, python, "../../examples/consumer-python/consumer.py")
	if r := drill(t, cfg)[0]; !r.Passed {
		t.Error(r.Problem)
	}
}

// TestConsumersThatDoNotDoTheirPart: what the drill says of them.
func TestConsumersThatDoNotDoTheirPart(t *testing.T) {
	for name, c := range map[string]struct {
		script, says string
	}{
		"ends early":          {"head -n 3 >/dev/null; echo gave up >&2; exit 3", "before its input did, with exit status 3; it said:\ngave up"},
		"ends early and well": {"exit 0", "before its input did, with exit status 0"},
		"fails at the end":    {"cat >/dev/null; echo no database >&2; exit 9", "exit status 9 instead of exit status 0; it said:\nno database"},
		"says nothing":        {"cat >/dev/null", "its answer is wrong for"},
		"talks":               {"cat >/dev/null; echo the answer is 42", `"the answer is 42", not an address`},
		"repeats an address":  {"cat >/dev/null; echo a 1; echo a 2", "line 2 of its answer repeats the address a"},
		"does not end":        {"cat >/dev/null; sleep 100", "did not end within"},
		"does not read":       {"sleep 100", "has not read its input for"},
		"is killed":           {"read x; kill -9 $$", "killed"},
		"closes its input":    {"exec <&-; sleep 100", "stopped reading"},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.Contains(c.script, "cat") {
				t.Skip("long")
			}
			cfg := config(t, []string{"origin"}, "sh", "-c", c.script)
			if strings.HasSuffix(c.script, "sleep 100") {
				cfg.Patience, cfg.ours = time.Second, cfg.Patience
			}
			if c.script == "sleep 100" { // enough lines to fill a pipe
				cfg.Days, _ = Find([]string{"burst"})
				cfg.Watch = 0
			}
			r := drill(t, cfg)[0]
			if r.Passed || r.Fault != ByConsumer || !strings.Contains(r.Problem, c.says) {
				t.Errorf("passed %t, fault %s: %s\nwant: %s", r.Passed, r.Fault, r.Problem, c.says)
			}
		})
	}
}

// TestNoSuchConsumer: a command that is not there is the consumer's failure, not
// a crash.
func TestNoSuchConsumer(t *testing.T) {
	if r := drill(t, config(t, []string{"origin"}, "/no/such/consumer"))[0]; r.Passed || r.Fault != ByConsumer {
		t.Errorf("%+v", r)
	}
}

// TestEndsWithItsContext: an interrupted drill ends, and leaves nothing running.
func TestEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	cfg := config(t, []string{"depths"}, "sh", "-c", "cat >/dev/null")
	cfg.Progress = func(p Progress) {
		if strings.HasPrefix(p.Step, "fork") {
			stop()
		}
	}
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
