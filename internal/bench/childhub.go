package main

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/mailbox"
	"github.com/ourotail/ourotail/query"
)

// benchAddress is one of a family of base addresses.
func benchAddress(family byte, i int) []byte {
	a := make([]byte, 57)
	x := uint64(i)<<8 | uint64(family)
	for at := 1; at < len(a); at += 8 {
		x = mix(x + 0x9e3779b97f4a7c15)
		binary.LittleEndian.PutUint64(a[at:], x) // 1 + 7*8 bytes
	}
	a[0] = 0x01
	return a
}

// mix spreads a number over all bits (splitmix64).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// busyBlock has 19 transactions with 45 inputs and 52 outputs at addresses of
// their own, a third with two assets.
func busyBlock(n int) *chain.AppliedBlock {
	at := chain.At{Height: chain.Height(n), Point: chain.Point{Slot: chain.Slot(n)}}
	binary.BigEndian.PutUint64(at.Point.Hash[:], uint64(n)+1)
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
		for k := range []int{2, 2, 3}[i%3] + i%19/18 {
			t.Spent = append(t.Spent, effect(chain.TxIn{ID: chain.TxID{9, byte(n), byte(n >> 8), byte(i)}, Index: uint32(k)}))
		}
		for k := range []int{2, 3, 3}[i%3] + i%19/18 {
			t.Created = append(t.Created, effect(chain.TxIn{ID: t.ID, Index: uint32(k)}))
		}
		b.Txs = append(b.Txs, t)
	}
	return b
}

func newHub() *hub.Hub {
	const k = 64
	return hub.New(hub.Config{Capabilities: hub.Capabilities{
		Kinds: map[hub.Kind]bool{hub.UTxOs: true, hub.Txs: true, hub.Blocks: true, hub.Tips: true}, Indexed: ^query.Kinds(0),
		Replay: true, Horizon: k, MaxConfirmations: k, Idle: true,
	}})
}

func subscribeMany(h *hub.Hub, family byte, n int) ([]*hub.UTxOSubscription, error) {
	subs := make([]*hub.UTxOSubscription, n)
	for i := range subs {
		s, err := h.SubscribeUTxO(query.Address(benchAddress(family, i)), hub.Options{})
		if err != nil {
			return nil, err
		}
		subs[i] = s
	}
	return subs, nil
}

// applier applies prebuilt blocks under new heights, without end.
type applier struct {
	h      *hub.Hub
	blocks []*chain.AppliedBlock
	next   int
}

func newApplier(h *hub.Hub) *applier {
	a := &applier{h: h, blocks: make([]*chain.AppliedBlock, 512)}
	for i := range a.blocks {
		a.blocks[i] = busyBlock(i)
	}
	return a
}

func (a *applier) apply() error {
	b := a.blocks[a.next%len(a.blocks)]
	b.At.Height, b.At.Point.Slot = chain.Height(a.next), chain.Slot(a.next)
	a.next++
	return a.h.ApplyBlock(b)
}

// hubQuiet applies blocks that match none of N subscriptions by address.
func hubQuiet(j job) (r result, err error) {
	h := newHub()
	subs, err := subscribeMany(h, 'q', j.N)
	if err != nil {
		return r, err
	}
	a := newApplier(h)
	for range 2 * len(a.blocks) {
		if err := a.apply(); err != nil {
			return r, err
		}
	}
	runtime.GC()
	before, began := mallocs(), cpu()
	for cpu()-began < leastCPU {
		for range len(a.blocks) {
			if err := a.apply(); err != nil {
				return r, err
			}
		}
		r.Units += len(a.blocks)
	}
	r.Part, r.Allocs, r.counted = int64(cpu()-began), float64(mallocs()-before), true
	runtime.KeepAlive(subs)
	return r, nil
}

// hubWeigh measures what N subscriptions weigh, with and without their mailboxes.
func hubWeigh(j job) (r result, err error) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	n := float64(j.N)
	before := heap()
	boxes := make([]*mailbox.Delta[chain.UTxOEvent], j.N)
	for i := range boxes {
		boxes[i] = mailbox.NewDelta[chain.UTxOEvent](1, nil)
	}
	box := (heap()-before)/n - 8
	runtime.KeepAlive(boxes)
	boxes = nil
	before = heap()
	h, began := newHub(), cpu()
	subs, err := subscribeMany(h, 's', j.N)
	if err != nil {
		return r, err
	}
	used := cpu() - began
	whole := (heap()-before)/n - 8
	r.Units, r.Part = j.N, int64(used)
	r.More = []figure{{"subscription without its mailbox", whole - box, "bytes"}, {"mailbox", box, "bytes"}}
	runtime.KeepAlive(subs)
	runtime.KeepAlive(boxes)
	runtime.KeepAlive(h)
	return r, nil
}

// hubRegister applies blocks, 200 µs apart, while N subscriptions come and go; or
// for two seconds alone if N is 0.
func hubRegister(j job) (r result, err error) {
	h := newHub()
	if _, err := subscribeMany(h, 'o', 1); err != nil { // with nobody there blocks are not looked at
		return r, err
	}
	a := newApplier(h)
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(stop)
		if j.N == 0 {
			time.Sleep(2 * time.Second)
			return
		}
		subs, err := subscribeMany(h, 'w', j.N)
		if err != nil {
			failed <- err
			return
		}
		for _, s := range subs {
			s.Cancel()
		}
	}()
	var took []time.Duration
	for {
		select {
		case <-stop:
			if len(took) == 0 {
				return r, errors.New("no block was applied meanwhile")
			}
			slices.Sort(took)
			r.Units = len(took)
			r.More = quantiles("ApplyBlock", took)
			select {
			case err = <-failed:
			default:
			}
			return r, err
		default:
		}
		began := time.Now()
		if err := a.apply(); err != nil {
			return r, err
		}
		took = append(took, time.Since(began))
		time.Sleep(200 * time.Microsecond)
	}
}
