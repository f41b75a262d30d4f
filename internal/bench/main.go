// Command bench measures ourotail against comparators and prints a table of
// ratios. The sides of a comparison run in turns, each in a process of its own
// with the defaults of the Go runtime; the node that serves the chain is one
// more. A ratio is one of processor time unless its row says otherwise: wall
// time says little where others use the machine too.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		if err := child(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench child:", err)
			os.Exit(1)
		}
		return
	}
	var b bench
	flag.IntVar(&b.runs, "runs", 5, "measured runs of each side, in turns")
	flag.StringVar(&b.only, "only", "", "only groups whose name contains this")
	flag.IntVar(&b.blocks, "blocks", 20_000, "blocks of the mainnet-like chain")
	flag.BoolVar(&b.quick, "quick", false, "small sizes and one run, to see that everything works")
	flag.BoolVar(&b.cold, "no-warm-up", false, "count the first run too")
	growth := flag.String("growth", "", "measure growth instead, at so many `outputs`, such as 1000000,5000000,12000000")
	plot := flag.String("plot", "", "draw plots of what is measured into this `folder`")
	raw := flag.String("raw", "", "append every run to this `file`, one JSON object a line; plots are of all that it holds")
	flag.BoolVar(&b.replay, "replay", false, "measure nothing: print the table of the runs in the file of -raw")
	flag.Parse()
	if b.quick {
		b.runs, b.blocks = 1, min(b.blocks, 1200)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.main(ctx, *growth, *raw, *plot)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of the command.
type bench struct {
	runs, blocks int
	only         string
	quick, cold  bool
	replay       bool

	dir   string // for what is made and thrown away
	cache string // for what is kept for later runs
	raw   io.Writer
}

func (b *bench) main(ctx context.Context, growth, raw, plot string) (err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	b.cache = filepath.Join(cache, "ourotail-bench")
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if raw == "" {
		raw = filepath.Join(b.dir, "raw.jsonl")
	}
	f, err := os.OpenFile(raw, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	b.raw = f
	kept := map[string]map[string][]result{}
	if b.replay {
		if kept, err = keptRuns(raw); err != nil {
			return err
		}
	}
	fmt.Printf("%s\n", machine())
	groups := b.groups()
	if growth != "" {
		if groups, err = b.growthGroups(growth); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if !strings.Contains(g.name, b.only) {
			continue
		}
		if b.replay {
			if runs := kept[g.name]; len(runs) > 0 {
				fmt.Printf("\n%s\n", g.name)
				g.print(runs)
			}
			continue
		}
		fmt.Printf("\n%s (load %s)\n", g.name, load())
		if err := g.run(ctx, b); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Printf("  not measured: %v\n", err)
		}
	}
	if plot == "" {
		return nil
	}
	return draw(ctx, raw, plot)
}

// run is one line of the file of raw runs.
type run struct {
	Group string `json:"group"`
	Side  string `json:"side"`
	Load  string `json:"load"` // of the machine, when it ended
	result
}

// note keeps one run.
func (b *bench) note(group, side string, r result) {
	line, err := json.Marshal(run{group, side, load(), r})
	if err == nil {
		_, err = fmt.Fprintf(b.raw, "%s\n", line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: a run was not kept:", err)
	}
}

// keptRuns reads a file of raw runs, by group and side.
func keptRuns(path string) (map[string]map[string][]result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kept := map[string]map[string][]result{}
	for d := json.NewDecoder(f); ; {
		var r run
		if err := d.Decode(&r); err == io.EOF {
			return kept, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if kept[r.Group] == nil {
			kept[r.Group] = map[string][]result{}
		}
		kept[r.Group][r.Side] = append(kept[r.Group][r.Side], r.result)
	}
}
