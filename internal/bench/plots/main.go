// Command plots draws what the bench measured. It has a module of its own, so
// that the plotting library is no requirement of the project.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plots RUNS.jsonl FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// sample is one run of one side.
type sample struct {
	Group, Side string
	Units       int
	Part        int64
	CPU         int64
	Anon        int64
	Figures     []struct {
		Name  string
		Value float64
	}
}

// per is the CPU time of a unit, in microseconds.
func (s sample) per() float64 {
	if s.Part > 0 {
		return float64(s.Part) / float64(s.Units) / 1000
	}
	return float64(s.CPU) / float64(s.Units) / 1000
}

func (s sample) figure(name string) (float64, bool) {
	for _, f := range s.Figures {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// samples by group and side.
type samples map[string]map[string][]sample

func run(raw, dir string) error {
	f, err := os.Open(raw)
	if err != nil {
		return err
	}
	defer f.Close()
	all := samples{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var s sample
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			return fmt.Errorf("%s: %w", raw, err)
		}
		if all[s.Group] == nil {
			all[s.Group] = map[string][]sample{}
		}
		all[s.Group][s.Side] = append(all[s.Group][s.Side], s)
	}
	if err := in.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, draw := range []func(samples, string) error{sync, memory, tip, rollback, growth} {
		if err := draw(all, dir); err != nil {
			return err
		}
	}
	return nil
}

// median of what value says of the samples.
func median(list []sample, value func(sample) float64) float64 {
	v := make([]float64, len(list))
	for i, s := range list {
		v[i] = value(s)
	}
	slices.Sort(v)
	return v[len(v)/2]
}
