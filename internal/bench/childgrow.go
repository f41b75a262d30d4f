package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// seedSize is how many outputs are at the address that a seed is read of.
const seedSize = 1000

func (j job) growOptions() store.Options {
	return store.Options{Dir: j.Dir, Magic: 1, K: 2160, Memory: j.Memory, Terms: ledger.Terms}
}

// grow fills a store with N unspent outputs and all indexes, and measures on the
// way: a block far from the tip, a block at the tip, size, opening after a clean
// stop, a seed. It ends with blocks committed and no clean stop, by a signal that
// cannot be caught; what it has measured it has printed before.
func grow(j job) (r result, err error) {
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return r, err
	}
	s, err := store.Open(j.growOptions())
	if err != nil {
		return r, err
	}
	if err := s.Genesis(nil); err != nil {
		return r, err
	}
	say := func(name string, v float64, unit string) { r.More = append(r.More, figure{name, v, unit}) }
	say("outputs", float64(j.N), "")
	t := newTraffic(j.N)
	// As the command does, with what the measuring itself needs on top.
	debug.SetMemoryLimit(store.DefaultMemory + 16<<20 + t.memory())
	say("of the memory, to measure with", float64(t.memory())/1e6, "MB")
	w, c := time.Now(), cpu()
	if err := t.fill(s); err != nil {
		return r, err
	}
	say("fill", float64((cpu()-c).Microseconds())/float64(j.N), "µs CPU per output")
	say("fill wall", time.Since(w).Seconds(), "s")
	if c, err = t.catchUp(s, 5000); err != nil {
		return r, err
	}
	say("block far from the tip", float64(c.Nanoseconds())/5000/1000, "µs CPU")
	w, c = time.Now(), cpu()
	if err := s.BuildIndexes(context.Background(), nil); err != nil {
		return r, err
	}
	say("indexes", float64((cpu()-c).Microseconds())/float64(j.N), "µs CPU per output")
	say("indexes wall", time.Since(w).Seconds(), "s")
	if err := t.atTip(s, 200, nil); err != nil { // those before have filled no journal
		return r, err
	}
	var took []time.Duration
	c = cpu()
	if err := t.atTip(s, 1000, &took); err != nil {
		return r, err
	}
	say("block at the tip", float64((cpu()-c).Microseconds())/1000, "µs CPU")
	for _, f := range quantiles("commit", took) {
		if f.Name == "commit p50" || f.Name == "commit p99" {
			r.More = append(r.More, f)
		}
	}
	say("live", float64(s.State().UTxOs), "outputs")
	w = time.Now()
	if err := s.Close(); err != nil {
		return r, err
	}
	say("close", time.Since(w).Seconds(), "s")
	size, err := diskUse(j.Dir)
	if err != nil {
		return r, err
	}
	say("disk", float64(size)/float64(j.N), "bytes per output")
	if s, err = j.timedOpen("open after a stop", say); err != nil {
		return r, err
	}
	if err := t.seeds(s, say); err != nil {
		return r, err
	}
	if err := t.atTip(s, 500, nil); err != nil {
		return r, err
	}
	r.Units = j.N
	return r, nil // the store stays open, and the process is killed
}

// timedOpen opens the store from the disk alone, as after a start of the machine.
func (j job) timedOpen(name string, say func(string, float64, string)) (*store.Store, error) {
	runtime.GC()
	if err := forget(j.Dir); err != nil {
		return nil, err
	}
	w, c := time.Now(), cpu()
	s, err := store.Open(j.growOptions())
	if err != nil {
		return nil, err
	}
	say(name, time.Since(w).Seconds(), "s")
	say(name+" CPU", (cpu() - c).Seconds(), "s")
	return s, nil
}

// reopen opens a store that was killed.
func reopen(j job) (r result, err error) {
	s, err := j.timedOpen("open after a kill", func(name string, v float64, unit string) {
		r.More = append(r.More, figure{name, v, unit})
	})
	if err != nil {
		return r, err
	}
	r.Units = j.N
	return r, s.Close()
}

// catchUp commits n blocks as a first sync does and returns what that took,
// without making them.
func (t *traffic) catchUp(s *store.Store, n int) (used time.Duration, err error) {
	const batch = 32 // a megabyte of blocks
	blocks := newBlocks(batch)
	for ; n > 0; n -= batch {
		t.batch(blocks[:min(batch, n)], false)
		c := cpu()
		for _, e := range blocks[:min(batch, n)] {
			if err := lookUp(s, e); err != nil {
				return used, err
			}
		}
		if err := s.Gather(blocks[:min(batch, n)]); err != nil {
			return used, err
		}
		used += cpu() - c
	}
	c := cpu()
	err = s.Flush()
	return used + cpu() - c, err
}

// atTip commits n blocks one by one, each with a record.
func (t *traffic) atTip(s *store.Store, n int, took *[]time.Duration) error {
	blocks := newBlocks(1)
	for range n {
		t.batch(blocks, true)
		began := time.Now()
		if err := lookUp(s, blocks[0]); err != nil {
			return err
		}
		if err := s.Commit(blocks); err != nil {
			return err
		}
		if took != nil {
			*took = append(*took, time.Since(began))
		}
	}
	return nil
}

func lookUp(s *store.Store, e *chain.Effects) error {
	want := make([]*chain.Output, 0, len(e.Spent))
	for i := range e.Spent {
		if !e.Spent[i].InBatch {
			want = append(want, &e.Spent[i])
		}
	}
	missing, err := s.Outputs(want)
	if err == nil && missing >= 0 {
		err = fmt.Errorf("no output %s", want[missing].Ref)
	}
	return err
}

// seeds reads the outputs of one address again and again, decoded: the first
// time from the disk alone.
func (t *traffic) seeds(s *store.Store, say func(string, float64, string)) error {
	var took []time.Duration
	c := cpu()
	for i := range 21 {
		began, n := time.Now(), 0
		v := s.Snapshot()
		err := v.UTxOs(context.Background(), chain.Source{Kind: chain.SourceAddress, Key: string(seedAddress())}, func(o *chain.Output) error {
			n++
			_, err := ledger.DecodeOutput(o.Era, o.Raw)
			return err
		})
		v.Close()
		if err != nil {
			return err
		}
		if n != seedSize {
			return fmt.Errorf("a seed of %d outputs", n)
		}
		if i == 0 {
			say("first seed of 1,000", float64(time.Since(began).Microseconds())/1000, "ms")
			c = cpu()
			continue
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	say("seed of 1,000", float64(took[len(took)/2].Microseconds())/1000, "ms")
	say("seed of 1,000 CPU", float64((cpu()-c).Microseconds())/1000/float64(len(took)), "ms")
	return nil
}

// forget has the kernel drop the pages of a folder's files that it keeps in memory.
func forget(dir string) error {
	return files(dir, func(path string, _ fs.FileInfo) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil { // dirty pages are not dropped
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// diskUse is what a folder's files occupy, in bytes.
func diskUse(dir string) (n int64, err error) {
	err = files(dir, func(_ string, info fs.FileInfo) error {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			n += st.Blocks * 512
		}
		return nil
	})
	return n, err
}

func files(dir string, fn func(string, fs.FileInfo) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return fn(path, info)
	})
}
