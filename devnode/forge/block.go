package forge

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// shelleyBlock writes a block of an era since Shelley and fills in its hash.
func (m *maker) shelleyBlock() []byte {
	n, g := m.n, m.g
	indef := !m.f.opts.Plain && n.Era < chain.Conway && g.chance(0.1)
	open := func(b []byte, size int) []byte {
		if indef {
			return append(b, wire.IndefArray)
		}
		return wire.Array(b, size)
	}
	end := func(b []byte) []byte {
		if indef {
			return append(b, wire.Break)
		}
		return b
	}
	size := 64
	for _, d := range m.txs {
		size += len(d.body) + len(d.wits) + len(d.aux) + 16
	}
	segments := make([]byte, 0, size)
	var marks [4]int
	segments = open(segments, len(m.txs))
	for _, d := range m.txs {
		segments = append(segments, d.body...)
	}
	segments = end(segments)
	marks[0] = len(segments)
	segments = open(segments, len(m.txs))
	for _, d := range m.txs {
		segments = append(segments, d.wits...)
	}
	segments = end(segments)
	marks[1] = len(segments)
	aux, invalid := 0, 0
	for _, d := range m.txs {
		if d.aux != nil {
			aux++
		}
		if d.invalid {
			invalid++
		}
	}
	segments = wire.Map(segments, aux)
	for i, d := range m.txs {
		if d.aux != nil {
			segments = append(wire.Uint(segments, uint64(i)), d.aux...)
		}
	}
	marks[2] = len(segments)
	if n.Era >= chain.Alonzo {
		segments = wire.Array(segments, invalid)
		for i, d := range m.txs {
			if d.invalid {
				segments = wire.Uint(segments, uint64(i))
			}
		}
	}
	marks[3] = len(segments)

	// The body hash is the hash of the hashes of the segments (cardano-ledger
	// Shelley: bbHash; Alonzo: hashTxSeq).
	var hashes []byte
	from := 0
	for i, to := range marks {
		if i == 3 && n.Era < chain.Alonzo {
			break
		}
		h := blake(segments[from:to])
		hashes = append(hashes, h[:]...)
		from = to
	}
	header := m.header(len(segments), blake(hashes))
	n.Point.Hash = blake(header)
	count := 5
	if n.Era < chain.Alonzo {
		count = 4
	}
	raw := make([]byte, 0, len(segments)+len(header)+4)
	raw = wire.Uint(wire.Array(raw, 2), uint64(n.Era))
	raw = wire.Array(raw, count)
	raw = append(raw, header...)
	return append(raw, segments...)
}

// header writes [header body, signature]: 15 flat fields up to Alonzo, 10 from
// Babbage on, 12 in Dijkstra (shelley.cddl, babbage.cddl, dijkstra.cddl).
func (m *maker) header(size int, bodyHash chain.Hash) []byte {
	n, g := m.n, m.g
	h := make([]byte, 0, 1100)
	h = wire.Array(h, 2)
	flat := n.Era < chain.Babbage
	switch {
	case flat:
		h = wire.Array(h, 15)
	case n.Era < chain.Dijkstra:
		h = wire.Array(h, 10)
	default:
		h = wire.Array(h, 12)
	}
	h = wire.Uint(h, uint64(n.Height))
	h = wire.Uint(h, uint64(n.Point.Slot))
	if n.Parent.IsZero() {
		h = append(h, wire.Null)
	} else {
		h = wire.Bytes(h, n.Parent[:])
	}
	sized := func(n int) { h = g.random(wire.Head(h, wire.MajorBytes, uint64(n)), n) }
	sized(32)
	sized(32)
	vrf := func() {
		h = wire.Array(h, 2)
		sized(64)
		sized(80)
	}
	vrf()
	if flat {
		vrf()
	}
	h = wire.Uint(h, uint64(size))
	h = wire.Bytes(h, bodyHash[:])
	if !flat {
		h = wire.Array(h, 4)
	}
	sized(32)
	h = wire.Uint(h, uint64(g.IntN(30)))
	h = wire.Uint(h, uint64(g.IntN(1000)))
	sized(64)
	if !flat {
		h = wire.Array(h, 2)
	}
	h = wire.Uint(h, protocolVersion[n.Era])
	h = wire.Uint(h, 0)
	if n.Era >= chain.Dijkstra {
		h = append(h, wire.False, wire.Null) // certifies and announces no endorser block
	}
	sized(448)
	return h
}

// protocolVersion is the first major version of each era.
var protocolVersion = map[chain.Era]uint64{chain.Shelley: 2, chain.Allegra: 3, chain.Mary: 4, chain.Alonzo: 5,
	chain.Babbage: 7, chain.Conway: 9, chain.Dijkstra: 12}
