package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
)

// Config says which consumer to drill, and how. Consumer and Tail are required.
type Config struct {
	Consumer []string      // its command line
	Tail     []string      // a command line that runs Tail; the Spec is appended to it
	Seed     uint64        // of the chains and of everything that is left to chance
	Days     []Day         // nil for all
	K        int           // security parameter of most days' chains; 0 for DefaultK
	Watch    int           // how many addresses the lines are about; 0 for all there are
	Keep     string        // folder for each day's lines and answers; empty to keep nothing
	Patience time.Duration // how long nothing may happen; 0 for DefaultPatience
	Progress func(Progress)
	Done     func(Result) // called after each day

	ours time.Duration // how long ourotail may do nothing; 0 for Patience
}

// The defaults.
const (
	DefaultK        = 36
	DefaultPatience = 30 * time.Second
)

// Progress is where a drill is.
type Progress struct {
	Day  string
	N    int // from 0
	Of   int
	Step string // what happens now; empty at the start of a day
}

// Whose fault a failed day is.
const (
	ByConsumer = "consumer"
	ByOurotail = "ourotail" // or the machine it runs on
)

// Result tells how a day went.
type Result struct {
	Day      string        `json:"day"`
	Tests    string        `json:"tests"`
	Catches  string        `json:"catches"`
	Seed     uint64        `json:"seed"`
	Passed   bool          `json:"passed"`
	Took     time.Duration `json:"-"`
	Millis   int64         `json:"took_ms"`
	Blocks   int           `json:"blocks"` // of the chain at the end
	Lines    int           `json:"lines"`  // the consumer was given
	Undos    int           `json:"undos"`  // among them
	Forks    int           `json:"forks"`  // of the chain
	Deepest  int           `json:"deepest_fork"`
	Restarts int           `json:"restarts"`                 // of ourotail
	Kills    int           `json:"kills"`                    // by SIGKILL, among them
	Consumer int           `json:"consumer_kills,omitempty"` // of the consumer

	Fault       string      `json:"fault,omitempty"`   // ByConsumer or ByOurotail
	Problem     string      `json:"problem,omitempty"` // what went wrong
	Difference  *Difference `json:"difference,omitempty"`
	Differences int         `json:"differences,omitempty"` // how many addresses
	Diagnosis   string      `json:"diagnosis,omitempty"`   // the kind of consumer that answers so
	Around      []string    `json:"around,omitempty"`      // lines about the address
	Steps       []string    `json:"steps"`                 // what happened, in order
}

// Day is a script.
type Day struct {
	Name    string
	Tests   string // one sentence
	Catches string // the kind of bug

	chain  func(k int) forge.Options
	blocks func(k int) int               // to begin with
	also   func(*devnode.Chain) [][]byte // addresses to watch besides the busiest
	run    func(context.Context, *stage) error
	tells  []string // mistakes that the day must be able to tell: it is repeated until it can
}

// Find returns the days with these names; none or "all" is all of them.
func Find(names []string) ([]Day, error) {
	var out []Day
	for _, name := range names {
		if name == "all" {
			return Days(), nil
		}
		i := slices.IndexFunc(Days(), func(d Day) bool { return d.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no day is called %q", name)
		}
		out = append(out, Days()[i])
	}
	if len(out) == 0 {
		return Days(), nil
	}
	return out, nil
}

// Run puts the consumer through the days, one after the other, and returns how
// each went. An error means that the drill itself could not go on: the
// consumer's failures are results.
func Run(ctx context.Context, cfg Config) ([]Result, error) {
	cfg.K = cmp.Or(cfg.K, DefaultK)
	cfg.Patience = cmp.Or(cfg.Patience, DefaultPatience)
	cfg.ours = cmp.Or(cfg.ours, cfg.Patience)
	if cfg.Days == nil {
		cfg.Days = Days()
	}
	if cfg.Progress == nil {
		cfg.Progress = func(Progress) {}
	}
	if len(cfg.Consumer) == 0 || len(cfg.Tail) == 0 || cfg.K < MinK {
		return nil, fmt.Errorf("drill: a consumer, a tail and a k of %d or more are required", MinK)
	}
	var results []Result
	for i := range cfg.Days {
		r, err := runDay(ctx, &cfg, i)
		if err != nil {
			return results, fmt.Errorf("day %s: %w", cfg.Days[i].Name, err)
		}
		results = append(results, r)
		if cfg.Done != nil {
			cfg.Done(r)
		}
	}
	return results, nil
}

// MinK is the least security parameter of which the days make sense.
const MinK = 12

// rounds is how often a day is repeated until it can tell what it should.
const rounds = 8

func runDay(ctx context.Context, cfg *Config, n int) (res Result, err error) {
	d := &cfg.Days[n]
	began := time.Now()
	res = Result{Day: d.Name, Tests: d.Tests, Catches: d.Catches, Seed: cfg.Seed, Steps: []string{}}
	s := &stage{cfg: cfg, result: &res, r: rand.New(rand.NewPCG(cfg.Seed, 2)),
		step: func(text string) { cfg.Progress(Progress{d.Name, n, len(cfg.Days), text}) }}
	s.step("")
	if s.dir, err = os.MkdirTemp("", "ourotail-drill-"); err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if cfg.Keep != "" {
		if err := s.openKept(); err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, s.stream.Close(), s.log.Close()) }()
	}
	problem := s.play(ctx, d)
	if err := s.strike(); err != nil {
		return res, err
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	res.Took = time.Since(began)
	res.Millis = res.Took.Milliseconds()
	if s.chain != nil {
		res.Blocks = s.chain.Len()
	}
	if s.feed != nil {
		res.Lines, res.Undos = len(s.feed.given()), s.feed.undos
	}
	var fault *consumerError
	switch {
	case problem == nil:
		res.Passed = true
	case errors.As(problem, &fault):
		res.Fault, res.Problem = ByConsumer, problem.Error()
	default:
		res.Fault, res.Problem = ByOurotail, problem.Error()
	}
	return res, nil
}

// play plays a day from its beginning to the comparison.
func (s *stage) play(ctx context.Context, d *Day) error {
	if err := s.set(ctx, d); err != nil {
		return err
	}
	for round := range rounds {
		if err := d.run(ctx, s); err != nil {
			return err
		}
		if err := s.arrive(ctx); err != nil {
			return err
		}
		all := true
		for _, name := range d.tells {
			ok, err := s.tells(name)
			if err != nil {
				return err
			}
			all = all && ok
		}
		if all {
			break
		}
		if round == rounds-1 {
			s.note("this seed's chain holds little of what the day is about: another seed tests more")
		}
	}
	return s.finish(ctx)
}

// openKept makes the files of the day that the user wants kept.
func (s *stage) openKept() (err error) {
	dir := filepath.Join(s.cfg.Keep, s.result.Day)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if s.stream, err = os.Create(filepath.Join(dir, "stream.jsonl")); err != nil {
		return err
	}
	s.log, err = os.Create(filepath.Join(dir, "consumer.log"))
	if err != nil {
		return errors.Join(err, s.stream.Close())
	}
	return nil
}

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// varied is a chain of every era in short epochs.
func varied(k int) forge.Options { return forge.Options{K: k, EpochBlocks: 8} }

// modern is a chain of Conway alone.
func modern(k int) forge.Options {
	return forge.Options{K: k, EpochBlocks: 400, Eras: []forge.EraSpan{{Era: chain.Conway}}}
}

// twiceK is enough blocks for every fork up to k, with some below.
func twiceK(k int) int { return 2*k + 10 }
