package forge

import (
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// dijkstraBlock writes a block of the era that is still being made, as its
// CDDL stood in the summer of 2026: [header, body] with whole transactions,
// whose validity is told either by a list of the failed ones at the front of
// the body or by a flag at the end of each transaction.
func (m *maker) dijkstraBlock() []byte {
	g := m.g
	flags := g.chance(0.5)
	var body []byte
	if flags {
		body = wire.Array(body, 3)
	} else {
		body = wire.Array(body, 4)
		var failed []uint64
		for i, d := range m.txs {
			if d.invalid {
				failed = append(failed, uint64(i))
			}
		}
		if len(failed) == 0 {
			body = append(body, wire.Null)
		} else {
			body = wire.Array(body, len(failed))
			for _, i := range failed {
				body = wire.Uint(body, i)
			}
		}
	}
	body = wire.Array(body, len(m.txs))
	for _, d := range m.txs {
		if flags {
			body = wire.Array(body, 4)
		} else {
			body = wire.Array(body, 3)
		}
		body = append(append(body, d.body...), d.wits...)
		if d.aux == nil {
			body = append(body, wire.Null)
		} else {
			body = append(body, d.aux...)
		}
		switch {
		case flags && d.invalid:
			body = append(body, wire.False)
		case flags:
			body = append(body, wire.True)
		}
	}
	body = append(body, wire.Null) // no Leios certificate: such a block has no transactions
	if g.chance(0.2) {
		body = wire.Bytes(body, g.bytes(100)) // a Peras certificate
	} else {
		body = append(body, wire.Null)
	}
	header := m.header(len(body), blake(body))
	m.n.Point.Hash = blake(header)
	raw := wire.Uint(wire.Array(nil, 2), uint64(m.n.Era))
	raw = wire.Array(raw, 2)
	return append(append(raw, header...), body...)
}
