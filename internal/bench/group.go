package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// group is what is measured together, in turns: any two of its sides may be
// compared.
type group struct {
	name   string
	source *source // nil if the sides need no chain
	serve  bool    // over a socket
	unit   string  // what Units counts
	sides  []side
	rows   []pair
	runs   int // at most so many, 0 for what was asked for
	growth int // outputs of a store to fill, instead of sides
}

// side is one way of doing something.
type side struct {
	name string
	job  job                                                 // of a child
	cmd  func(ctx context.Context, j job) (*exec.Cmd, error) // nil for a child of this program
}

// pair is a row of the table: a ratio between two sides. Value is what is
// compared, CPU time per unit if it is nil.
type pair struct {
	name, ours, theirs string
	limit              float64 // the ratio that is aimed at, 0 for none
	value              func(ours, theirs result) float64
}

func (g *group) run(ctx context.Context, b *bench) error {
	var d data
	if g.source != nil {
		var err error
		if d, err = g.source.make(ctx, b); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(b.dir, "g")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if g.growth > 0 {
		return g.grown(ctx, b, dir)
	}
	socket := filepath.Join(dir, "s")
	if g.serve {
		stop, err := server(ctx, job{Mode: "serve", Socket: socket, Data: d.immutable, Magic: d.magic})
		if err != nil {
			return err
		}
		defer stop()
	}
	n := b.runs
	if g.runs > 0 {
		n = min(n, g.runs)
	}
	first := 0
	if !b.cold && !b.quick {
		first = -1 // warms the page cache and does not count
	}
	runs, failed := map[string][]result{}, map[string]error{}
	for i := first; i < n; i++ {
		for _, s := range g.sides {
			if failed[s.name] != nil {
				continue
			}
			r, err := s.measure(ctx, d, socket, filepath.Join(dir, "data"))
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				failed[s.name] = err
				fmt.Printf("  %-34s not measured: %v\n", s.name, err)
			case i >= 0:
				runs[s.name] = append(runs[s.name], r)
				b.note(g.name, s.name, r)
			}
		}
	}
	g.print(runs)
	return nil
}

func (s side) measure(ctx context.Context, d data, socket, dir string) (result, error) {
	if err := os.RemoveAll(dir); err != nil {
		return result{}, err
	}
	j := s.job
	j.Socket, j.Data, j.Config, j.Network, j.Magic, j.Tip = socket, d.immutable, d.config, d.network, d.magic, d.tip
	j.Dir = dir
	make := start
	if s.cmd != nil {
		make = s.cmd
	}
	cmd, err := make(ctx, j)
	if err != nil {
		return result{}, err
	}
	r, err := observe(cmd)
	if err == nil && r.Units == 0 {
		r.Units = d.blocks
	}
	return r, err
}

// server starts a process that serves a chain.
func server(ctx context.Context, j job) (stop func(), err error) {
	cmd, err := start(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() { _ = kill(cmd) }
	if err := awaitSocket(j.Socket); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// awaitSocket waits until a server listens.
func awaitSocket(path string) error {
	for range 1500 {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("the server did not begin to listen")
}

func (g *group) print(runs map[string][]result) {
	for _, s := range g.sides {
		if rs := runs[s.name]; len(rs) > 0 {
			g.printSide(s.name, rs)
		}
	}
	for _, p := range g.rows {
		ours, theirs := runs[p.ours], runs[p.theirs]
		n := min(len(ours), len(theirs))
		if n == 0 {
			continue
		}
		ratios := make([]float64, n)
		for i := range ratios {
			if ratios[i] = ours[i].per() / theirs[i].per(); p.value != nil {
				ratios[i] = p.value(ours[i], theirs[i])
			}
		}
		slices.Sort(ratios)
		goal := ""
		if p.limit > 0 {
			goal = fmt.Sprintf("  at most %g: %s", p.limit, map[bool]string{true: "holds", false: "FALLS SHORT"}[ratios[n/2] <= p.limit])
		}
		fmt.Printf("  = %-56s median %6.3f  min %6.3f  max %6.3f  (%d runs)%s\n", p.name, ratios[n/2], ratios[0], ratios[n-1], n, goal)
	}
}

// printSide prints the run with the median of CPU time.
func (g *group) printSide(name string, rs []result) {
	rs = slices.Clone(rs)
	slices.SortFunc(rs, func(a, b result) int { return int(a.per() - b.per()) })
	r := rs[len(rs)/2]
	allocs := "-"
	if r.Allocs >= 0 {
		allocs = fmt.Sprintf("%.2f", r.Allocs/float64(r.Units))
	}
	var most int64
	for _, x := range rs {
		most = max(most, x.Anon)
	}
	fmt.Printf("  %-34s %7d %ss  CPU %10.2f µs (%2.0f %% system)  wall %10.2f µs  allocs %10s  peak anon %4d MB  written %5d MB", name, r.Units, g.unit, r.per()/1000,
		100*r.Sys.Seconds()/r.CPU.Seconds(),
		float64(r.Wall.Nanoseconds())/float64(r.Units)/1000, allocs, most/1e6, r.Disk/1e6)
	var more []string
	for _, f := range r.More {
		more = append(more, fmt.Sprintf("%s %.4g %s", f.Name, f.Value, f.Unit))
	}
	if len(more) > 0 {
		fmt.Printf("\n      %s", strings.Join(more, ", "))
	}
	fmt.Println()
}
