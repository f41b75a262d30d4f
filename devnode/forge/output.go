package forge

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"
	"strconv"

	"github.com/ourotail/ourotail/chain"
)

// Output is an output as the forge made it. It is shared and read-only.
type Output struct {
	Ref       chain.TxIn
	Address   []byte
	Lovelace  uint64
	Assets    []chain.Asset // sorted by policy and name, without zeros
	DatumKind chain.DatumKind
	DatumHash chain.Hash // of an inline datum too
	HasScript bool
	Script    chain.Hash28 // hash of the reference script
	Raw       []byte       // as it stands in its transaction; nil in a lean forge
	Height    chain.Height
	Slot      chain.Slot
	TxIndex   uint32
	Era       chain.Era

	avvm    bool
	script  bool // locked by a script: no collateral
	ordered bool // made by an order: spent by another one only
	term    sum128
	pos     int // in live.all
	hpos    int // in live.byHeight
	inline  []byte
	ref     []byte // reference script, [language, script]
	quirk   valueQuirk
}

// AVVM tells whether it is a genesis voucher, which the ledger removes at the
// Allegra boundary if nobody redeemed it.
func (o *Output) AVVM() bool { return o.avvm }

// Line returns "txid#ix CONTENT", the canonical text of an unspent output.
func (o *Output) Line() string { return string(o.appendLine(nil)) }

func (o *Output) appendLine(b []byte) []byte {
	b = hex.AppendEncode(b, o.Ref.ID[:])
	b = append(b, '#')
	b = strconv.AppendUint(b, uint64(o.Ref.Index), 10)
	b = append(b, ' ')
	b = appendAddress(b, o.Address)
	b = append(b, ' ')
	b = strconv.AppendUint(b, o.Lovelace, 10)
	b = append(b, ' ')
	for i, a := range o.Assets {
		if i > 0 {
			b = append(b, ',')
		}
		b = hex.AppendEncode(b, a.Policy[:])
		b = append(b, '.')
		b = hex.AppendEncode(b, a.Name)
		b = append(b, '=')
		b = strconv.AppendUint(b, a.Quantity, 10)
	}
	if len(o.Assets) == 0 {
		b = append(b, '-')
	}
	switch o.DatumKind {
	case chain.HashedDatum:
		b = hex.AppendEncode(append(b, " h:"...), o.DatumHash[:])
	case chain.InlineDatum:
		b = hex.AppendEncode(append(b, " i:"...), o.DatumHash[:])
	default:
		b = append(b, " -"...)
	}
	if o.HasScript {
		return hex.AppendEncode(append(b, " s:"...), o.Script[:])
	}
	return append(b, " -"...)
}

// sum128 is a number modulo 2^128.
type sum128 struct{ hi, lo uint64 }

func (s sum128) add(t sum128) sum128 {
	lo, carry := bits.Add64(s.lo, t.lo, 0)
	hi, _ := bits.Add64(s.hi, t.hi, carry)
	return sum128{hi, lo}
}

func (s sum128) sub(t sum128) sum128 {
	lo, borrow := bits.Sub64(s.lo, t.lo, 0)
	hi, _ := bits.Sub64(s.hi, t.hi, borrow)
	return sum128{hi, lo}
}

func (s sum128) bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:], s.hi)
	binary.BigEndian.PutUint64(b[8:], s.lo)
	return b
}

// accumulate computes the output's part of the accumulator: the first 16 bytes
// of the SHA-256 of its line.
func (o *Output) accumulate(scratch []byte) []byte {
	scratch = o.appendLine(scratch[:0])
	d := sha256.Sum256(scratch)
	o.term = sum128{binary.BigEndian.Uint64(d[:]), binary.BigEndian.Uint64(d[8:])}
	return scratch
}

// normalise sorts assets and drops zero quantities.
func normalise(assets []chain.Asset) []chain.Asset {
	assets = slices.DeleteFunc(assets, func(a chain.Asset) bool { return a.Quantity == 0 })
	slices.SortFunc(assets, compareAssets)
	return assets
}

func compareAssets(a, b chain.Asset) int {
	if c := bytes.Compare(a.Policy[:], b.Policy[:]); c != 0 {
		return c
	}
	return bytes.Compare(a.Name, b.Name)
}
