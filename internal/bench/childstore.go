package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/resolve"
	"github.com/ourotail/ourotail/store"
)

// feeder walks and resolves blocks and hands them to a store, as following does.
type feeder struct {
	st       *store.Store
	walked   ledger.Block
	resolver *resolve.Resolver
	open     []*chain.Effects
	free     []*chain.Effects
	bytes    int
}

func (j job) openStore() (*feeder, error) {
	g, err := j.genesis()
	if err != nil {
		return nil, err
	}
	if err := g.Complete(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return nil, err
	}
	st, err := store.Open(store.Options{Dir: j.Dir, Magic: g.Magic, K: chain.Height(g.K), Memory: j.Memory, Terms: ledger.Terms})
	if err != nil {
		return nil, err
	}
	f := &feeder{st: st, resolver: resolve.New(st)}
	f.walked.ByronEpochSlots = g.ByronEpochSlots
	return f, st.Genesis(g.Outputs)
}

// take walks and resolves a block into the open batch.
func (f *feeder) take(raw []byte, journal bool) error {
	if err := f.walked.Walk(raw); err != nil {
		return err
	}
	e := new(chain.Effects)
	if n := len(f.free); n > 0 {
		e, f.free = f.free[n-1], f.free[:n-1]
	}
	f.walked.Effects(e)
	e.Journal = journal
	if err := f.resolver.Block(e); err != nil {
		return err
	}
	f.open, f.bytes = append(f.open, e), f.bytes+len(raw)
	return nil
}

// end hands the open batch over.
func (f *feeder) end(commit func([]*chain.Effects) error) error {
	if err := commit(f.open); err != nil {
		return err
	}
	f.resolver.Committed()
	f.free = append(f.free, f.open...)
	f.open, f.bytes = f.open[:0], 0
	return nil
}

// feed hands all blocks over in batches of so many, or of the default size.
func (f *feeder) feed(blocks [][]byte, batch int, commit func([]*chain.Effects) error) error {
	if batch == 0 {
		batch = follow.DefaultMaxBlocks
	}
	for i, raw := range blocks {
		if err := f.take(raw, false); err != nil {
			return err
		}
		if len(f.open) >= batch || f.bytes >= follow.DefaultMaxBytes || i == len(blocks)-1 {
			if err := f.end(commit); err != nil {
				return err
			}
		}
	}
	return nil
}

func commit(j job) (result, error) {
	return j.store(func(s *store.Store) func([]*chain.Effects) error { return s.Commit })
}
func gather(j job) (result, error) {
	return j.store(func(s *store.Store) func([]*chain.Effects) error { return s.Gather })
}

// store writes blocks that are in memory into a new store, far from the tip. It is
// measured with walking and resolving them, and until all is on disk.
func (j job) store(how func(*store.Store) func([]*chain.Effects) error) (r result, err error) {
	blocks, err := j.blocks()
	if err != nil {
		return r, err
	}
	f, err := j.openStore()
	if err != nil {
		return r, err
	}
	before, began := mallocs(), cpu()
	err = f.feed(blocks, j.Batch, how(f.st))
	if err == nil {
		err = f.st.Flush()
	}
	r.Units, r.Part, r.Allocs, r.counted = len(blocks), int64(cpu()-began), float64(mallocs()-before), true
	return r, errors.Join(err, f.st.Close())
}

// rollBack applies d blocks one by one, with records and indexes, as at the tip,
// and takes them back, for d of 1, 10, 100 and k. Both are synced.
func rollBack(j job) (r result, err error) {
	const base = 1000
	db, err := immutable.Open(j.Data, immutable.Options{})
	if err != nil {
		return r, err
	}
	cur := db.Cursor()
	defer cur.Close()
	f, err := j.openStore()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.st.Close()) }()
	deepest := min(j.N, db.Len()-base)
	var above [][]byte
	for i := range base + deepest {
		raw, err := cur.Block(i)
		if err != nil {
			return r, err
		}
		if raw = append([]byte(nil), raw...); i >= base {
			above = append(above, raw)
			continue
		}
		if err := f.feed([][]byte{raw}, 1, f.st.Commit); err != nil {
			return r, err
		}
	}
	ctx := context.Background()
	if err := f.st.BuildIndexes(ctx, nil); err != nil {
		return r, err
	}
	to := f.st.Head().Point
	for _, depth := range []struct {
		name   string
		blocks int
	}{{"1", 1}, {"10", min(10, deepest)}, {"100", min(100, deepest)}, {"k", deepest}} {
		rounds := max(1, min(100, 400/depth.blocks))
		var applied, undone, appliedCPU, undoneCPU time.Duration
		for range rounds {
			w, c := time.Now(), cpu()
			for _, raw := range above[:depth.blocks] {
				if err := f.take(raw, true); err != nil {
					return r, err
				}
				if err := f.end(f.st.Commit); err != nil {
					return r, err
				}
			}
			w2, c2 := time.Now(), cpu()
			if err := f.st.Rollback(ctx, to); err != nil {
				return r, err
			}
			applied, appliedCPU = applied+w2.Sub(w), appliedCPU+c2-c
			undone, undoneCPU = undone+time.Since(w2), undoneCPU+cpu()-c2
		}
		per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(rounds*depth.blocks) }
		r.More = append(r.More, figure{"apply " + depth.name, per(appliedCPU), "µs CPU"}, figure{"undo " + depth.name, per(undoneCPU), "µs CPU"},
			figure{"apply wall " + depth.name, per(applied), "µs"}, figure{"undo wall " + depth.name, per(undone), "µs"})
		r.Units += 2 * rounds * depth.blocks
	}
	return r, nil
}
