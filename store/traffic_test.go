package store

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ourotail/ourotail/chain"
)

// traffic makes blocks of one size for ever, with spends as young as a real
// chain's: half within 10 blocks, three quarters within 100, 87 % within 1,000,
// 97 % within 10,000, the rest anywhere in the live set. It remembers outputs in
// 16 bytes, so that the memory measured is the store's.
type traffic struct {
	rnd             *rand.Rand
	outputs, spends int
	raw             []byte // outputs and blocks are pieces of it
	blockSize       int
	head            chain.Link
	serial          uint64
	unspent         [trafficWindow][]coin // by height modulo
	old             []coin                // born longer ago
}

type coin struct {
	tx     uint64
	height uint32
	index  uint32
}

const trafficWindow = 10000

func newTraffic(outputs, spends, blockSize int) *traffic {
	t := &traffic{rnd: rand.New(rand.NewPCG(1, 2)), outputs: outputs, spends: spends, blockSize: blockSize, head: originLink()}
	t.raw = make([]byte, 1<<20)
	for i := range t.raw {
		t.raw[i] = byte(t.rnd.Uint32())
	}
	return t
}

// hashOf is a fixed, well spread hash of a number (splitmix64).
func hashOf(n uint64) (h chain.Hash) {
	for i := 0; i < 32; i += 8 {
		n += 0x9e3779b97f4a7c15
		z := n
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(h[i:], z^z>>31)
	}
	return h
}

func (t *traffic) piece(seed uint64, n int) []byte {
	at := int(seed % uint64(len(t.raw)-n))
	return t.raw[at : at+n : at+n]
}

func (t *traffic) output(c coin) chain.Output {
	seed := c.tx*31 + uint64(c.index)
	return chain.Output{
		Ref: chain.TxIn{ID: hashOf(c.tx << 20), Index: c.index}, Height: chain.Height(c.height), Slot: chain.Slot(c.height) * 20,
		TxIndex: uint32(c.tx % 100), Era: chain.Conway, Lovelace: 1_000_000 + seed%1000, Raw: t.piece(seed, 65+int(seed%120)),
	}
}

func (t *traffic) pick() (c coin, ok bool) {
	for range 20 {
		age := trafficWindow
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
		if age < trafficWindow {
			if chain.Height(age) > t.head.Height {
				continue
			}
			list = &t.unspent[int(t.head.Height-chain.Height(age))%trafficWindow]
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

// batch fills blocks with the next ones, reusing their lists.
func (t *traffic) batch(blocks []*chain.Effects, journal bool) {
	first := t.head.Height + 1
	spent := map[chain.TxIn]struct{}{}
	for _, e := range blocks {
		h := t.head.Height + 1
		t.head = chain.Link{Point: chain.Point{Slot: chain.Slot(h) * 20, Hash: hashOf(uint64(h)<<20 + 1)}, Parent: t.head.Point.Hash, Height: h, Era: chain.Conway}
		e.Link, e.Journal, e.Raw = t.head, journal, t.piece(uint64(h), t.blockSize)
		e.Txs, e.Spent, e.Created = e.Txs[:0], e.Spent[:0], e.Created[:0]
		slot := &t.unspent[int(h)%trafficWindow]
		t.old = append(t.old, *slot...)
		*slot = (*slot)[:0]
		for len(e.Created) < t.outputs {
			t.serial++
			for i := 0; i < 3 && len(e.Spent) < t.spends; i++ {
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
			for i := 0; i < 3 && len(e.Created) < t.outputs; i++ {
				c := coin{t.serial, uint32(h), uint32(i)}
				*slot = append(*slot, c)
				e.Created = append(e.Created, t.output(c))
			}
			e.Txs = append(e.Txs, chain.TxEffects{ID: hashOf(t.serial << 20), Valid: true, Spent: len(e.Spent), Created: len(e.Created)})
		}
	}
	for _, e := range blocks { // as the resolver does
		for i := range e.Created {
			_, e.Created[i].InBatch = spent[e.Created[i].Ref]
		}
	}
}
