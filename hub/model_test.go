package hub

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// weights of the steps of a long run.
var stepWeights = map[string]int{
	"grow": 10, "feed": 14, "feed again": 6, "fork": 6, "subscribe": 6, "seed": 5, "after": 2, "cancel": 1, "stop": 3, "resume": 3, "bad": 1, "status": 3, "restart": 1, "end": 1,
}

// TestModel compares the hub with the naive one under random steps that shrink.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, func(format string, args ...any) {
			t.Fatalf(format, args...)
		})
		actions := map[string]func(*rapid.T){}
		for name, step := range w.steps() {
			for i := range stepWeights[name] {
				actions[fmt.Sprintf("%s %d", name, i)] = func(*rapid.T) { step() }
			}
		}
		t.Repeat(actions)
	})
}

var (
	modelSteps = flag.Int("model.steps", 200_000, "steps of the long model run")
	modelSeed  = flag.Uint64("model.seed", 1, "first seed of the long model run")
)

// TestModelLong is the same with a plain generator, for a number of steps that
// -model.steps sets, from a seed that -model.seed sets. A failure names the seed of
// its episode, which with -model.steps 1 runs alone.
func TestModelLong(t *testing.T) {
	start, done, episodes := time.Now(), 0, 0
	seed := *modelSeed
	stats := map[string]int{}
	for ; done < *modelSteps; seed++ {
		n, err := modelEpisode(seed, stats)
		if done, episodes = done+n, episodes+1; err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, n, err)
		}
	}
	t.Logf("%d steps in %d episodes, seeds %d to %d, %v: clean", done, episodes, *modelSeed, seed-1, time.Since(start).Round(time.Second))
	for _, k := range slices.Sorted(maps.Keys(stats)) {
		t.Logf("%9d %s", stats[k], k)
	}
}

type modelFailure struct{ text string }

func modelEpisode(seed uint64, stats map[string]int) (n int, err error) {
	r := rand.New(rand.NewPCG(seed, 0x6f75726f))
	var w *world
	defer func() {
		if x := recover(); x != nil {
			f, ok := x.(modelFailure)
			if !ok {
				panic(x)
			}
			err = fmt.Errorf("%s\n%s", shortNames(f.text), shortNames(strings.Join(w.trace, "\n")))
		}
	}()
	w = newWorld(r.IntN, func(format string, args ...any) { panic(modelFailure{fmt.Sprintf(format, args...)}) })
	steps := w.steps()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(stepWeights)) {
		for range stepWeights[name] {
			names = append(names, name)
		}
	}
	for range pickInt(r.IntN, 15, 30, 60, 100, 200) {
		n++
		name := pick(r.IntN, names)
		w.note("# %s", name)
		steps[name]()
	}
	for k, v := range w.stats {
		stats[k] += v
	}
	return n, nil
}

var longName = regexp.MustCompile(`(\d+\.)?(62|74|67)0{0,16}([0-9a-f]*?)0{46,64}`)

// shortNames makes the points and ids of a world's text readable.
func shortNames(s string) string {
	return longName.ReplaceAllStringFunc(s, func(x string) string {
		m := longName.FindStringSubmatch(x)
		return map[string]string{"62": "b", "74": "t", "67": "g"}[m[2]] + m[3]
	})
}
