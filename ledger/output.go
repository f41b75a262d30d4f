package ledger

import (
	"bytes"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// Sizes of the parts of a value (ledger CDDL).
const (
	policySize   = 28
	maxAssetName = 32
)

// output reads an output after the rules of an era: Shelley to Alonzo [address,
// value], in Alonzo with a datum hash as a third element, from Babbage on also
// {0: address, 1: value, 2: datum option, 3: script}.
func (c *cursor) output(era chain.Era) (o Out) {
	if era == chain.Byron {
		return c.byronOutput()
	}
	o.Start = c.i
	if era >= chain.Babbage && c.peek()>>5 == majorMap {
		c.mapOutput(era, &o)
	} else {
		c.arrayOutput(era, &o)
	}
	o.End = c.i
	return o
}

func (c *cursor) arrayOutput(era chain.Era, o *Out) {
	at := c.i
	n := c.array()
	if c.err == nil && n != indefinite && n != 2 && (n != 3 || era < chain.Alonzo) {
		c.fail(at, ErrUnexpected)
		return
	}
	o.Address = c.bytes()
	c.value(era, o)
	if n == 3 || n == indefinite && era >= chain.Alonzo && c.peek() != breakByte {
		o.DatumKind = chain.HashedDatum
		o.Datum = c.hash()
	}
	c.end(n)
}

func (c *cursor) mapOutput(era chain.Era, o *Out) {
	at := c.i
	var seen uint
	for n := c.mapping(); c.more(&n); {
		keyAt := c.i
		key := c.uint()
		if c.err != nil {
			return
		}
		if key > 3 {
			c.fail(keyAt, ErrUnexpected)
			return
		}
		if seen>>key&1 != 0 {
			c.fail(keyAt, ErrDuplicate)
			return
		}
		seen |= 1 << key
		switch key {
		case 0:
			o.Address = c.bytes()
		case 1:
			c.value(era, o)
		case 2:
			c.datumOption(o)
		case 3:
			c.tag(tagEncoded)
			o.Script = c.bytes()
			c.script(o.Script)
		}
	}
	if c.err == nil && seen&3 != 3 {
		c.fail(at, ErrMissing)
	}
}

// datumOption reads [0, hash] or [1, 24(datum)].
func (c *cursor) datumOption(o *Out) {
	n := c.tuple(2)
	at := c.i
	switch c.uint() {
	case 0:
		o.DatumKind = chain.HashedDatum
		o.Datum = c.hash()
	case 1:
		o.DatumKind = chain.InlineDatum
		c.tag(tagEncoded)
		o.Datum = c.bytes()
	default:
		c.fail(at, ErrUnexpected)
	}
	c.end(n)
}

// hash reads a byte string of 32 bytes and returns where its content stands.
func (c *cursor) hash() Span {
	at := c.i
	s := c.bytes()
	if c.err == nil && s.Len() != len(chain.Hash{}) {
		c.fail(at, ErrUnexpected)
	}
	return s
}

// script checks the [language, script] at s, the content of a reference
// script.
func (c *cursor) script(s Span) {
	if c.err != nil {
		return
	}
	inner := cursor{b: c.b[:s.End], i: s.Start}
	inner.languageAndScript()
	if inner.err == nil && inner.i != s.End {
		inner.fail(inner.i, ErrUnexpected)
	}
	if inner.err != nil {
		c.fail(inner.at, inner.err)
	}
}

// languageAndScript reads [language, script] and returns the bytes that the
// script's hash is taken of: for language 0, native scripts, their CBOR, for
// others the content of the byte string.
func (c *cursor) languageAndScript() (language uint8, body Span) {
	n := c.tuple(2)
	at := c.i
	lang := c.uint()
	if lang > 255 {
		c.fail(at, ErrAmount)
	}
	if lang == 0 {
		body = c.item()
	} else {
		body = c.bytes()
	}
	c.end(n)
	return uint8(lang), body
}

// value reads lovelace or, from Mary on, [lovelace, assets].
func (c *cursor) value(era chain.Era, o *Out) {
	if era < chain.Mary || c.peek()>>5 == majorUint {
		o.Lovelace = c.uint()
		return
	}
	n := c.tuple(2)
	o.Lovelace = c.uint()
	o.Assets = c.assets(era, false)
	c.end(n)
}

// assets steps over a map from policy to a map from name to quantity: of an
// output (unsigned) or minted (signed). From Conway on, repeated keys, zero
// quantities and policies without assets are errors.
func (c *cursor) assets(era chain.Era, signed bool) Span {
	start := c.i
	var last []byte
	sorted := true
	for n := c.mapping(); c.more(&n); {
		policy := c.fixed(policySize)
		sorted = sorted && bytes.Compare(last, policy) < 0
		last = policy
		c.names(era, signed)
	}
	s := Span{start, c.i}
	if !sorted && strict(era) {
		c.unique(s)
	}
	return s
}

func (c *cursor) names(era chain.Era, signed bool) {
	start := c.i
	var last []byte
	sorted := true
	count := 0
	for n := c.mapping(); c.more(&n); count++ {
		name, zero := c.quantity(signed)
		if zero && strict(era) {
			c.fail(c.i, ErrZeroQuantity)
		}
		if c.err != nil {
			return
		}
		text := c.b[name.Start:name.End]
		sorted = sorted && (count == 0 || bytes.Compare(last, text) < 0)
		last = text
	}
	if !strict(era) || c.err != nil {
		return
	}
	if count == 0 {
		c.fail(start, ErrZeroQuantity)
	}
	if !sorted {
		c.unique(Span{start, c.i})
	}
}

// quantity reads a name and its quantity.
func (c *cursor) quantity(signed bool) (name Span, zero bool) {
	at := c.i
	name = c.bytes()
	if name.Len() > maxAssetName {
		c.fail(at, ErrUnexpected)
	}
	if signed {
		return name, c.int64() == 0
	}
	return name, c.uint() == 0
}

// unique checks that no key of the map at s, all byte strings, is repeated.
func (c *cursor) unique(s Span) {
	if c.err != nil {
		return
	}
	inner := cursor{b: c.b, i: s.Start}
	keys := c.spans[:0]
	for n := inner.mapping(); inner.more(&n); {
		keys = append(keys, inner.bytes())
		inner.skip()
	}
	slices.SortFunc(keys, func(x, y Span) int {
		return bytes.Compare(c.b[x.Start:x.End], c.b[y.Start:y.End])
	})
	for i := 1; i < len(keys); i++ {
		x, y := keys[i-1], keys[i]
		if bytes.Equal(c.b[x.Start:x.End], c.b[y.Start:y.End]) {
			c.fail(y.Start, ErrDuplicate)
			break
		}
	}
	c.spans = keys
}
