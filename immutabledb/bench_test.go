package immutabledb_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/ledger"
)

// BenchmarkRead reads and checks a whole folder and does nothing with the blocks:
// a real one, and the one that OUROTAIL_BENCH_IMMUTABLE names (of mainnet's chunks).
func BenchmarkRead(b *testing.B) {
	folder := func(name string, dir func(b *testing.B) string, slots uint64) {
		b.Run(name, func(b *testing.B) {
			path := dir(b)
			block := ledger.Block{ByronEpochSlots: slots}
			f, err := immutabledb.Open(path, immutabledb.Options{ChunkSlots: slots, K: 432, Link: func(raw []byte) (chain.Link, error) {
				err := block.Walk(raw)
				return block.Link, err
			}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			blocks, bytes := 0, int64(0)
			for b.Loop() {
				end, _, err := f.End()
				if err != nil {
					b.Fatal(err)
				}
				c := f.Conn(end, chain.Origin)
				if _, _, _, err := c.Intersect(b.Context(), []chain.Point{{}}); err != nil {
					b.Fatal(err)
				}
				for {
					m, err := c.Next(b.Context())
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					for _, x := range m.List {
						blocks, bytes = blocks+1, bytes+int64(len(x.Raw))
					}
					m.Release()
				}
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(bytes / int64(b.N))
			b.ReportMetric(float64(blocks)/b.Elapsed().Seconds(), "blocks/s")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(blocks), "µs/block")
		})
	}
	folder("preview", func(b *testing.B) string { return devtest.Shared(b, "preview", "immutable") }, 4320)
	folder("other", func(b *testing.B) string {
		dir := os.Getenv("OUROTAIL_BENCH_IMMUTABLE")
		if dir == "" {
			b.Skip("OUROTAIL_BENCH_IMMUTABLE names no folder")
		}
		return dir
	}, 21600)
}
