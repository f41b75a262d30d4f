package forge

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Keys of a witness set (conway.cddl).
const (
	witKeys      = 0
	witNative    = 1
	witBootstrap = 2
	witPlutusV1  = 3
	witData      = 4
	witRedeemers = 5
	witPlutusV2  = 6
)

// encodeWitnesses writes the witness set of an era since Shelley.
func (m *maker) encodeWitnesses(d *draft, scripts bool) {
	g, era := m.g, m.n.Era
	var fields []field
	list := func(n int) []byte {
		var b []byte
		if d.style.tagSets {
			b = wire.Tag(b, 258)
		}
		return wire.Array(b, n)
	}
	keys := g.between(1, 3)
	b := list(keys)
	for range keys {
		b = wire.Array(b, 2)
		b = wire.Bytes(b, g.bytes(32))
		b = wire.Bytes(b, g.bytes(64))
	}
	fields = append(fields, field{witKeys, b})
	if slices.ContainsFunc(d.inputs, func(o *Output) bool { return o.Address[0] == byronAddressByte }) {
		b = list(1)
		b = wire.Array(b, 4)
		b = wire.Bytes(b, g.bytes(32))
		b = wire.Bytes(b, g.bytes(64))
		b = wire.Bytes(b, g.bytes(32))
		b = wire.Bytes(b, []byte{0xa0})
		fields = append(fields, field{witBootstrap, b})
	}
	if len(d.mint) > 0 || g.chance(0.05) {
		s := m.nativeScript()
		fields = append(fields, field{witNative, append(list(1), s...)})
		d.scripts = append(d.scripts, scriptHash(0, s))
	}
	if scripts && len(d.collateral) > 0 {
		key, language := uint64(witPlutusV1), byte(1)
		if era >= chain.Babbage && g.chance(0.6) {
			key, language = witPlutusV2, 2
		}
		s := m.plutusScript()
		fields = append(fields, field{key, wire.Bytes(list(1), s)})
		d.scripts = append(d.scripts, scriptHash(language, s))
		if g.chance(0.6) {
			fields = append(fields, field{witData, append(list(1), m.plutusData(3)...)})
		}
		units := func(b []byte) []byte {
			b = wire.Array(b, 2)
			b = wire.Uint(b, uint64(g.IntN(14_000_000)))
			return wire.Uint(b, g.Uint64N(10_000_000_000))
		}
		if era >= chain.Dijkstra || era == chain.Conway && g.chance(0.5) {
			b = wire.Map(nil, 1)
			b = wire.Array(b, 2)
			b = append(b, 0, 0)
			b = wire.Array(b, 2)
			b = append(b, m.plutusData(2)...)
			fields = append(fields, field{witRedeemers, units(b)})
		} else {
			b = wire.Array(nil, 1)
			b = wire.Array(b, 4)
			b = append(b, 0, 0)
			b = append(b, m.plutusData(2)...)
			fields = append(fields, field{witRedeemers, units(b)})
		}
	}
	slices.SortStableFunc(fields, func(a, b field) int { return int(a.key) - int(b.key) })
	d.wits = wire.Map(nil, len(fields))
	for _, f := range fields {
		d.wits = append(wire.Uint(d.wits, f.key), f.value...)
	}
}

// metadata attaches auxiliary data in one of the forms the era allows.
func (m *maker) metadata(d *draft) {
	g, era := m.g, m.n.Era
	n := g.between(1, 3)
	for len(d.labels) < n {
		label := []uint64{721, 674, 20, 1, 1 << 40, 1<<64 - 1}[g.IntN(6)]
		if !slices.Contains(d.labels, label) {
			d.labels = append(d.labels, label)
		}
	}
	slices.Sort(d.labels)
	meta := wire.Map(nil, n)
	for _, l := range d.labels {
		meta = append(wire.Uint(meta, l), m.metadatum(3)...)
	}
	form := g.IntN(3)
	switch {
	case form == 1 && era >= chain.Allegra:
		d.aux = append(wire.Array(nil, 2), meta...)
		d.aux = wire.Array(d.aux, 1)
		d.aux = append(d.aux, m.nativeScript()...)
	case form == 2 && era >= chain.Alonzo:
		d.aux = wire.Map(wire.Tag(nil, 259), 1)
		d.aux = append(wire.Uint(d.aux, 0), meta...)
	default:
		d.aux = meta
	}
}

// metadatum makes a piece of metadata: text with NULs, bytes that are no
// UTF-8, maps with repeated keys.
func (m *maker) metadatum(depth int) []byte {
	g := m.g
	switch kind := g.IntN(6); {
	case depth == 0 || kind == 0:
		return wire.Int(nil, g.Int64()>>g.IntN(64))
	case kind == 1:
		return wire.Text(nil, "text with \x00 NULs and ünïcödé \U0001f40e")
	case kind == 2:
		return wire.Bytes(nil, []byte("\xff\xfe not \x00 UTF-8"))
	case kind == 3:
		n := g.IntN(4)
		b := wire.Array(nil, n)
		for range n {
			b = append(b, m.metadatum(depth-1)...)
		}
		return b
	}
	n := g.IntN(3)
	repeat := !m.f.opts.Plain && n > 0 && g.chance(0.3)
	b := wire.Map(nil, n)
	if repeat {
		b = wire.Map(nil, n+1)
		b = wire.Uint(wire.Uint(b, 0), 7)
	}
	for i := range n {
		b = wire.Uint(b, uint64(i))
		b = append(b, m.metadatum(depth-1)...)
	}
	return b
}
