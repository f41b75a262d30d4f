package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Names of sides that several groups have.
const (
	ours     = "ourotail"
	reading  = "our reader, discarding"
	rawSide  = "gouroboros raw client"
	decoded  = "gouroboros decoded client"
	adderRun = "adder 0.43.1, no-op output"
)

// groups are what is measured by default.
func (b *bench) groups() []*group {
	return []*group{
		b.chainGroup(&preview, 0, 0.35, 4),
		b.chainGroup(&mainnetLike, 2000, 0.6, 8),
		b.walkGroup("block walk, preview", &preview, 0),
		b.walkGroup("block walk, real blocks of all eras", nil, 0),
		b.walkGroup("block walk, mainnet-like", &mainnetLike, 400),
		b.commitGroup(&preview, 10_000),
		b.commitGroup(&mainnetLike, 2000),
		b.memoryGroup(&preview),
		b.memoryGroup(&mainnetLike),
		b.immutableGroup(&preview),
		b.immutableGroup(&mainnetLike),
		b.tipGroup(),
		b.replayGroup(),
		b.rollbackGroup(),
		b.hubGroup(),
		b.registerGroup(),
	}
}

// size is n, or much less for a quick look.
func (b *bench) size(n int) int {
	if b.quick {
		return max(1, n/100)
	}
	return n
}

// chainGroup reads one chain over the socket: transport and whole sync.
func (b *bench) chainGroup(src *source, limit int, raw, discarding float64) *group {
	g := &group{name: "transport and whole sync, " + src.name, source: src, serve: true, unit: "block",
		sides: []side{
			{name: ours, job: job{Mode: "sync"}},
			{name: reading, job: job{Mode: "discard"}},
			{name: rawSide, job: job{Mode: "raw"}},
			{name: decoded, job: job{Mode: "decoded", Limit: limit}},
		},
		rows: []pair{
			{name: "transport: our reader / gouroboros raw client", ours: reading, theirs: rawSide},
			{name: "transport: our reader / gouroboros decoded client", ours: reading, theirs: decoded},
			{name: "whole sync, indexes built / gouroboros raw client", ours: ours, theirs: rawSide, limit: raw},
			{name: "whole sync, indexes built / our reader discarding", ours: ours, theirs: reading, limit: discarding},
		}}
	if src == &preview {
		g.sides = append(g.sides, side{name: adderRun, cmd: b.adder})
		g.rows = append(g.rows, pair{name: "whole sync, indexes built / adder 0.43.1", ours: ours, theirs: adderRun, limit: 0.1})
	}
	return g
}

// adder builds and starts the other follower, which has a module of its own: its
// requirements must not become ours.
func (b *bench) adder(ctx context.Context, j job) (*exec.Cmd, error) {
	bin := filepath.Join(b.cache, "adder-0.43.1")
	if err := build(ctx, "internal/bench/adder", bin, "."); err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, bin, j.Socket, strconv.FormatUint(uint64(j.Magic), 10), strconv.FormatUint(uint64(j.Tip.Point.Slot), 10)), nil
}

func build(ctx context.Context, dir, bin, pkg string) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", bin, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s in %s: %w: %s", pkg, dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (b *bench) walkGroup(name string, src *source, limit int) *group {
	if b.quick {
		limit = 100
	}
	const walk, gouro, lazy = "ledger.Block: Walk, Effects", "gouroboros NewBlockFromCbor", "fxamacker/cbor, RawMessage"
	return &group{name: name, source: src, unit: "block",
		sides: []side{
			{name: walk, job: job{Mode: "walk", Limit: limit}},
			{name: gouro, job: job{Mode: "walk-gouroboros", Limit: limit}},
			{name: lazy, job: job{Mode: "walk-lazy", Limit: limit}},
		},
		rows: []pair{
			{name: "walk / NewBlockFromCbor, Consumed and Produced", ours: walk, theirs: gouro, limit: 0.1},
			{name: "walk / fxamacker lazy", ours: walk, theirs: lazy},
		}}
}

