package hub

import (
	"hash/maphash"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// probes finds out which effects of a block anybody may be interested in. In a
// large index every key is a cache miss, and one after the other they would be
// most of what a block costs: so all keys are hashed first, and then looked for
// in a loop short enough for the processor to wait for many at a time.
type probes struct {
	list  []probe
	found []int32 // effects of which some key's tag is in the index, ascending
	asked int     // how many of these likely has come to
	warm  uint32  // keeps the first loop's loads from being optimised away
}

// probe is a key's place in the index and the number of its effect.
type probe struct{ shard, tag, effect uint32 }

// of looks for the keys of a block's effects, numbered as they come: of each
// transaction what it spends, then, unless only that is matched, what it creates.
func (p *probes) of(b *chain.AppliedBlock, m matching, x *index, scratch []byte) {
	p.list, p.found, p.asked = p.list[:0], p.found[:0], 0
	if x.shards == nil {
		return
	}
	n := uint32(0)
	effects := func(list []chain.Effect) {
		for i := range list {
			query.EachSource(list[i].UTxO, x.kinds, scratch, func(k chain.SourceKind, key []byte) bool {
				sh, tag := place(uint8(k), maphash.Bytes(x.seed, key))
				p.list = append(p.list, probe{sh, tag, n})
				return true
			})
			n++
		}
	}
	for i := range b.Txs {
		effects(b.Txs[i].Spent)
		if m != matchCorrected {
			effects(b.Txs[i].Created)
		}
	}
	for i := range p.list {
		q := &p.list[i]
		if tags := x.shards[q.shard].tags; len(tags) > 0 {
			p.warm ^= tags[q.tag&uint32(len(tags)-1)]
		}
	}
	for i := range p.list {
		q := &p.list[i]
		if k := len(p.found); (k == 0 || p.found[k-1] != int32(q.effect)) && x.shards[q.shard].has(q.tag) {
			p.found = append(p.found, int32(q.effect))
		}
	}
}

// has tells whether a key with the tag may be in the shard.
func (s *shard) has(tag uint32) bool {
	if len(s.tags) == 0 {
		return false
	}
	mask := uint32(len(s.tags) - 1)
	for i := tag & mask; s.tags[i] != 0; i = (i + 1) & mask {
		if s.tags[i] == tag {
			return true
		}
	}
	return false
}

// likely tells whether anybody may be found under a key of the effect with the
// next number. Each is asked about once, in ascending order.
func (p *probes) likely(effect int) bool {
	if p.asked == len(p.found) || int(p.found[p.asked]) != effect {
		return false
	}
	p.asked++
	return true
}
