package forge

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// valueQuirk is how a value is written where the ledger leaves a choice. The
// rules for zeros, repeats and empty maps are those before protocol version 9:
// later repeats win and zeros are dropped (cardano-ledger Mary:
// decodeMultiAsset); from Conway on they are errors and never written.
type valueQuirk struct {
	wide       bool // amounts in eight bytes
	indef      bool // asset maps of indefinite length
	zero       bool // a zero quantity of an asset that is not there
	repeat     bool // an asset twice: first with another quantity
	repeatAll  bool // a policy twice: first with other contents
	emptyInner bool // a policy without assets
	emptyOuter bool // assets that are none
}

func appendAmount(b []byte, n uint64, wide bool) []byte {
	if wide {
		return wire.WideHead(b, wire.MajorUint, n)
	}
	return wire.Uint(b, n)
}

// appendValue appends a coin, or [coin, assets].
func appendValue(b []byte, coin uint64, assets []chain.Asset, q valueQuirk) []byte {
	if len(assets) == 0 && !q.emptyOuter && !q.zero && !q.emptyInner {
		return appendAmount(b, coin, q.wide)
	}
	b = appendAmount(wire.Array(b, 2), coin, q.wide)
	var groups [][]chain.Asset
	for i := 0; i < len(assets); {
		j := i
		for j < len(assets) && assets[j].Policy == assets[i].Policy {
			j++
		}
		groups = append(groups, assets[i:j])
		i = j
	}
	var fake chain.Hash28
	fake[0] = 0xfe
	n := len(groups)
	if q.repeatAll && len(groups) > 0 {
		n++
	}
	if q.emptyInner {
		n++
	}
	if q.zero {
		n++
	}
	if q.indef {
		b = append(b, wire.IndefMap)
	} else {
		b = wire.Map(b, n)
	}
	if q.zero {
		b = wire.Map(wire.Bytes(b, fake[:]), 1)
		b = wire.Uint(wire.Bytes(b, []byte("none")), 0)
	}
	if q.emptyInner {
		fake[1] = 0xfd
		b = wire.Map(wire.Bytes(b, fake[:]), 0)
	}
	if q.repeatAll && len(groups) > 0 {
		b = wire.Map(wire.Bytes(b, groups[0][0].Policy[:]), 1)
		b = wire.Uint(wire.Bytes(b, []byte("overwritten")), 77)
	}
	for i, g := range groups {
		b = wire.Bytes(b, g[0].Policy[:])
		n := len(g)
		if q.repeat && i == 0 {
			n++
		}
		if q.indef {
			b = append(b, wire.IndefMap)
		} else {
			b = wire.Map(b, n)
		}
		if q.repeat && i == 0 {
			b = wire.Uint(wire.Bytes(b, g[len(g)-1].Name), g[len(g)-1].Quantity/2+1)
		}
		for _, a := range g {
			b = appendAmount(wire.Bytes(b, a.Name), a.Quantity, q.wide)
		}
		if q.indef {
			b = append(b, wire.Break)
		}
	}
	if q.indef {
		b = append(b, wire.Break)
	}
	return b
}

// appendOutput appends an output as a transaction of the era holds it, and
// keeps its bytes in o.Raw.
func appendOutput(b []byte, o *Output, era chain.Era, asMap bool, keepRaw bool) []byte {
	start := len(b)
	switch {
	case era == chain.Byron:
		b = wire.Array(b, 2)
		b = append(b, o.Address...)
		b = wire.Uint(b, o.Lovelace)
	case asMap:
		n := 2
		if o.DatumKind != chain.NoDatum {
			n++
		}
		if o.HasScript {
			n++
		}
		b = wire.Map(b, n)
		b = wire.Bytes(wire.Uint(b, 0), o.Address)
		b = appendValue(wire.Uint(b, 1), o.Lovelace, o.Assets, o.quirk)
		switch o.DatumKind {
		case chain.HashedDatum:
			b = wire.Array(wire.Uint(b, 2), 2)
			b = wire.Bytes(wire.Uint(b, 0), o.DatumHash[:])
		case chain.InlineDatum:
			b = wire.Array(wire.Uint(b, 2), 2)
			b = wire.Embedded(wire.Uint(b, 1), o.inline)
		}
		if o.HasScript {
			b = wire.Embedded(wire.Uint(b, 3), o.ref)
		}
	default:
		n := 2
		if o.DatumKind == chain.HashedDatum {
			n++
		}
		b = wire.Array(b, n)
		b = wire.Bytes(b, o.Address)
		b = appendValue(b, o.Lovelace, o.Assets, o.quirk)
		if o.DatumKind == chain.HashedDatum {
			b = wire.Bytes(b, o.DatumHash[:])
		}
	}
	if keepRaw {
		o.Raw = append([]byte(nil), b[start:]...)
	}
	return b
}

