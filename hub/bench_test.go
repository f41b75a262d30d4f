package hub

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/mailbox"
	"github.com/ourotail/ourotail/query"
)

// cpu is the processor time this process has used. Wall time says little on a
// machine that others use.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchAddress is the i-th of a family of base addresses, 57 bytes each.
func benchAddress(family byte, i int) []byte {
	a := make([]byte, 57)
	x := uint64(i)*0x9e3779b97f4a7c15 + uint64(family)
	for j := 1; j < len(a); j += 8 {
		x ^= x >> 29
		x *= 0xbf58476d1ce4e5b9
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], x)
		copy(a[j:], b[:])
	}
	a[0] = 0x01
	return a
}

// mainnetLike is a block of 19 transactions with 45 inputs and 52 outputs, all
// at different addresses, a third of the outputs with two assets.
func mainnetLike(n int, at chain.At) *chain.AppliedBlock {
	b := &chain.AppliedBlock{At: at, Coverage: chain.Complete}
	place := uint32(0)
	effect := func(ref chain.TxIn) chain.Effect {
		u := &chain.UTxO{Ref: ref, At: at, Out: chain.TxOut{Address: benchAddress('b', n*100+int(place)), Lovelace: 1e6}}
		if place%3 == 0 {
			for i := range 2 {
				u.Out.Assets = append(u.Out.Assets, chain.Asset{Policy: chain.Hash28{byte(place), byte(i)}, Name: []byte("token"), Quantity: 1})
			}
		}
		place++
		return chain.Effect{UTxO: u, Place: place - 1}
	}
	for i := range 19 {
		t := chain.AppliedTx{Index: i, Valid: true}
		binary.BigEndian.PutUint64(t.ID[:], uint64(n*100+i+1))
		for j := range 2 + i%3/2 + i%7/5 {
			t.Spent = append(t.Spent, effect(chain.TxIn{ID: chain.TxID{9, byte(n), byte(n >> 8), byte(i)}, Index: uint32(j)}))
		}
		for j := range 2 + i%4/3*2 + i%9/7 {
			t.Created = append(t.Created, effect(chain.TxIn{ID: t.ID, Index: uint32(j)}))
		}
		b.Txs = append(b.Txs, t)
	}
	return b
}

func benchHub(k chain.Height) *Hub {
	return New(Config{Capabilities: Capabilities{
		Kinds: allKinds(), Indexed: ^query.Kinds(0), Replay: true, Horizon: k, MaxConfirmations: k, Idle: true,
	}})
}

func subscribeMany(tb testing.TB, h *Hub, family byte, n int) []*UTxOSubscription {
	subs := make([]*UTxOSubscription, n)
	for i := range subs {
		s, err := h.SubscribeUTxO(query.Address(benchAddress(family, i)), Options{})
		if err != nil {
			tb.Fatal(err)
		}
		subs[i] = s
	}
	return subs
}

// renumber gives prebuilt blocks new heights, so that a chain of them has no end.
func renumber(b *chain.AppliedBlock, h chain.Height) *chain.AppliedBlock {
	b.At.Height = h
	b.At.Point.Slot = chain.Slot(h)
	return b
}

func benchBlocks(n int) []*chain.AppliedBlock {
	blocks := make([]*chain.AppliedBlock, n)
	for i := range blocks {
		blocks[i] = mainnetLike(i, pt('m', chain.Height(i)))
	}
	return blocks
}

// BenchmarkApplyQuiet applies blocks that match nothing to a hub with one and
// with a million address subscriptions.
func BenchmarkApplyQuiet(b *testing.B) {
	for _, n := range []int{1, 1_000_000} {
		b.Run(fmt.Sprintf("subscriptions=%d", n), func(b *testing.B) {
			h := benchHub(64)
			subs := subscribeMany(b, h, 'q', n)
			blocks := benchBlocks(512)
			next := chain.Height(0)
			apply := func() {
				if err := h.ApplyBlock(renumber(blocks[int(next)%len(blocks)], next)); err != nil {
					b.Fatal(err)
				}
				next++
			}
			for range 1024 {
				apply()
			}
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			start := cpu()
			for range b.N {
				apply()
			}
			b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/block")
			b.StopTimer()
			runtime.KeepAlive(subs)
		})
	}
}

// BenchmarkFanOut applies a block with one output at an address that so many
// watch.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("subscribers=%d", n), func(b *testing.B) {
			h := benchHub(8)
			addr := benchAddress('f', 1)
			subs := make([]*UTxOSubscription, n)
			for i := range subs {
				subs[i], _ = h.SubscribeUTxO(query.Address(addr), Options{Bound: Unbounded})
			}
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			var used time.Duration
			for i := range b.N {
				start := cpu()
				at := pt('f', chain.Height(i))
				u := &chain.UTxO{Out: chain.TxOut{Address: addr}, At: at}
				_ = h.ApplyBlock(&chain.AppliedBlock{At: at, Coverage: chain.Complete, Txs: []chain.AppliedTx{{Valid: true, Created: []chain.Effect{{UTxO: u}}}}})
				used += cpu() - start
				b.StopTimer()
				for _, s := range subs {
					if _, err := s.Next(ctx); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(used)/float64(b.N)/float64(n), "cpu-ns/subscriber")
		})
	}
}

// BenchmarkSubscription measures what a subscription for an address weighs
// besides its mailbox.
func BenchmarkSubscription(b *testing.B) {
	const n = 1_000_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range b.N {
		before := heap()
		boxes := make([]*mailbox.Delta[chain.UTxOEvent], n)
		for i := range boxes {
			boxes[i] = mailbox.NewDelta[chain.UTxOEvent](1, nil)
		}
		box := float64(heap()-before-8*n) / n
		runtime.KeepAlive(boxes)
		boxes = nil
		before = heap()
		h := benchHub(8)
		start := time.Now()
		subs := subscribeMany(b, h, 's', n)
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/n, "ns/subscribe")
		whole := float64(heap()-before-8*n) / n
		b.ReportMetric(box, "B/mailbox")
		b.ReportMetric(whole-box, "B/subscription")
		runtime.KeepAlive(subs)
		runtime.KeepAlive(h)
	}
}

// BenchmarkApplyWhileSubscribing applies blocks while a million subscriptions
// come and go on another goroutine.
func BenchmarkApplyWhileSubscribing(b *testing.B) {
	for range b.N {
		h := benchHub(64)
		blocks := benchBlocks(256)
		const n = 1_000_000
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Add(1)
		go func() {
			defer wg.Done()
			subs := subscribeMany(b, h, 'w', n)
			for _, s := range subs {
				s.Cancel()
			}
			close(stop)
		}()
		var took []time.Duration
		for next := chain.Height(0); ; next++ {
			select {
			case <-stop:
			default:
				blk := renumber(blocks[int(next)%len(blocks)], next)
				start := time.Now()
				if err := h.ApplyBlock(blk); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				time.Sleep(200 * time.Microsecond)
				continue
			}
			break
		}
		wg.Wait()
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
		b.ReportMetric(float64(len(took)), "blocks")
	}
}