// commitGroup writes blocks that are in memory into a store.
func (b *bench) commitGroup(src *source, limit int) *group {
	if b.quick {
		limit = 300
	}
	const gathered, batches, each = "gathered, then flushed", "a commit per MiB or 4,000 blocks", "a commit per block"
	return &group{name: "commit strategies, " + src.name, source: src, unit: "block", runs: 3,
		sides: []side{
			{name: gathered, job: job{Mode: "gather", Limit: limit}},
			{name: batches, job: job{Mode: "commit", Limit: limit}},
			{name: each, job: job{Mode: "commit", Batch: 1, Limit: limit}},
		},
		rows: []pair{
			{name: "gathered (the default) / a commit per block", ours: gathered, theirs: each, limit: 0.4},
			{name: "batches / a commit per block", ours: batches, theirs: each, limit: 0.4},
			{name: "gathered / batches", ours: gathered, theirs: batches},
		}}
}

// command starts the program itself.
func (b *bench) command(args ...string) func(context.Context, job) (*exec.Cmd, error) {
	return func(ctx context.Context, j job) (*exec.Cmd, error) {
		bin := filepath.Join(b.dir, "ourotail")
		if err := build(ctx, ".", bin, "./cmd/ourotail"); err != nil {
			return nil, err
		}
		all := append([]string{"run", "--exit-at-tip", "--socket-path", j.Socket, "--data-dir", j.Dir}, args...)
		for i := range all {
			all[i] = strings.ReplaceAll(all[i], "IMMUTABLE", j.Data)
		}
		if j.Config != "" {
			all = append(all, "--config", j.Config)
		} else {
			all = append(all, "--network", j.Network)
		}
		return exec.CommandContext(ctx, bin, all...), nil
	}
}

// memoryGroup runs the program as its users do, for its peak memory.
func (b *bench) memoryGroup(src *source) *group {
	const usual, small = "ourotail run", "ourotail run --memory 128MiB"
	g := &group{name: "memory, " + src.name, source: src, serve: true, unit: "block", runs: 3,
		sides: []side{{name: usual, cmd: b.command()}, {name: small, cmd: b.command("--memory", "128MiB")}}}
	for _, m := range []struct {
		side string
		mb   float64
	}{{usual, 300}, {small, 200}} {
		g.rows = append(g.rows, pair{name: fmt.Sprintf("%s: peak anonymous memory / %g MB", m.side, m.mb), ours: m.side, theirs: m.side, limit: 1,
			value: func(r, _ result) float64 { return float64(r.Anon) / (m.mb * 1e6) }})
	}
	return g
}

// immutableGroup reads the node's own files instead of the socket.
func (b *bench) immutableGroup(src *source) *group {
	const files, socket = "ourotail run --immutable", "ourotail run"
	return &group{name: "ImmutableDB as the source, " + src.name, source: src, serve: true, unit: "block", runs: 3,
		sides: []side{{name: files, cmd: b.command("--immutable", "IMMUTABLE")}, {name: socket, cmd: b.command()}},
		rows:  []pair{{name: "whole sync from the files / over the socket", ours: files, theirs: socket}}}
}

// tipGroup sends a block each quarter of a second, 80 times as often as mainnet
// makes them, and faster than the database can do its work between them.
func (b *bench) tipGroup() *group {
	const fast = "a block each 30 ms"
	n := b.size(500)
	return &group{name: "tip latency, mainnet-like, all indexes, synced", source: &mainnetLike, unit: "block", runs: 3,
		sides: []side{{name: "tip", job: job{Mode: "tip", N: n, Pace: 250 * time.Millisecond}}, {name: fast, job: job{Mode: "tip", N: n}}},
		rows: []pair{
			{name: "p99 with " + fast + " / 10 ms", ours: fast, theirs: fast,
				value: func(r, _ result) float64 { return r.figure("wake p99") / 10 }},
			{name: "p99 from the node's new block to the wake / 10 ms", ours: "tip", theirs: "tip", limit: 1,
				value: func(r, _ result) float64 { return r.figure("wake p99") / 10 }},
			{name: "p99 of the wake / p99 of fdatasync alone", ours: "tip", theirs: "tip",
				value: func(r, _ result) float64 { return r.figure("wake p99") / r.figure("fdatasync p99") }},
			{name: "p50 of the wake / p50 of fdatasync alone", ours: "tip", theirs: "tip",
				value: func(r, _ result) float64 { return r.figure("wake p50") / r.figure("fdatasync p50") }},
		}}
}

