package store

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// anon is the anonymous memory of this process in MB, 0 where /proc is not.
func anon() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(b), "RssAnon:")
	kb, _ := strconv.ParseFloat(strings.Fields(after + " 0 ")[0], 64)
	return kb / 1024
}

// BenchmarkSync commits batches of 1,000 blocks far from the tip, looking up
// first what they spend and did not make. One operation is a block.
func BenchmarkSync(b *testing.B) {
	for _, c := range []struct {
		name                        string
		batch, outputs, spends, raw int
	}{{"25 made 22 spent", 1000, 25, 22, 1300}, {"52 made 45 spent", 125, 52, 45, 32000}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir(), Magic: 1, K: 2160, Memory: benchMemory()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := s.Genesis(nil); err != nil {
				b.Fatal(err)
			}
			t := newTraffic(c.outputs, c.spends, c.raw)
			blocks := make([]*chain.Effects, c.batch)
			for i := range blocks {
				blocks[i] = new(chain.Effects)
			}
			var lookups, commits, making time.Duration
			peak, before := 0.0, anon()
			asked := 0
			start := cpu()
			want := make([]*chain.Output, 0, 100)
			for n := 0; n < b.N; n += len(blocks) {
				blocks = blocks[:min(len(blocks), b.N-n)]
				c0 := cpu()
				t.batch(blocks, false)
				c1, w1 := cpu(), time.Now()
				for _, e := range blocks {
					want = want[:0]
					for i := range e.Spent {
						if !e.Spent[i].InBatch {
							want = append(want, &e.Spent[i])
						}
					}
					asked += len(want)
					if missing, err := s.Outputs(want); err != nil || missing >= 0 {
						b.Fatal(missing, err)
					}
				}
				w2 := time.Now()
				if err := s.Commit(blocks); err != nil {
					b.Fatal(err)
				}
				making += c1 - c0
				lookups += w2.Sub(w1)
				commits += time.Since(w2)
				peak = max(peak, anon()-before)
			}
			per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
			b.ReportMetric(per(cpu()-start-making), "cpu-µs/block")
			b.ReportMetric(per(lookups), "lookup-µs/block")
			b.ReportMetric(per(commits), "commit-µs/block")
			b.ReportMetric(float64(asked)/float64(b.N), "lookups/block")
			b.ReportMetric(float64(s.State().UTxOs), "utxos")
			b.ReportMetric(peak, "anon-MB")
		})
	}
}

func benchMemory() int64 {
	mb, _ := strconv.ParseInt(os.Getenv("OUROTAIL_BENCH_MB"), 10, 64)
	return mb << 20
}

