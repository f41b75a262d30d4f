package hub

import (
	"hash/maphash"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// posting is one key of one subscription, in the list of those that share it.
type posting struct {
	sub        *sub
	next, prev *posting
	key        string
	kind       uint8
}

// index finds subscriptions by key: kind 0 is everything, the others are those
// of chain.SourceKind or query.TxKeyKind. A key that nobody has, the ordinary
// case, costs one look at a 32-bit tag, whatever the number of subscriptions.
type index struct {
	all    *posting
	kinds  query.Kinds // those of which there are any
	counts [8]int      // keys, by kind
	shards *[indexShards]shard
	seed   maphash.Seed
}

// indexShards bounds how much is moved at once when the index grows: with a
// million keys a shard holds some 4,000.
const indexShards = 256

// shard is a table with open addressing and linear probing. Its size is a
// power of two, of which at most three quarters are in use.
type shard struct {
	tags  []uint32 // low half of the hash, 0 for an empty slot; its low bits are the slot to start from
	heads []*posting
	n     int
}

// place returns the shard and the tag of a key with a hash.
func place(kind uint8, h uint64) (sh, tag uint32) {
	h ^= uint64(kind) * 0x9e3779b97f4a7c15
	if tag = uint32(h); tag == 0 {
		tag = 1
	}
	return uint32(h>>32) % indexShards, tag
}

// find returns the first subscription under a key.
func (x *index) find(kind uint8, key []byte) *posting {
	if x.shards == nil {
		return nil
	}
	sh, tag := place(kind, maphash.Bytes(x.seed, key))
	s := &x.shards[sh]
	if len(s.tags) == 0 {
		return nil
	}
	mask := uint32(len(s.tags) - 1)
	for i := tag & mask; ; i = (i + 1) & mask {
		switch s.tags[i] {
		case 0:
			return nil
		case tag:
			if p := s.heads[i]; p.kind == kind && p.key == string(key) {
				return p
			}
		}
	}
}

// slot returns where a key stands, or the empty slot where it would.
func (s *shard) slot(kind uint8, key string, tag uint32) (i uint32, found bool) {
	mask := uint32(len(s.tags) - 1)
	for i = tag & mask; s.tags[i] != 0; i = (i + 1) & mask {
		if p := s.heads[i]; s.tags[i] == tag && p.kind == kind && p.key == key {
			return i, true
		}
	}
	return i, false
}

func (x *index) add(p *posting) {
	if p.kind == 0 {
		p.next = x.all
		if p.next != nil {
			p.next.prev = p
		}
		x.all = p
		return
	}
	if x.shards == nil {
		x.shards, x.seed = new([indexShards]shard), maphash.MakeSeed()
	}
	sh, tag := place(p.kind, maphash.String(x.seed, p.key))
	s := &x.shards[sh]
	if s.n >= len(s.tags)*3/4 {
		s.grow()
	}
	i, found := s.slot(p.kind, p.key, tag)
	if found {
		p.next = s.heads[i]
		p.next.prev = p
	} else {
		s.tags[i] = tag
		s.n++
		x.counts[p.kind]++
		x.kinds |= 1 << p.kind
	}
	s.heads[i] = p
}

func (s *shard) grow() {
	old := *s
	s.tags, s.heads = make([]uint32, max(4, 2*len(old.tags))), make([]*posting, max(4, 2*len(old.tags)))
	mask := uint32(len(s.tags) - 1)
	for j, tag := range old.tags {
		if tag == 0 {
			continue
		}
		i := tag & mask
		for s.tags[i] != 0 {
			i = (i + 1) & mask
		}
		s.tags[i], s.heads[i] = tag, old.heads[j]
	}
}

func (x *index) remove(p *posting) {
	if p.next != nil {
		p.next.prev = p.prev
	}
	switch {
	case p.prev != nil:
		p.prev.next = p.next
	case p.kind == 0:
		x.all = p.next
	default:
		sh, tag := place(p.kind, maphash.String(x.seed, p.key))
		s := &x.shards[sh]
		i, _ := s.slot(p.kind, p.key, tag)
		if p.next != nil {
			s.heads[i] = p.next
			break
		}
		s.free(i)
		if x.counts[p.kind]--; x.counts[p.kind] == 0 {
			x.kinds &^= 1 << p.kind
		}
	}
	p.next, p.prev = nil, nil
}

// free empties a slot and moves later ones up, so that no probe stops short of
// them. A shard that has become empty gives its memory back.
func (s *shard) free(i uint32) {
	if s.n--; s.n == 0 {
		*s = shard{}
		return
	}
	mask := uint32(len(s.tags) - 1)
	for j := (i + 1) & mask; s.tags[j] != 0; j = (j + 1) & mask {
		// What stands at j may move to i if i lies on its way from its first slot.
		if home := s.tags[j] & mask; (j-home)&mask >= (j-i)&mask {
			s.tags[i], s.heads[i] = s.tags[j], s.heads[j]
			i = j
		}
	}
	s.tags[i], s.heads[i] = 0, nil
}

// sources adds the sources under which anybody is found; source turns a key
// into one.
func (x *index) sources(into map[chain.Source]struct{}, source func(kind uint8, key string) chain.Source) {
	if x.all.anyAlive() {
		into[chain.Source{}] = struct{}{}
	}
	if x.shards == nil {
		return
	}
	for i := range x.shards {
		for _, p := range x.shards[i].heads {
			if p.anyAlive() {
				into[source(p.kind, p.key)] = struct{}{}
			}
		}
	}
}

// anyAlive tells whether any subscription in a list is alive: keys of dead ones
// may still have to be swept out.
func (p *posting) anyAlive() bool {
	for ; p != nil; p = p.next {
		if p.sub.state != dead {
			return true
		}
	}
	return false
}
