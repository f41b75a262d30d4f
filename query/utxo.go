package query

import (
	"strconv"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

type utxoNode = node[chain.UTxO, chain.Source]

// UTxO says which outputs are wanted (contract 4.2): sources and filters,
// joined by Any, All and Not. The zero value wants all of them.
type UTxO struct{ n utxoNode }

func (q UTxO) node() utxoNode {
	if q.n == nil {
		return all[chain.UTxO, chain.Source](nil)
	}
	return q.n
}

// Match tells whether an output is wanted.
func (q UTxO) Match(u *chain.UTxO) bool { return q.n == nil || q.n.match(u) }

// Covered tells whether a block of such a coverage answers the query
// (contract 1.3): a union if every arm is covered, an intersection if any is, a
// source if it was probed, everything else only if the whole block was seen.
func (q UTxO) Covered(c chain.Coverage) bool { return c.Complete || q.node().covered(c) }

// Keys returns the sources under which the query is looked up: every output
// that it wants belongs to at least one of them. With exact, belonging to one
// is enough; otherwise Match has to decide. A query that no sources can answer
// for has the one key SourceAll. Keys may repeat.
func (q UTxO) Keys() (keys []chain.Source, exact bool) {
	if q.n == nil {
		return []chain.Source{{}}, true
	}
	keys, exact, ok := q.n.keys(nil, func(chain.Source) bool { return true })
	if !ok {
		return []chain.Source{{}}, false
	}
	return keys, exact
}

// KeysIn is Keys with sources of some kinds only; false if they cannot promise
// to find every output that the query wants.
func (q UTxO) KeysIn(kinds Kinds) (keys []chain.Source, exact, ok bool) {
	return q.node().keys(nil, func(s chain.Source) bool { return kinds.Has(s.Kind) })
}

// String returns the query's text; ParseUTxO reads it back.
func (q UTxO) String() string { return string(q.node().appendText(nil)) }

// Everything wants all outputs.
func Everything() UTxO { return UTxO{} }

// From wants the outputs that belong to a source; see EachSource for its key.
func From(s chain.Source) UTxO {
	if s.Kind == chain.SourceAll {
		return UTxO{}
	}
	return UTxO{sourceNode(s)}
}

func source[B ~[]byte | ~string](k chain.SourceKind, key B) UTxO {
	return UTxO{sourceNode{Kind: k, Key: string(key)}}
}

// Address wants the outputs at exactly these bytes.
func Address(addr []byte) UTxO { return source(chain.SourceAddress, addr) }

// Payment wants the outputs whose payment credential has the hash.
func Payment(hash chain.Hash28) UTxO { return source(chain.SourcePayment, hash[:]) }

// Stake wants the outputs whose address names the stake credential.
func Stake(hash chain.Hash28) UTxO { return source(chain.SourceStake, hash[:]) }

// Policy wants the outputs that hold any asset of the policy.
func Policy(p chain.Hash28) UTxO { return source(chain.SourcePolicy, p[:]) }

// Asset wants the outputs that hold the asset.
func Asset(p chain.Hash28, name []byte) UTxO {
	return source(chain.SourceAsset, string(p[:])+string(name))
}

// OutputsOf wants the outputs of a transaction.
func OutputsOf(id chain.TxID) UTxO { return source(chain.SourceTx, id[:]) }

// Inputs wants the outputs with these references.
func Inputs(refs ...chain.TxIn) UTxO {
	arms := make([]UTxO, len(refs))
	for i, r := range refs {
		arms[i] = source(chain.SourceInput, r.AppendKey(nil))
	}
	return AnyOf(arms...)
}

// AnyOf wants what any of the queries wants; none wants nothing.
func AnyOf(queries ...UTxO) UTxO {
	if len(queries) == 1 {
		return queries[0]
	}
	s := &some[chain.UTxO, chain.Source]{arms: make([]utxoNode, len(queries))}
	for i, q := range queries {
		s.arms[i] = q.node()
	}
	speedUp(s)
	return UTxO{s}
}

// AllOf wants what every one of the queries wants; none wants everything.
func AllOf(queries ...UTxO) UTxO {
	if len(queries) == 1 {
		return queries[0]
	}
	a := make(all[chain.UTxO, chain.Source], len(queries))
	for i, q := range queries {
		a[i] = q.node()
	}
	return UTxO{a}
}

// Not wants what the query does not want.
func Not(q UTxO) UTxO { return UTxO{not[chain.UTxO, chain.Source]{q.node()}} }

// Shelley wants the outputs at Shelley addresses of any kind (Kupo's */*).
func Shelley() UTxO { return UTxO{shelley{}} }

// HasDatum wants the outputs with a datum, by hash or inline.
func HasDatum() UTxO { return UTxO{hasDatum{}} }

// DatumHash wants the outputs whose datum, by hash or inline, has the hash.
func DatumHash(h chain.Hash) UTxO { return UTxO{datumHash(h)} }

// MinLovelace wants the outputs with at least so much.
func MinLovelace(n uint64) UTxO { return UTxO{minLovelace(n)} }

// manyArms is the number of sources from which a union is decided by lookup.
const manyArms = 8

func speedUp(s *some[chain.UTxO, chain.Source]) {
	if len(s.arms) < manyArms {
		return
	}
	set := make(map[chain.Source]struct{}, len(s.arms))
	var want Kinds
	for _, n := range s.arms {
		if src, ok := n.(sourceNode); ok && src.Kind != chain.SourceAll {
			set[chain.Source(src)] = struct{}{}
			want |= 1 << src.Kind
		} else {
			s.rest = append(s.rest, n)
		}
	}
	if len(set) < manyArms {
		s.rest = nil
		return
	}
	s.fast = func(u *chain.UTxO) bool {
		var scratch [64]byte
		return !EachSource(u, want, scratch[:], func(k chain.SourceKind, key []byte) bool {
			_, ok := set[chain.Source{Kind: k, Key: string(key)}]
			return !ok
		})
	}
}

// filter is what the leaves share that look at an output but cannot be looked
// up.
type filter struct{}

func (filter) covered(c chain.Coverage) bool { return c.Complete }
func (filter) keys(dst []chain.Source, _ func(chain.Source) bool) ([]chain.Source, bool, bool) {
	return dst, false, false
}

type shelley struct{ filter }

func (shelley) match(u *chain.UTxO) bool {
	k := address.KindOf(u.Out.Address)
	return k != address.Byron && k != address.Unknown
}
func (shelley) appendText(dst []byte) []byte { return append(dst, "*/*"...) }
func (shelley) json() any                    { return map[string]any{"shelley": true} }

type hasDatum struct{ filter }

func (hasDatum) match(u *chain.UTxO) bool     { return u.Out.DatumKind != chain.NoDatum }
func (hasDatum) appendText(dst []byte) []byte { return append(dst, "datum"...) }
func (hasDatum) json() any                    { return map[string]any{"datum": true} }

type datumHash chain.Hash

func (datumHash) covered(c chain.Coverage) bool { return c.Complete }
func (datumHash) keys(dst []chain.Source, _ func(chain.Source) bool) ([]chain.Source, bool, bool) {
	return dst, false, false
}
func (d datumHash) match(u *chain.UTxO) bool {
	h, ok := u.Out.DatumID()
	return ok && h == chain.Hash(d)
}
func (d datumHash) appendText(dst []byte) []byte {
	return append(append(dst, "datum:"...), chain.Hash(d).String()...)
}
func (d datumHash) json() any { return map[string]any{"datum_hash": chain.Hash(d).String()} }

type minLovelace uint64

func (minLovelace) covered(c chain.Coverage) bool { return c.Complete }
func (minLovelace) keys(dst []chain.Source, _ func(chain.Source) bool) ([]chain.Source, bool, bool) {
	return dst, false, false
}
func (m minLovelace) match(u *chain.UTxO) bool { return u.Out.Lovelace >= uint64(m) }
func (m minLovelace) appendText(dst []byte) []byte {
	return strconv.AppendUint(append(dst, "lovelace>="...), uint64(m), 10)
}
func (m minLovelace) json() any {
	return map[string]any{"min_lovelace": strconv.FormatUint(uint64(m), 10)}
}

func appendRef(dst []byte, r chain.TxIn) []byte {
	dst = append(strconv.AppendUint(dst, uint64(r.Index), 10), '@')
	return append(dst, r.ID.String()...)
}
