package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var colours = []color.Color{
	color.RGBA{0x1f, 0x77, 0xb4, 0xff}, color.RGBA{0xff, 0x7f, 0x0e, 0xff}, color.RGBA{0x2c, 0xa0, 0x2c, 0xff},
	color.RGBA{0xd6, 0x27, 0x28, 0xff}, color.RGBA{0x94, 0x67, 0xbd, 0xff}, color.RGBA{0x8c, 0x56, 0x4b, 0xff},
}

// bars draws one horizontal bar for each name.
func bars(dir, file, title, axis string, names []string, values []float64) error {
	if len(names) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, axis
	slices.Reverse(names)
	slices.Reverse(values)
	b, err := plotter.NewBarChart(plotter.Values(values), vg.Points(16))
	if err != nil {
		return err
	}
	b.Horizontal, b.Color, b.LineStyle.Width = true, colours[0], 0
	texts, points := make([]string, len(values)), make(plotter.XYs, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf(" %.3g", v)
		points[i] = plotter.XY{X: v, Y: float64(i) - 0.1}
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: points, Labels: texts})
	if err != nil {
		return err
	}
	p.Add(b, labels)
	p.NominalY(names...)
	p.X.Min, p.X.Max = 0, slices.Max(values)*1.15
	return p.Save(22*vg.Centimeter, vg.Length(2.5+0.9*float64(len(names)))*vg.Centimeter, filepath.Join(dir, file))
}

// line is a series of a plot.
type line struct {
	name   string
	points plotter.XYs
}

func lines(dir, file, title, x, y string, log bool, series []line) error {
	series = slices.DeleteFunc(series, func(l line) bool { return len(l.points) == 0 })
	if len(series) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top, p.Legend.Left = true, true
	for i, s := range series {
		slices.SortFunc(s.points, func(a, b plotter.XY) int { return int(1000 * (a.X - b.X)) })
		l, points, err := plotter.NewLinePoints(s.points)
		if err != nil {
			return err
		}
		l.Color, points.Color = colours[i%len(colours)], colours[i%len(colours)]
		p.Add(l, points)
		p.Legend.Add(s.name, l, points)
		for _, q := range s.points {
			p.Y.Max = max(p.Y.Max, q.Y*1.25)
		}
	}
	p.Add(plotter.NewGrid())
	if log {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{}
	}
	p.Y.Min = 0
	return p.Save(18*vg.Centimeter, 11*vg.Centimeter, filepath.Join(dir, file))
}

// sync draws the CPU time of a block on each side of the whole syncs.
func sync(all samples, dir string) error {
	for _, chain := range []string{"preview", "mainnet-like"} {
		var names []string
		var values []float64
		for side, list := range all["transport and whole sync, "+chain] {
			names = append(names, side)
			_ = list
		}
		slices.Sort(names)
		for _, n := range names {
			values = append(values, median(all["transport and whole sync, "+chain][n], sample.per))
		}
		if err := bars(dir, "sync-"+chain+".svg", "Reading "+chain+" over the socket; ourotail: whole sync, indexes built", "µs of CPU per block (median)", names, values); err != nil {
			return err
		}
	}
	return nil
}

// memory draws the peaks of anonymous memory.
func memory(all samples, dir string) error {
	var names []string
	var values []float64
	for _, chain := range []string{"preview", "mainnet-like"} {
		for _, side := range []string{"ourotail run", "ourotail run --memory 128MiB"} {
			if list := all["memory, "+chain][side]; len(list) > 0 {
				names = append(names, strings.TrimPrefix(side, "ourotail ")+", "+chain)
				values = append(values, median(list, func(s sample) float64 { return float64(s.Anon) / 1e6 }))
			}
		}
	}
	return bars(dir, "memory.svg", "Peak anonymous memory of a whole sync", "MB (median)", names, values)
}

// tip draws the quantiles of latency at the tip, and of the disk's.
func tip(all samples, dir string) error {
	var series []line
	for _, what := range []string{"wake", "fdatasync"} {
		l := line{name: map[string]string{"wake": "from the node's new block to the wake", "fdatasync": "the disk's fdatasync alone"}[what]}
		for group, sides := range all {
			if !strings.HasPrefix(group, "tip latency") {
				continue
			}
			for _, q := range []int{10, 25, 50, 75, 90, 95, 99} {
				name := fmt.Sprintf("%s p%d", what, q)
				l.points = append(l.points, plotter.XY{X: float64(q), Y: median(sides["tip"], func(s sample) float64 { v, _ := s.figure(name); return v })})
			}
		}
		series = append(series, l)
	}
	return lines(dir, "tip.svg", "At the tip, mainnet-like, all indexes, synced commits", "percentile", "ms", false, series)
}

// rollback draws the CPU time of a block applied and undone, by depth.
func rollback(all samples, dir string) error {
	var series []line
	for _, what := range []string{"apply", "undo"} {
		l := line{name: what}
		for group, sides := range all {
			if !strings.HasPrefix(group, "rollback") {
				continue
			}
			for name, depth := range map[string]float64{"1": 1, "10": 10, "100": 100, "k": 2160} {
				l.points = append(l.points, plotter.XY{X: depth, Y: median(sides["rollback"], func(s sample) float64 { v, _ := s.figure(what + " " + name); return v })})
			}
		}
		series = append(series, l)
	}
	return lines(dir, "rollback.svg", "Applying and undoing mainnet-like blocks, all indexes", "depth in blocks", "µs of CPU per block", true, series)
}
