package ledger

import (
	"bytes"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// DecodeOutput reads an output after the rules of the era of the block that
// made it: before Conway the later of two equal asset keys wins and zero
// quantities are dropped, from Conway on they are errors. The result aliases
// raw; its assets are sorted and merged. An error is an *Error whose offset
// counts from the start of raw.
//
// An output that Walk has accepted decodes without an error.
func DecodeOutput(era chain.Era, raw []byte) (chain.TxOut, error) {
	c := cursor{b: raw}
	o := c.output(era)
	if c.err == nil && c.i != len(raw) {
		c.fail(c.i, ErrTrailing)
	}
	out := chain.TxOut{Raw: raw}
	if c.err == nil {
		out.Address = raw[o.Address.Start:o.Address.End:o.Address.End]
		out.Lovelace = o.Lovelace
		out.Assets = c.decodeAssets(o.Assets, false)
		c.decodeExtras(&o, &out)
	}
	if c.err != nil {
		return chain.TxOut{}, &Error{Tx: -1, Offset: c.at, Cause: c.err}
	}
	return out, nil
}

// decodeExtras reads datum and script of an output.
func (c *cursor) decodeExtras(o *Out, out *chain.TxOut) {
	out.DatumKind = o.DatumKind
	switch o.DatumKind {
	case chain.HashedDatum:
		copy(out.DatumHash[:], c.b[o.Datum.Start:o.Datum.End])
	case chain.InlineDatum:
		out.Datum = c.b[o.Datum.Start:o.Datum.End:o.Datum.End]
	}
	if o.Script.Present() {
		inner := cursor{b: c.b[:o.Script.End], i: o.Script.Start}
		language, body := inner.languageAndScript()
		if inner.err != nil {
			c.fail(inner.at, inner.err)
			return
		}
		out.Script = &chain.Script{Language: language, Bytes: c.b[body.Start:body.End:body.End]}
	}
}

// decodeAssets reads the map at s, sorted by policy and name. Of a repeated
// key the later value counts, also for a policy as a whole (the ledger reads
// maps of maps); zero quantities are dropped after that. Strict eras have
// refused both before. Signed quantities are kept as their bits.
func (c *cursor) decodeAssets(s Span, signed bool) []chain.Asset {
	if !s.Present() || c.err != nil {
		return nil
	}
	inner := cursor{b: c.b, i: s.Start}
	all := make([]chain.Asset, 0, inner.countAssets())
	sorted := true
	for n := inner.mapping(); inner.more(&n); {
		policy := chain.Hash28(inner.fixed(policySize))
		if k := len(all); k > 0 && (!sorted || bytes.Compare(all[k-1].Policy[:], policy[:]) >= 0) {
			sorted = false // from here on the policy may have come before
			all = slices.DeleteFunc(all, func(a chain.Asset) bool { return a.Policy == policy })
		}
		start := len(all)
		ascending := true
		for m := inner.mapping(); inner.more(&m); {
			name := inner.bytes()
			a := chain.Asset{Policy: policy, Name: c.b[name.Start:name.End:name.End]}
			if signed {
				a.Quantity = uint64(inner.int64())
			} else {
				a.Quantity = inner.uint()
			}
			ascending = ascending && (len(all) == start || bytes.Compare(all[len(all)-1].Name, a.Name) < 0)
			all = append(all, a)
		}
		if !ascending {
			names := all[start:]
			slices.SortStableFunc(names, func(x, y chain.Asset) int { return bytes.Compare(x.Name, y.Name) })
			all = all[:start+keepLast(names)]
		}
	}
	if inner.err != nil {
		c.fail(inner.at, inner.err)
		return nil
	}
	if !sorted {
		slices.SortStableFunc(all, func(x, y chain.Asset) int { return bytes.Compare(x.Policy[:], y.Policy[:]) })
	}
	all = slices.DeleteFunc(all, func(a chain.Asset) bool { return a.Quantity == 0 })
	if len(all) == 0 {
		return nil
	}
	return all
}

// countAssets returns the number of names under all policies of the map that
// comes next, and stays before it.
func (c *cursor) countAssets() (count int) {
	probe := *c
	for n := probe.mapping(); probe.more(&n); {
		probe.skip()
		for m := probe.mapping(); probe.more(&m); count++ {
			probe.skip()
			probe.skip()
		}
	}
	return count
}

// keepLast moves the last asset of each run of equal names to the front and
// returns how many there are.
func keepLast(names []chain.Asset) (kept int) {
	for i := range names {
		if i+1 < len(names) && bytes.Equal(names[i].Name, names[i+1].Name) {
			continue
		}
		names[kept] = names[i]
		kept++
	}
	return kept
}