// replayGroup follows at the tip with an archive, alone and while the past is read
// from origin without a pause.
func (b *bench) replayGroup() *group {
	n := b.size(500)
	alone, beside := "following", "following, and the past read beside"
	g := &group{name: "replay beside following, preview", source: &preview, unit: "block", runs: 3,
		sides: []side{{name: alone, job: job{Mode: "tip", N: n, Archive: true}}, {name: beside, job: job{Mode: "tip", N: n, Archive: true, Replay: true}}}}
	for _, p := range []string{"p25", "p50"} {
		g.rows = append(g.rows, pair{name: p + " from the node's new block to the wake, with a replay / without", ours: beside, theirs: alone, limit: 1.1,
			value: func(r, o result) float64 { return r.figure("wake "+p) / o.figure("wake "+p) }})
	}
	return g
}

func (b *bench) rollbackGroup() *group {
	g := &group{name: "rollback by depth, mainnet-like, all indexes, synced", source: &mainnetLike, unit: "block", runs: 3,
		sides: []side{{name: "rollback", job: job{Mode: "rollback", N: b.size(2160)}}}}
	for _, d := range []string{"1", "10", "100", "k"} {
		g.rows = append(g.rows, pair{name: "rollback of depth " + d + " / applying as many blocks", ours: "rollback", theirs: "rollback", limit: 2,
			value: func(r, _ result) float64 { return r.figure("undo "+d) / r.figure("apply "+d) }})
	}
	return g
}

func (b *bench) hubGroup() *group {
	n := b.size(1_000_000)
	one, many := "1 subscription, nothing matches", fmt.Sprintf("%d subscriptions, nothing matches", n)
	return &group{name: "fan-out", unit: "block", runs: 3,
		sides: []side{{name: one, job: job{Mode: "hub", N: 1}}, {name: many, job: job{Mode: "hub", N: n}}},
		rows: []pair{{name: "a block against many subscriptions / against one", ours: many, theirs: one},
			{name: "ns for each further subscription", ours: many, theirs: one,
				value: func(a, b result) float64 { return (a.per() - b.per()) / float64(n-1) }}}}
}

func (b *bench) registerGroup() *group {
	n := b.size(1_000_000)
	const alone, busy, weigh = "ApplyBlock alone", "ApplyBlock while subscriptions come and go", "subscribing"
	return &group{name: "fan-out, subscribing", unit: "unit", runs: 3,
		sides: []side{{name: weigh, job: job{Mode: "hub-weigh", N: n}}, {name: busy, job: job{Mode: "hub-register", N: n}}, {name: alone, job: job{Mode: "hub-register"}}},
		rows: []pair{{name: "ApplyBlock p99 while registering / alone (wall)", ours: busy, theirs: alone,
			value: func(a, b result) float64 { return a.figure("ApplyBlock p99") / b.figure("ApplyBlock p99") }}}}
}

// growthGroups measure stores of several sizes, each once.
func (b *bench) growthGroups(sizes string) (groups []*group, err error) {
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 3*seedSize {
			return nil, fmt.Errorf("-growth %q: %q is not a number of outputs, %d or more", sizes, text, 3*seedSize)
		}
		groups = append(groups, &group{name: fmt.Sprintf("growth, %d outputs", n), unit: "output", runs: 1, growth: n})
	}
	return groups, nil
}

// grown measures one size: filled and killed by one process, opened by another.
func (g *group) grown(ctx context.Context, b *bench, dir string) error {
	store := filepath.Join(dir, "data")
	for _, s := range []side{{name: "store", job: job{Mode: "grow"}}, {name: "after a kill", job: job{Mode: "reopen"}}} {
		s.job.Dir, s.job.N = store, g.growth
		cmd, err := start(ctx, s.job)
		if err != nil {
			return err
		}
		r, err := observe(cmd)
		if err != nil && !(s.job.Mode == "grow" && errors.Is(err, errKilled)) {
			return err
		}
		b.note(g.name, s.name, r)
		g.printSide(s.name, []result{r})
	}
	return nil
}
