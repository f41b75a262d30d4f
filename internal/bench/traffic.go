package main

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store"
)

// traffic makes blocks without end: 52 outputs made and 45 spent, as on mainnet,
// at ages as on mainnet (49 % of all spends within 10 blocks, 76 % within 100,
// 87 % within 1,000, 97 % within 10,000, the rest anywhere in the live set). It
// remembers outputs in 16 bytes, so that the memory measured is the store's.
type traffic struct {
	rnd       *rand.Rand
	outs, ins int
	raw       []byte
	head      chain.Link
	serial    uint64
	step      uint64 // every step-th transaction makes an output at seedAddress that is never spent
	total     int
	recent    [recentBlocks][]coin // by height, modulo
	old       []coin
}

// coin is an output: all of it follows from these.
type coin struct {
	tx     uint64
	height uint32
	index  uint32
}

const recentBlocks = 10_000

func newTraffic(total int) *traffic {
	t := &traffic{rnd: rand.New(rand.NewPCG(1, 2)), total: total, step: max(1, uint64(total/3/seedSize)), head: chain.Link{Height: chain.OriginHeight}}
	t.old = make([]coin, 0, total+total/8+200_000)
	t.raw = make([]byte, 1<<20)
	for i := range t.raw {
		t.raw[i] = byte(t.rnd.Uint32())
	}
	return t
}

// memory is about what the generator takes, in bytes.
func (t *traffic) memory() int64 {
	const size = 16 // of a coin
	return int64(size * (cap(t.old) + min(t.total, 300*recentBlocks)))
}

func newBlocks(n int) []*chain.Effects {
	blocks := make([]*chain.Effects, n)
	for i := range blocks {
		blocks[i] = new(chain.Effects)
	}
	return blocks
}

// hashOf is a fixed, well spread hash of a number.
func hashOf(n uint64) (h chain.Hash) {
	for i := 0; i < len(h); i += 8 {
		n += 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(h[i:], mix(n))
	}
	return h
}

// seedAddress is the address of the outputs that stay.
func seedAddress() []byte { return benchAddress('s', 0) }

func (c coin) number() uint64 { return c.tx*4 + uint64(c.index) }

// output encodes an output of Conway, [address, value]: a base address out of
// many, a stake credential out of fewer, and in one of four an asset.
func (t *traffic) output(c coin) chain.Output {
	n := c.number()
	addr := benchAddress('o', int(n%1_500_000))
	copy(addr[29:], benchAddress('k', int(n%400_000))[29:])
	if t.fixed(c) {
		addr = seedAddress()
	}
	lovelace := 1_000_000 + n%1000
	raw := make([]byte, 0, 128)
	raw = append(append(raw, 0x82, 0x58, byte(len(addr))), addr...)
	if asset := n%4 == 0; asset {
		raw = append(raw, 0x82)
		raw = binary.BigEndian.AppendUint32(append(raw, 0x1a), uint32(lovelace))
		policy := hashOf(n % 50_000)
		raw = append(append(raw, 0xa1, 0x58, 28), policy[:28]...)
		raw = append(raw, 0xa1, 0x48)
		raw = binary.BigEndian.AppendUint64(raw, n%9)
		raw = append(raw, 0x01)
	} else {
		raw = binary.BigEndian.AppendUint32(append(raw, 0x1a), uint32(lovelace))
	}
	return chain.Output{Ref: chain.TxIn{ID: hashOf(c.tx << 20), Index: c.index}, Height: chain.Height(c.height), Slot: chain.Slot(c.height) * 20,
		TxIndex: uint32(c.tx % 20), Era: chain.Conway, Lovelace: lovelace, Raw: raw}
}

// fixed tells whether an output is at seedAddress: seedSize are.
func (t *traffic) fixed(c coin) bool {
	return c.index == 0 && c.tx > 0 && c.tx%t.step == 0 && c.tx/t.step <= seedSize
}

// fill commits blocks until there are total outputs unspent.
func (t *traffic) fill(s *store.Store) error {
	t.outs, t.ins = 300, 0
	blocks := newBlocks(20)
	for done := 0; done < t.total; done += 20 * t.outs {
		t.batch(blocks, false)
		if err := s.Gather(blocks); err != nil {
			return err
		}
	}
	t.outs, t.ins = 52, 45
	return s.Flush()
}

// pick takes an output to spend.
func (t *traffic) pick() (c coin, ok bool) {
	for range 20 {
		age := recentBlocks
		switch p := t.rnd.IntN(100); {
		case p < 49:
			age = 1 + t.rnd.IntN(10)
		case p < 76:
			age = 10 + t.rnd.IntN(90)
		case p < 87:
			age = 100 + t.rnd.IntN(900)
		case p < 97:
			age = 1000 + t.rnd.IntN(9000)
		}
		list := &t.old
		if age < recentBlocks {
			if chain.Height(age) > t.head.Height {
				continue
			}
			list = &t.recent[int(t.head.Height-chain.Height(age))%recentBlocks]
		}
		if n := len(*list); n > 0 {
			i := t.rnd.IntN(n)
			c = (*list)[i]
			(*list)[i] = (*list)[n-1]
			*list = (*list)[:n-1]
			return c, true
		}
	}
	return c, false
}

// batch fills blocks with the next ones, and marks what is made and spent in the
// batch as the resolver does.
func (t *traffic) batch(blocks []*chain.Effects, journal bool) {
	first := t.head.Height + 1
	spent := map[chain.TxIn]struct{}{}
	for _, e := range blocks {
		h := t.head.Height + 1
		t.head = chain.Link{Point: chain.Point{Slot: chain.Slot(h) * 20, Hash: hashOf(uint64(h)<<20 + 1)}, Parent: t.head.Point.Hash, Height: h, Era: chain.Conway}
		e.Link, e.Journal, e.Raw = t.head, journal, t.raw[h%1000:][:32_000]
		e.Txs, e.Spent, e.Created = e.Txs[:0], e.Spent[:0], e.Created[:0]
		slot := &t.recent[int(h)%recentBlocks]
		t.old = append(t.old, *slot...)
		*slot = (*slot)[:0]
		for len(e.Created) < t.outs {
			t.tx(e, slot, first, spent)
		}
	}
	for _, e := range blocks {
		for i := range e.Created {
			_, e.Created[i].InBatch = spent[e.Created[i].Ref]
		}
	}
}

func (t *traffic) tx(e *chain.Effects, slot *[]coin, first chain.Height, spent map[chain.TxIn]struct{}) {
	t.serial++
	for i := 0; i < 3 && len(e.Spent) < t.ins; i++ {
		c, ok := t.pick()
		if !ok {
			break
		}
		o := t.output(c)
		if o.InBatch = o.Height >= first; o.InBatch {
			spent[o.Ref] = struct{}{}
		}
		e.Spent = append(e.Spent, o)
	}
	for i := uint32(0); i < 3 && len(e.Created) < t.outs; i++ {
		c := coin{t.serial, uint32(e.Height), i}
		if !t.fixed(c) {
			*slot = append(*slot, c)
		}
		e.Created = append(e.Created, t.output(c))
	}
	e.Txs = append(e.Txs, chain.TxEffects{ID: hashOf(t.serial << 20), Valid: true, Spent: len(e.Spent), Created: len(e.Created)})
}
