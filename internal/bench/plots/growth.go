package main

import (
	"strings"

	"gonum.org/v1/plot/plotter"
)

// growth draws how figures change with the number of live outputs.
func growth(all samples, dir string) error {
	curve := func(name, side, figure string) line {
		l := line{name: name}
		for group, sides := range all {
			list := sides[side]
			if !strings.HasPrefix(group, "growth") || len(list) == 0 {
				continue
			}
			s := list[len(list)-1]
			v, ok := s.figure(figure)
			if figure == "anon" {
				v, ok = float64(s.Anon)/1e6, true
			}
			if n := outputs(sides); ok && n > 0 {
				l.points = append(l.points, plotter.XY{X: n / 1e6, Y: v})
			}
		}
		return l
	}
	const x = "live outputs, millions"
	for _, p := range []struct {
		file, title, y string
		series         []line
	}{
		{"growth-block.svg", "A mainnet-like block on indexes of several sizes", "µs of CPU", []line{
			curve("far from the tip, gathered", "store", "block far from the tip"), curve("at the tip, all indexes", "store", "block at the tip")}},
		{"growth-disk.svg", "Size on disk, all indexes", "bytes per output", []line{curve("disk", "store", "disk")}},
		{"growth-open.svg", "Opening, nothing of it in memory", "s", []line{
			curve("after a clean stop", "store", "open after a stop"), curve("after a kill", "after a kill", "open after a kill")}},
		{"growth-memory.svg", "Peak anonymous memory", "MB", []line{
			curve("filling, indexing, at the tip", "store", "anon"), curve("opening after a kill", "after a kill", "anon")}},
		{"growth-seed.svg", "A seed of 1,000 outputs, decoded", "ms", []line{
			curve("first, from the disk", "store", "first seed of 1,000"), curve("again", "store", "seed of 1,000")}},
	} {
		if err := lines(dir, p.file, p.title, x, p.y, false, p.series); err != nil {
			return err
		}
	}
	return nil
}

func outputs(sides map[string][]sample) float64 {
	if list := sides["store"]; len(list) > 0 {
		n, _ := list[len(list)-1].figure("outputs")
		return n
	}
	return 0
}
