package ledger

import (
	"bytes"
	"iter"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// Keys of a witness set (ledger CDDL, transaction_witness_set).
const (
	keyNativeScripts = 1
	keyPlutusV1      = 3
	keyDatums        = 4
	keyRedeemers     = 5
	keyPlutusV2      = 6
	keyPlutusV3      = 7
	keyPlutusV4      = 8
)

// Items yields the elements of the array or set at s, and of a map its keys
// and values in turn. Of anything else, or after what is not well-formed, it
// yields nothing.
func (b *Block) Items(s Span) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		c, n, step := b.container(s)
		for c.more(&n) {
			for range step {
				item := c.item()
				if c.err != nil || !yield(item) {
					return
				}
			}
		}
	}
}

// Pairs yields the keys and values of the map at s.
func (b *Block) Pairs(s Span) iter.Seq2[Span, Span] {
	return func(yield func(Span, Span) bool) {
		c, n, step := b.container(s)
		if step != 2 {
			return
		}
		for c.more(&n) {
			key, value := c.item(), c.item()
			if c.err != nil || !yield(key, value) {
				return
			}
		}
	}
}

// container opens the container at s behind any tags; step is the number of
// items of one element.
func (b *Block) container(s Span) (c cursor, n, step int) {
	c = cursor{b: b.Raw[:s.End], i: s.Start}
	for c.peek()>>5 == majorTag && c.i < len(c.b) {
		c.head()
	}
	switch c.peek() >> 5 {
	case majorArray:
		return c, c.array(), 1
	case majorMap:
		return c, c.mapping(), 2
	}
	return c, 0, 0
}

// Metadata yields the labels of the i-th transaction's metadata and the CBOR
// of what stands under each, as they stand: unsorted, and repeated if they are
// (the later counts). Labels that are no 64-bit numbers are left out.
func (b *Block) Metadata(i int) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for key, value := range b.Pairs(b.metadata(i)) {
			c := cursor{b: b.Raw, i: key.Start}
			label := c.uint()
			if c.err == nil && !yield(label, b.Bytes(value)) {
				return
			}
		}
	}
}

// metadata returns where the map of labels stands: all of the auxiliary data
// (Shelley), its first element (Allegra), or under key 0 in tag 259 (Alonzo).
func (b *Block) metadata(i int) Span {
	aux := b.Txs[i].Aux
	if !aux.Present() {
		return Span{}
	}
	switch b.Raw[aux.Start] >> 5 {
	case majorMap:
		return aux
	case majorArray:
		for first := range b.Items(aux) {
			return first
		}
	case majorTag:
		for key, value := range b.Pairs(aux) {
			if c := (cursor{b: b.Raw, i: key.Start}); c.uint() == 0 && c.err == nil {
				return value
			}
		}
	}
	return Span{}
}

// Labels returns the metadata labels of the i-th transaction, ascending and
// without repeats.
func (b *Block) Labels(i int) []uint64 {
	var labels []uint64
	for label := range b.Metadata(i) {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// witness yields the elements under one key of a witness set.
func (b *Block) witness(i int, key uint64) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for k, v := range b.Pairs(b.Txs[i].Witnesses) {
			if c := (cursor{b: b.Raw, i: k.Start}); c.uint() != key || c.err != nil {
				continue
			}
			for item := range b.Items(v) {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// Datums yields the CBOR of the datums in the i-th transaction's witnesses. A
// datum's hash is the blake2b-256 of these bytes.
func (b *Block) Datums(i int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if b.Era < chain.Alonzo {
			return
		}
		for s := range b.witness(i, keyDatums) {
			if !yield(b.Bytes(s)) {
				return
			}
		}
	}
}

// Redeemers returns where the i-th transaction's redeemers stand: an array, or
// from Conway on a map.
func (b *Block) Redeemers(i int) Span {
	if b.Era < chain.Alonzo {
		return Span{}
	}
	for k, v := range b.Pairs(b.Txs[i].Witnesses) {
		if c := (cursor{b: b.Raw, i: k.Start}); c.uint() == keyRedeemers && c.err == nil {
			return v
		}
	}
	return Span{}
}

// WitnessScripts yields the scripts in the i-th transaction's witnesses. Their
// bytes alias b.Raw.
func (b *Block) WitnessScripts(i int) iter.Seq[chain.Script] {
	return func(yield func(chain.Script) bool) {
		if b.Era < chain.Shelley {
			return
		}
		for s := range b.witness(i, keyNativeScripts) {
			if !yield(chain.Script{Bytes: b.Bytes(s)}) {
				return
			}
		}
		for n, key := range [...]uint64{keyPlutusV1, keyPlutusV2, keyPlutusV3, keyPlutusV4} {
			for s := range b.witness(i, key) {
				c := cursor{b: b.Raw, i: s.Start}
				body := c.bytes()
				if c.err == nil && !yield(chain.Script{Language: uint8(n + 1), Bytes: b.Bytes(body)}) {
					return
				}
			}
		}
	}
}

// ReferenceScripts yields the scripts in the outputs that the i-th transaction
// makes. Their bytes alias b.Raw.
func (b *Block) ReferenceScripts(i int) iter.Seq[chain.Script] {
	return func(yield func(chain.Script) bool) {
		_, outs := b.Txs[i].Creates()
		for _, o := range outs {
			if !o.Script.Present() {
				continue
			}
			c := cursor{b: b.Raw, i: o.Script.Start}
			language, body := c.languageAndScript()
			if c.err == nil && !yield(chain.Script{Language: language, Bytes: b.Bytes(body)}) {
				return
			}
		}
	}
}

// Scripts returns the hashes of the scripts in the i-th transaction's
// witnesses and of the reference scripts it makes, ascending and without
// repeats. Scripts in auxiliary data are not counted.
func (b *Block) Scripts(i int) []chain.Hash28 {
	var hashes []chain.Hash28
	for s := range b.WitnessScripts(i) {
		hashes = append(hashes, s.Hash())
	}
	for s := range b.ReferenceScripts(i) {
		hashes = append(hashes, s.Hash())
	}
	slices.SortFunc(hashes, func(x, y chain.Hash28) int { return bytes.Compare(x[:], y[:]) })
	return slices.Compact(hashes)
}

// Withdrawals yields the reward addresses and amounts of the i-th
// transaction's withdrawals, as they stand; nothing if it is not valid.
func (b *Block) Withdrawals(i int) iter.Seq2[[]byte, uint64] {
	return func(yield func([]byte, uint64) bool) {
		if !b.Txs[i].Valid {
			return
		}
		for k, v := range b.Pairs(b.Txs[i].Withdrawals) {
			c := cursor{b: b.Raw, i: k.Start}
			account := c.bytes()
			c.i = v.Start
			lovelace := c.uint()
			if c.err == nil && !yield(b.Bytes(account), lovelace) {
				return
			}
		}
	}
}

// Certificates yields the CBOR of the i-th transaction's certificates; nothing
// if it is not valid.
func (b *Block) Certificates(i int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !b.Txs[i].Valid {
			return
		}
		for s := range b.Items(b.Txs[i].Certificates) {
			if !yield(b.Bytes(s)) {
				return
			}
		}
	}
}

// Tx returns the i-th transaction with its effects as far as the block itself
// tells them: everything but Spent and Created.
func (b *Block) Tx(i int) chain.AppliedTx {
	t := &b.Txs[i]
	return chain.AppliedTx{
		ID:      t.ID,
		Index:   i,
		Valid:   t.Valid,
		Mint:    b.Mint(i),
		Labels:  b.Labels(i),
		Scripts: b.Scripts(i),
	}
}
