package query

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// TxKeyKind tells what a TxKey looks at.
type TxKeyKind uint8

// The kinds of key of a transaction (contract 4.3).
const (
	TxAll         TxKeyKind = iota
	TxAddress               // an output made or spent there
	TxMintsPolicy           // minted or burnt
	TxMintsAsset            // policy, then name
	TxInput                 // a spent reference, in key form
	TxScript                // hash
	TxLabel                 // metadata label, 8 bytes big endian
)

// TxKey is one thing by which a transaction can be found.
type TxKey struct {
	Kind TxKeyKind
	Key  string
}

// Source returns the source by which a partial provider finds the transactions
// of a key (contract 1.3); false if only whole blocks tell.
func (k TxKey) Source() (s chain.Source, ok bool) {
	switch k.Kind {
	case TxAddress:
		return chain.Source{Kind: chain.SourceAddress, Key: k.Key}, true
	case TxMintsAsset:
		return chain.Source{Kind: chain.SourceAsset, Key: k.Key}, true
	case TxInput:
		return chain.Source{Kind: chain.SourceInput, Key: k.Key}, true
	}
	return chain.Source{}, false
}

type txNode = node[chain.AppliedTx, TxKey]

// Tx says which transactions are wanted (contract 4.3). The zero value wants
// all of them.
type Tx struct{ n txNode }

func (q Tx) node() txNode {
	if q.n == nil {
		return all[chain.AppliedTx, TxKey](nil)
	}
	return q.n
}

// Match tells whether a transaction is wanted.
func (q Tx) Match(t *chain.AppliedTx) bool { return q.n == nil || q.n.match(t) }

// Covered tells whether a block of such a coverage answers the query
// (contract 1.3): address, asset and input by the matching source, all-of by any
// covered arm, any-of by all of them, everything else only if the whole block
// was seen.
func (q Tx) Covered(c chain.Coverage) bool { return c.Complete || q.node().covered(c) }

// Keys returns keys of which every wanted transaction has at least one; see
// UTxO.Keys.
func (q Tx) Keys() (keys []TxKey, exact bool) {
	if q.n == nil {
		return []TxKey{{}}, true
	}
	keys, exact, ok := q.n.keys(nil, func(TxKey) bool { return true })
	if !ok {
		return []TxKey{{}}, false
	}
	return keys, exact
}

// KeysIn is Keys with keys only that have a source of some kinds; false if they
// cannot promise to find every transaction that the query wants.
func (q Tx) KeysIn(kinds Kinds) (keys []TxKey, exact, ok bool) {
	return q.node().keys(nil, func(k TxKey) bool {
		s, ok := k.Source()
		return ok && kinds.Has(s.Kind)
	})
}

// String returns the query's text; ParseTx reads it back.
func (q Tx) String() string { return string(q.node().appendText(nil)) }

// EveryTx wants all transactions.
func EveryTx() Tx { return Tx{} }

func txKey[B ~[]byte | ~string](k TxKeyKind, key B) Tx { return Tx{txLeaf{Kind: k, Key: string(key)}} }

// Involves wants the transactions that made or spent an output at the address.
func Involves(addr []byte) Tx { return txKey(TxAddress, addr) }

// MintsPolicy wants the transactions that minted or burnt under the policy.
func MintsPolicy(p chain.Hash28) Tx { return txKey(TxMintsPolicy, p[:]) }

// MintsAsset wants the transactions that minted or burnt the asset.
func MintsAsset(p chain.Hash28, name []byte) Tx {
	return txKey(TxMintsAsset, string(p[:])+string(name))
}

// Spends wants the transaction that spent the output.
func Spends(r chain.TxIn) Tx { return txKey(TxInput, r.AppendKey(nil)) }

// InvolvesScript wants the transactions that carry the script.
func InvolvesScript(h chain.Hash28) Tx { return txKey(TxScript, h[:]) }

// HasLabel wants the transactions with metadata under the label.
func HasLabel(label uint64) Tx { return txKey(TxLabel, binary.BigEndian.AppendUint64(nil, label)) }

// AnyTx wants what any of the queries wants; none wants nothing.
func AnyTx(queries ...Tx) Tx {
	if len(queries) == 1 {
		return queries[0]
	}
	s := &some[chain.AppliedTx, TxKey]{arms: make([]txNode, len(queries))}
	for i, q := range queries {
		s.arms[i] = q.node()
	}
	speedUpTx(s)
	return Tx{s}
}

// AllTx wants what every one of the queries wants; none wants everything.
func AllTx(queries ...Tx) Tx {
	if len(queries) == 1 {
		return queries[0]
	}
	a := make(all[chain.AppliedTx, TxKey], len(queries))
	for i, q := range queries {
		a[i] = q.node()
	}
	return Tx{a}
}