// BenchmarkTip commits one block at a time with a record, as at the tip: each is
// on disk before the next. One operation is a block.
func BenchmarkTip(b *testing.B) {
	for _, c := range []struct {
		name                 string
		outputs, spends, raw int
	}{{"25 made 22 spent", 25, 22, 1300}, {"52 made 45 spent", 52, 45, 32000}} {
		for _, indexed := range []bool{false, true} {
			b.Run(c.name+map[bool]string{true: " indexed"}[indexed], func(b *testing.B) {
				s := mustOpen(b, Options{Dir: b.TempDir(), Magic: 1, K: 2160, Memory: benchMemory(), Terms: benchTerms})
				defer s.Close()
				t := newTraffic(c.outputs, c.spends, c.raw)
				fill(b, s, t, 5000)
				if indexed {
					if err := s.BuildIndexes(b.Context(), nil); err != nil {
						b.Fatal(err)
					}
				}
				e := new(chain.Effects)
				var want []*chain.Output
				times := make([]time.Duration, 0, b.N)
				start := cpu()
				for b.Loop() {
					t.batch([]*chain.Effects{e}, true)
					began := time.Now()
					want = want[:0]
					for i := range e.Spent {
						want = append(want, &e.Spent[i])
					}
					if missing, err := s.Outputs(want); err != nil || missing >= 0 {
						b.Fatal(missing, err)
					}
					if err := s.Commit([]*chain.Effects{e}); err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(began))
				}
				slices.Sort(times)
				b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-µs/block")
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}

// benchTerms gives every output an address and a stake credential out of many,
// and every fourth an asset.
func benchTerms(o *chain.Output, emit func(chain.Source)) error {
	addr := make([]byte, 57)
	copy(addr[1:], o.Raw[:56])
	emit(chain.Source{Kind: chain.SourceAddress, Key: string(addr)})
	emit(chain.Source{Kind: chain.SourceStake, Key: string(addr[29:])})
	if o.Raw[60]%4 == 0 {
		emit(chain.Source{Kind: chain.SourceAsset, Key: string(o.Raw[:34])})
	}
	return nil
}

// fill commits n blocks far from the tip.
func fill(b *testing.B, s *Store, t *traffic, n int) {
	b.Helper()
	blocks := make([]*chain.Effects, 100)
	for i := range blocks {
		blocks[i] = new(chain.Effects)
	}
	for ; n > 0; n -= len(blocks) {
		t.batch(blocks, false)
		if err := s.Commit(blocks); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRollback commits d blocks with records one by one and takes them back
// at once.
func BenchmarkRollback(b *testing.B) {
	for _, depth := range []int{1, 10, 100, 2160} {
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			s := mustOpen(b, Options{Dir: b.TempDir(), Magic: 1, K: 2160, Memory: benchMemory(), Terms: benchTerms})
			defer s.Close()
			t := newTraffic(52, 45, 32000)
			fill(b, s, t, 5000)
			if err := s.BuildIndexes(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			var applied, undone time.Duration
			var appliedCPU, undoneCPU time.Duration
			saved, unspent := t.head, t.unspent
			old := slices.Clone(t.old)
			e := new(chain.Effects)
			for range b.N {
				t.head, t.old = saved, slices.Clone(old)
				for i := range unspent {
					t.unspent[i] = slices.Clone(unspent[i])
				}
				began, c0 := time.Now(), cpu()
				for range depth {
					t.batch([]*chain.Effects{e}, true)
					if err := s.Commit([]*chain.Effects{e}); err != nil {
						b.Fatal(err)
					}
				}
				applied += time.Since(began)
				c1 := cpu()
				appliedCPU += c1 - c0
				began = time.Now()
				if err := s.Rollback(b.Context(), saved.Point); err != nil {
					b.Fatal(err)
				}
				undone += time.Since(began)
				undoneCPU += cpu() - c1
			}
			per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N*depth) }
			b.ReportMetric(per(applied), "apply-µs/block")
			b.ReportMetric(per(undone), "undo-µs/block")
			b.ReportMetric(per(appliedCPU), "apply-cpu-µs/block")
			b.ReportMetric(per(undoneCPU), "undo-cpu-µs/block")
		})
	}
}

// BenchmarkScale measures a store of OUROTAIL_BENCH_OUTPUTS unspent outputs: the
// size on disk, one block among them, building the indexes, a seed, opening.
func BenchmarkScale(b *testing.B) {
	total, _ := strconv.Atoi(os.Getenv("OUROTAIL_BENCH_OUTPUTS"))
	if total == 0 {
		b.Skip("OUROTAIL_BENCH_OUTPUTS says how many")
	}
	opts := Options{Dir: b.TempDir(), Magic: 1, K: 2160, Memory: benchMemory(), Terms: benchTerms}
	s := mustOpen(b, opts)
	t := newTraffic(100, 0, 1300)
	before, c0, t0 := anon(), cpu(), time.Now()
	fill(b, s, t, total/100)
	b.ReportMetric(float64((cpu()-c0).Microseconds())/float64(total), "fill-cpu-µs/output")
	b.ReportMetric(float64(time.Since(t0).Microseconds())/float64(total), "fill-µs/output")
	b.ReportMetric(anon()-before, "anon-MB")

	t.outputs, t.spends = 25, 22
	blocks := make([]*chain.Effects, 1000)
	for i := range blocks {
		blocks[i] = new(chain.Effects)
	}
	var busy time.Duration
	const rounds = 10
	for range rounds {
		t.batch(blocks, false)
		c0 = cpu()
		for _, e := range blocks {
			want := make([]*chain.Output, 0, len(e.Spent))
			for i := range e.Spent {
				if !e.Spent[i].InBatch {
					want = append(want, &e.Spent[i])
				}
			}
			if missing, err := s.Outputs(want); err != nil || missing >= 0 {
				b.Fatal(missing, err)
			}
		}
		if err := s.Commit(blocks); err != nil {
			b.Fatal(err)
		}
		busy += cpu() - c0
	}
	b.ReportMetric(float64(busy.Microseconds())/float64(rounds*len(blocks)), "cpu-µs/block")

	c0, t0 = cpu(), time.Now()
	if err := s.BuildIndexes(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((cpu()-c0).Microseconds())/float64(total), "index-cpu-µs/output")
	b.ReportMetric(time.Since(t0).Seconds(), "index-s")
	t0 = time.Now()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(t0).Seconds(), "close-s")
	b.ReportMetric(float64(diskUse(b, opts.Dir))/float64(total), "disk-B/output")
	t0 = time.Now()
	s = mustOpen(b, opts)
	defer s.Close()
	b.ReportMetric(time.Since(t0).Seconds(), "open-s")

	v := s.Snapshot()
	defer v.Close()
	seed := func(src chain.Source) (n int) {
		if err := v.UTxOs(b.Context(), src, func(*chain.Output) error { n++; return nil }); err != nil {
			b.Fatal(err)
		}
		return n
	}
	t0 = time.Now()
	found := 0
	const seeds = 1000
	for i := range seeds {
		o := t.output(t.old[i*len(t.old)/seeds])
		found += seed(chain.Source{Kind: chain.SourceStake, Key: string(o.Raw[28:56])})
	}
	b.ReportMetric(float64(time.Since(t0).Microseconds())/float64(found), "seed-µs/output")
	b.ReportMetric(float64(found), "seeded")
	t0 = time.Now()
	n := seed(chain.Source{Kind: chain.SourceAll})
	b.ReportMetric(float64(time.Since(t0).Nanoseconds())/float64(n), "scan-ns/output")
}

// diskUse is what the directory's files occupy, in bytes.
func diskUse(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	if err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += st.Blocks * 512
			}
		}
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return bytes
}
