package ourotail_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/internal/model"
)

// TestModel plays the whole application against a list of blocks in virtual
// time; see internal/model. A run that fails names its seed, which replays it:
//
//	OUROTAIL_MODEL_SEED=17 OUROTAIL_MODEL_RUNS=1 OUROTAIL_MODEL_TRACE=1 go test -run '^TestModel$' .
//
// OUROTAIL_MODEL_RUNS and OUROTAIL_MODEL_STEPS make it longer; `make model` does.
func TestModel(t *testing.T) {
	runs, steps := uint64(5), uint64(100)
	if testing.Short() {
		runs, steps = 2, 75
	}
	first := envNumber(t, "OUROTAIL_MODEL_SEED", 1)
	runs, steps = envNumber(t, "OUROTAIL_MODEL_RUNS", runs), envNumber(t, "OUROTAIL_MODEL_STEPS", steps)
	total := model.Report{}
	for seed := first; seed < first+runs; seed++ {
		ok := t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := playModel(t, seed, int(steps))
			t.Logf("%+v", r)
			total.Add(r)
		})
		if !ok {
			return // the first failure is the one to look at
		}
	}
	t.Logf("%d runs: %+v", runs, total)
}

// TestModelReplays: the same seed gives the same run, to the last event; another
// gives another.
func TestModelReplays(t *testing.T) {
	steps := 50
	if testing.Short() {
		steps = 25
	}
	for _, seed := range []uint64{3, 5} { // 5 is an archive, whose past is read beside
		a, b := playModel(t, seed, steps), playModel(t, seed, steps)
		if a.Trace != b.Trace || a.Events != b.Events {
			t.Errorf("seed %d: %+v\n%+v", seed, a, b)
		}
	}
	a := playModel(t, 3, steps)
	if c := playModel(t, 4, steps); c.Trace == a.Trace {
		t.Error("another seed gave the same run")
	}
}

// realPatience is how long a run may take in real time: in virtual time a loop
// without a wait lasts for ever.
const realPatience = 5 * time.Minute

func playModel(t *testing.T, seed uint64, steps int) (r model.Report) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a small heap with large buffers in it
	hangs := time.AfterFunc(realPatience, func() { panic(fmt.Sprintf("model, seed %d: no end after %v", seed, realPatience)) })
	defer hangs.Stop()
	o := model.Options{Seed: seed, Steps: steps, Open: func(ctx context.Context, cfg ourotail.Config, h model.Hooks) (*ourotail.Follower, error) {
		return ourotail.OpenWith(ctx, cfg, ourotail.Hooks(h))
	}}
	if os.Getenv("OUROTAIL_MODEL_TRACE") != "" {
		o.Each = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	synctest.Test(t, func(t *testing.T) { r = model.Run(t, o) })
	return r
}

func envNumber(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