// NotTx wants what the query does not want.
func NotTx(q Tx) Tx { return Tx{not[chain.AppliedTx, TxKey]{q.node()}} }

func speedUpTx(s *some[chain.AppliedTx, TxKey]) {
	if len(s.arms) < manyArms {
		return
	}
	set := make(map[TxKey]struct{}, len(s.arms))
	for _, n := range s.arms {
		if l, ok := n.(txLeaf); ok && l.Kind != TxAll {
			set[TxKey(l)] = struct{}{}
		} else {
			s.rest = append(s.rest, n)
		}
	}
	s.fast = func(t *chain.AppliedTx) bool {
		var scratch [64]byte
		return !EachTxKey(t, scratch[:], func(k TxKeyKind, key []byte) bool {
			_, ok := set[TxKey{Kind: k, Key: string(key)}]
			return !ok
		})
	}
}

// EachTxKey calls yield with every key of a transaction but TxAll, some of them
// more than once, and returns false if yield did. The key is only valid during
// the call and may lie in scratch; 64 bytes are enough not to allocate.
func EachTxKey(t *chain.AppliedTx, scratch []byte, yield func(k TxKeyKind, key []byte) bool) bool {
	for i := range t.Spent {
		u := t.Spent[i].UTxO
		if !yield(TxAddress, u.Out.Address) || !yield(TxInput, u.Ref.AppendKey(scratch[:0])) {
			return false
		}
	}
	for i := range t.Created {
		if !yield(TxAddress, t.Created[i].UTxO.Out.Address) {
			return false
		}
	}
	if t.Valid { // a transaction that failed mints nothing (contract 1.2)
		for i := range t.Mint {
			m := &t.Mint[i]
			if !yield(TxMintsPolicy, m.Policy[:]) || !yield(TxMintsAsset, append(append(scratch[:0], m.Policy[:]...), m.Name...)) {
				return false
			}
		}
	}
	for i := range t.Scripts {
		if !yield(TxScript, t.Scripts[i][:]) {
			return false
		}
	}
	for _, l := range t.Labels {
		if !yield(TxLabel, binary.BigEndian.AppendUint64(scratch[:0], l)) {
			return false
		}
	}
	return true
}

// txLeaf is a leaf that asks for one key.
type txLeaf TxKey

func (l txLeaf) match(t *chain.AppliedTx) bool {
	if l.Kind == TxAll {
		return true
	}
	var scratch [64]byte
	return !EachTxKey(t, scratch[:], func(k TxKeyKind, key []byte) bool { return k != l.Kind || string(key) != l.Key })
}

func (l txLeaf) covered(c chain.Coverage) bool {
	s, ok := TxKey(l).Source()
	return c.Complete || ok && c.Has(s)
}

func (l txLeaf) keys(dst []TxKey, may func(TxKey) bool) ([]TxKey, bool, bool) {
	if !may(TxKey(l)) {
		return dst, false, false
	}
	return append(dst, TxKey(l)), true, true
}

func (l txLeaf) appendText(dst []byte) []byte {
	switch l.Kind {
	case TxAddress:
		return append(append(dst, "involves:"...), address.Text([]byte(l.Key))...)
	case TxMintsPolicy:
		return append(hex.AppendEncode(append(dst, "mints:"...), []byte(l.Key)), ".*"...)
	case TxMintsAsset:
		return appendAsset(append(dst, "mints:"...), l.Key)
	case TxInput:
		return appendInput(append(dst, "spends:"...), l.Key)
	case TxScript:
		return hex.AppendEncode(append(dst, "script:"...), []byte(l.Key))
	case TxLabel:
		return append(strconv.AppendUint(append(dst, '{'), l.label(), 10), '}')
	}
	return append(dst, '*')
}

func (l txLeaf) label() uint64 { return binary.BigEndian.Uint64([]byte(l.Key)) }

func (l txLeaf) json() any {
	k := []byte(l.Key)
	name, value := "everything", any(true)
	switch l.Kind {
	case TxAddress:
		name, value = "involves", address.Text(k)
	case TxMintsPolicy:
		name, value = "mints_policy", hex.EncodeToString(k)
	case TxMintsAsset:
		name, value = "mints_asset", string(appendAsset(nil, l.Key))
	case TxInput:
		name, value = "spends", chain.TxInFromKey(k).String()
	case TxScript:
		name, value = "script", hex.EncodeToString(k)
	case TxLabel:
		name, value = "label", strconv.FormatUint(l.label(), 10)
	}
	return map[string]any{name: value}
}
