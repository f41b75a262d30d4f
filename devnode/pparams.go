package devnode

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// versionNested is the first version of node-to-client in which the protocol
// version is one item of the parameters in every era; before, that is so from
// Conway on, and it is two items in older eras (consensus: Query/LegacyPParams.hs).
const versionNested = 21

// AppendParams appends the protocol parameters of a generated chain in an era
// since Shelley as a node's ledger writes them for a client of a version: in the
// order of the era's EraPParams instance (cardano-ledger). They are like those of
// public networks; cost models have the right length and made-up numbers.
func AppendParams(b []byte, era chain.Era, version uint16) []byte {
	flat := era < chain.Conway && version < versionNested
	n := 17
	switch {
	case era >= chain.Dijkstra:
		n = 33
	case era == chain.Conway:
		n = 31
	case era == chain.Babbage:
		n = 22
	case era == chain.Alonzo:
		n = 24
	}
	if flat {
		n++
	}
	b = wire.Array(b, n)
	for _, v := range []uint64{forge.FeePerByte, forge.FeeFixed, forge.MaxBlockBody, forge.MaxTxSize, forge.MaxHeaderSize, 2_000_000, 500_000_000, 18, 150} {
		b = wire.Uint(b, v)
	}
	b = appendRatio(b, 3, 10)
	b = appendRatio(b, 3, 1000)
	b = appendRatio(b, 1, 5)
	if era < chain.Babbage {
		b = appendRatio(b, 0, 1)
		b = wire.Uint(wire.Array(b, 1), 0) // neutral
	}
	if !flat {
		b = wire.Array(b, 2)
	}
	b = wire.Uint(wire.Uint(b, forge.ProtocolVersion(era)), 0)
	const minPoolCost = 340_000_000
	if era < chain.Alonzo {
		return wire.Uint(wire.Uint(b, 0), minPoolCost) // no least value of an output
	}
	b = wire.Uint(b, minPoolCost)
	b = wire.Uint(b, map[bool]uint64{true: 34_482, false: 4310}[era == chain.Alonzo]) // a word, later a byte
	b = appendCostModels(b, era)
	b = wire.Array(b, 2)
	b = appendRatio(b, 577, 10_000)
	b = appendRatio(b, 721, 10_000_000)
	for _, units := range [][2]uint64{{14_000_000, 10_000_000_000}, {62_000_000, 20_000_000_000}} {
		b = wire.Uint(wire.Uint(wire.Array(b, 2), units[0]), units[1])
	}
	b = wire.Uint(wire.Uint(wire.Uint(b, 5000), 150), 3)
	if era < chain.Conway {
		return b
	}
	b = wire.Array(b, 5)
	for range 5 {
		b = appendRatio(b, 51, 100)
	}
	b = wire.Array(b, 10)
	for _, p := range []uint64{67, 67, 60, 75, 60, 67, 67, 67, 75, 67} {
		b = appendRatio(b, p, 100)
	}
	for _, v := range []uint64{7, 146, 6, 100_000_000_000, 500_000_000, 20} {
		b = wire.Uint(b, v)
	}
	b = appendRatio(b, 15, 1)
	if era >= chain.Dijkstra { // the first two that the era adds; its list may yet change
		b = wire.Uint(wire.Uint(b, 1<<20), 200<<10)
	}
	return b
}

// appendRatio appends a fraction in lowest terms, as the ledger does
// (cardano-ledger-binary, encodeRatioWithTag).
func appendRatio(b []byte, num, den uint64) []byte {
	x, y := num, den
	for y > 0 {
		x, y = y, x%y
	}
	return wire.Uint(wire.Uint(wire.Array(wire.Tag(b, 30), 2), num/x), den/x)
}

// appendCostModels appends {language: [numbers]}, lists of indefinite length as
// the ledger writes those of more than 23 items.
func appendCostModels(b []byte, era chain.Era) []byte {
	lengths := []int{166}
	if era >= chain.Babbage {
		lengths = append(lengths, 175)
	}
	if era >= chain.Conway {
		lengths = append(lengths, 297)
	}
	b = wire.Map(b, len(lengths))
	for language, n := range lengths {
		b = append(wire.Uint(b, uint64(language)), wire.IndefArray)
		for i := range n {
			b = wire.Int(b, int64(100+i)*int64(1-2*(i%7/6))) // one in seven is negative
		}
		b = append(b, wire.Break)
	}
	return b
}