// appendInput appends [transaction id, index].
func appendInput(b []byte, r chain.TxIn, wide bool) []byte {
	b = wire.Bytes(wire.Array(b, 2), r.ID[:])
	return appendAmount(b, uint64(r.Index), wide)
}

// appendInputs appends a set of inputs.
func appendInputs(b []byte, ins []*Output, s style) []byte {
	if s.tagSets {
		b = wire.Tag(b, 258)
	}
	if s.indefIns {
		b = append(b, wire.IndefArray)
	} else {
		b = wire.Array(b, len(ins))
	}
	for _, o := range ins {
		b = appendInput(b, o.Ref, s.wide)
	}
	if s.indefIns {
		b = append(b, wire.Break)
	}
	return b
}

// Keys of a transaction body (conway.cddl; the lower ones since Shelley).
const (
	keyInputs      = 0
	keyOutputs     = 1
	keyFee         = 2
	keyTTL         = 3
	keyCerts       = 4
	keyWithdrawals = 5
	keyAuxHash     = 7
	keyFrom        = 8
	keyMint        = 9
	keyScriptData  = 11
	keyCollateral  = 13
	keySigners     = 14
	keyNetwork     = 15
	keyReturn      = 16
	keyTotal       = 17
	keyRefInputs   = 18
	keyVotes       = 19
	keyProposals   = 20
	keyDonation    = 22
)

// encodeBody writes the transaction body of an era since Shelley.
func (m *maker) encodeBody(d *draft) {
	era, s, keep := m.n.Era, d.style, !m.f.opts.Lean
	fields := make([]field, 0, 16)
	put := func(key uint64, value []byte) { fields = append(fields, field{key, value}) }
	put(keyInputs, appendInputs(nil, d.inputs, s))
	var b []byte
	if s.indefOuts {
		b = append(b, wire.IndefArray)
	} else {
		b = wire.Array(nil, len(d.outs))
	}
	for _, o := range d.outs {
		b = appendOutput(b, o, era, m.outputAsMap(o, s), keep)
	}
	if s.indefOuts {
		b = append(b, wire.Break)
	}
	put(keyOutputs, b)
	put(keyFee, appendAmount(nil, d.fee, s.wide))
	if d.ttl > 0 {
		put(keyTTL, appendAmount(nil, d.ttl, s.wide))
	}
	if len(d.certs) > 0 {
		b = nil
		if s.tagSets {
			b = wire.Tag(b, 258)
		}
		b = wire.Array(b, len(d.certs))
		for _, c := range d.certs {
			b = append(b, c...)
		}
		put(keyCerts, b)
	}
	if len(d.withdrawal) > 0 {
		b = wire.Map(nil, len(d.withdrawal))
		for _, w := range d.withdrawal {
			b = wire.Uint(wire.Bytes(b, w.account), w.amount)
		}
		put(keyWithdrawals, b)
	}
	if d.aux != nil {
		h := blake(d.aux)
		put(keyAuxHash, wire.Bytes(nil, h[:]))
	}
	if d.from > 0 {
		put(keyFrom, appendAmount(nil, d.from, s.wide))
	}
	if len(d.mint) > 0 {
		put(keyMint, appendMint(d.mint))
	}
	if len(d.collateral) > 0 {
		put(keyCollateral, appendInputs(nil, d.collateral, s))
	}
	if d.ret != nil {
		put(keyReturn, appendOutput(nil, d.ret, era, m.outputAsMap(d.ret, s), keep))
	}
	if d.totalColl > 0 {
		put(keyTotal, appendAmount(nil, d.totalColl, s.wide))
	}
	if len(d.refs) > 0 {
		put(keyRefInputs, appendInputs(nil, d.refs, s))
	}
	fields = append(fields, d.extra...)
	if s.shuffle {
		m.g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	if s.indefBody {
		b = append(b[:0:0], wire.IndefMap)
	} else {
		b = wire.Map(nil, len(fields))
	}
	for _, f := range fields {
		b = append(wire.Uint(b, f.key), f.value...)
	}
	if s.indefBody {
		b = append(b, wire.Break)
	}
	d.body = b
}

// outputAsMap tells whether an output is written as a map: only that form can
// hold an inline datum or a script.
func (m *maker) outputAsMap(o *Output, s style) bool {
	if m.n.Era < chain.Babbage {
		return false
	}
	return s.mapOutputs || o.DatumKind == chain.InlineDatum || o.HasScript
}

// appendMint appends minted and burnt assets grouped by policy.
func appendMint(mint []chain.Minted) []byte {
	var groups [][]chain.Minted
	for i := 0; i < len(mint); {
		j := i
		for j < len(mint) && mint[j].Policy == mint[i].Policy {
			j++
		}
		groups = append(groups, mint[i:j])
		i = j
	}
	b := wire.Map(nil, len(groups))
	for _, g := range groups {
		b = wire.Map(wire.Bytes(b, g[0].Policy[:]), len(g))
		for _, a := range g {
			b = wire.Int(wire.Bytes(b, a.Name), a.Quantity)
		}
	}
	return b
}
