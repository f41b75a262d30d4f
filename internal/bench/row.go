package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// source makes the folder with the chain that is served.
type source struct {
	name  string
	magic uint32
	make  func(dir string) (immutable, config string, err error)
}

// row is one comparison.
type row struct {
	name          string
	source        source
	ours, against string // modes of the children
}

// result is what a child says of its run.
type result struct {
	Blocks int   `json:"blocks"`
	Allocs int64 `json:"allocs"`
	Anon   int64 `json:"anon"` // peak of RssAnon, in bytes
	Disk   int64 `json:"disk"` // written, in bytes

	cpu, wall time.Duration
}

func rows(blocks int) []row {
	preview := source{"preview", 2, func(string) (string, string, error) {
		dir := sharedDir("preview", "immutable")
		if _, err := os.Stat(dir); err != nil {
			return "", "", fmt.Errorf("skipped: the real chain is not here (OUROTAIL_SHARED names its folder)")
		}
		return dir, "", nil
	}}
	mainnet := source{"mainnet-like", forge.DefaultMagic, func(dir string) (string, string, error) { return generated(dir, blocks) }}
	return []row{
		{"transport, preview: our reader, discarding", preview, "discard", "gouroboros"},
		{"whole sync with indexes, preview", preview, "sync", "gouroboros"},
		{"whole sync with indexes, preview", preview, "sync", "discard"},
		{"transport, mainnet-like: our reader, discarding", mainnet, "discard", "gouroboros"},
		{"whole sync with indexes, mainnet-like", mainnet, "sync", "gouroboros"},
		{"whole sync with indexes, mainnet-like", mainnet, "sync", "discard"},
	}
}

// sharedDir is the folder of real chain data beside the project.
func sharedDir(elem ...string) string {
	root := os.Getenv("OUROTAIL_SHARED")
	if root == "" {
		root = filepath.Join("..", "shared")
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

// generated makes a mainnet-like chain once and keeps it for later runs.
func generated(dir string, blocks int) (string, string, error) {
	dir = filepath.Join(dir, fmt.Sprintf("mainnet-like-%d", blocks))
	imm, config := filepath.Join(dir, "immutable"), filepath.Join(dir, "config.json")
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return imm, config, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", "", err
	}
	f, err := forge.New(forge.Options{Shape: forge.MainnetLike, Seed: 1, Lean: true, K: 2160})
	if err != nil {
		return "", "", err
	}
	if err := f.Genesis().WriteConfig(dir); err != nil {
		return "", "", err
	}
	w, err := immutable.Create(imm, f.ByronEpochSlots())
	if err != nil {
		return "", "", err
	}
	for range blocks {
		b, err := f.Next()
		if err != nil {
			return "", "", err
		}
		if err := w.Append(b.Raw); err != nil {
			return "", "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", "", err
	}
	return imm, config, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644)
}

func (r row) run(ctx context.Context, runs int) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	imm, config, err := r.source.make(filepath.Join(cache, "ourotail-bench"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := devnode.OpenImmutable(imm, immutable.Options{})
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "s")
	server := exec.CommandContext(ctx, os.Args[0], "child", "serve", socket, imm, fmt.Sprint(r.source.magic))
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	for range 200 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	sides := map[string][]result{}
	for i := range runs + 1 { // the first of each warms the page cache and does not count
		for _, mode := range []string{r.ours, r.against} {
			got, err := measure(ctx, mode, socket, config, fmt.Sprint(r.source.magic), c.Tip(), filepath.Join(dir, "data"))
			if err != nil {
				return err
			}
			if i > 0 {
				sides[mode] = append(sides[mode], got)
			}
		}
	}
	r.report(sides[r.ours], sides[r.against])
	return nil
}

func measure(ctx context.Context, mode, socket, config, magic string, tip chain.Tip, data string) (res result, err error) {
	if err := os.RemoveAll(data); err != nil {
		return res, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "child", mode, socket, config, magic, fmt.Sprint(tip.Point.Slot), data)
	cmd.Stderr = os.Stderr
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return res, fmt.Errorf("%s: %w", mode, err)
	}
	if err := json.Unmarshal(out, &res); err != nil {
		return res, fmt.Errorf("%s said %q: %w", mode, out, err)
	}
	res.wall = time.Since(began)
	res.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return res, nil
}

func (r row) report(ours, theirs []result) {
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = float64(ours[i].cpu) / float64(theirs[i].cpu)
	}
	slices.Sort(ratios)
	a, b := middle(ours), middle(theirs)
	per := func(d time.Duration, n int) string {
		return fmt.Sprintf("%.1f", float64(d.Nanoseconds())/float64(n)/1000)
	}
	fmt.Printf("%-44s %-26s %8.3f %8.3f %8.3f  cpu µs %s | %s, wall µs %s | %s, allocs %.2f | %.2f, anon MB %d | %d, disk MB %d\n",
		r.name, strings.NewReplacer("gouroboros", "gouroboros raw client", "discard", "our reader, discarding").Replace(r.against),
		ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1],
		per(a.cpu, a.Blocks), per(b.cpu, b.Blocks), per(a.wall, a.Blocks), per(b.wall, b.Blocks),
		float64(a.Allocs)/float64(a.Blocks), float64(b.Allocs)/float64(b.Blocks), a.Anon>>20, b.Anon>>20, a.Disk>>20)
}

// middle is the run with the median CPU time.
func middle(rs []result) result {
	s := slices.Clone(rs)
	slices.SortFunc(s, func(x, y result) int { return int(x.cpu - y.cpu) })
	return s[len(s)/2]
}
