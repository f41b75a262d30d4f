package query

import (
	"encoding/hex"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// Kinds is a set of chain.SourceKind.
type Kinds uint16

// KindsOf returns the set of the kinds given.
func KindsOf(kinds ...chain.SourceKind) (s Kinds) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has tells whether a kind is in the set.
func (s Kinds) Has(k chain.SourceKind) bool { return s&(1<<k) != 0 }

// EachSource calls yield with the key of every source of the wanted kinds that
// an output belongs to, and returns false if yield did. A policy comes once
// however many of its assets the output holds. The key is only valid during
// the call and may lie in scratch, which needs room for 64 bytes not to
// allocate. SourceAll is not among them.
//
// The keys: the address's bytes; 28 bytes of a credential's hash, whether of a
// key or a script (as Kupo matches); policy; policy and name; transaction id;
// the reference's key form.
func EachSource(u *chain.UTxO, want Kinds, scratch []byte, yield func(k chain.SourceKind, key []byte) bool) bool {
	if want.Has(chain.SourceAddress) && !yield(chain.SourceAddress, u.Out.Address) {
		return false
	}
	if want.Has(chain.SourcePayment) {
		if c, ok := address.Payment(u.Out.Address); ok && !yield(chain.SourcePayment, append(scratch[:0], c.Hash[:]...)) {
			return false
		}
	}
	if want.Has(chain.SourceStake) {
		if c, ok := address.Stake(u.Out.Address); ok && !yield(chain.SourceStake, append(scratch[:0], c.Hash[:]...)) {
			return false
		}
	}
	if want&(1<<chain.SourcePolicy|1<<chain.SourceAsset) != 0 {
		for i := range u.Out.Assets {
			a := &u.Out.Assets[i]
			first := i == 0 || u.Out.Assets[i-1].Policy != a.Policy
			if first && want.Has(chain.SourcePolicy) && !yield(chain.SourcePolicy, a.Policy[:]) {
				return false
			}
			if want.Has(chain.SourceAsset) && !yield(chain.SourceAsset, append(append(scratch[:0], a.Policy[:]...), a.Name...)) {
				return false
			}
		}
	}
	if want.Has(chain.SourceTx) && !yield(chain.SourceTx, u.Ref.ID[:]) {
		return false
	}
	return !want.Has(chain.SourceInput) || yield(chain.SourceInput, u.Ref.AppendKey(scratch[:0]))
}

// MatchSource tells whether an output belongs to a source.
func MatchSource(s chain.Source, u *chain.UTxO) bool {
	if s.Kind == chain.SourceAll {
		return true
	}
	if s.Kind == chain.SourceAddress {
		return string(u.Out.Address) == s.Key
	}
	var scratch [64]byte
	return !EachSource(u, 1<<s.Kind, scratch[:], func(_ chain.SourceKind, key []byte) bool { return string(key) != s.Key })
}

// sourceNode is a leaf that asks for a source.
type sourceNode chain.Source

func (s sourceNode) match(u *chain.UTxO) bool      { return MatchSource(chain.Source(s), u) }
func (s sourceNode) covered(c chain.Coverage) bool { return c.Has(chain.Source(s)) }
func (s sourceNode) keys(dst []chain.Source, may func(chain.Source) bool) ([]chain.Source, bool, bool) {
	if !may(chain.Source(s)) {
		return dst, false, false
	}
	return append(dst, chain.Source(s)), true, true
}

func (s sourceNode) appendText(dst []byte) []byte {
	k := s.Key
	switch s.Kind {
	case chain.SourceAddress:
		return appendAddress(dst, []byte(k))
	case chain.SourcePayment:
		return append(hex.AppendEncode(dst, []byte(k)), "/*"...)
	case chain.SourceStake:
		return hex.AppendEncode(append(dst, "*/"...), []byte(k))
	case chain.SourcePolicy:
		return append(hex.AppendEncode(dst, []byte(k)), ".*"...)
	case chain.SourceAsset:
		return appendAsset(dst, k)
	case chain.SourceTx:
		return hex.AppendEncode(append(dst, "*@"...), []byte(k))
	case chain.SourceInput:
		return appendInput(dst, k)
	}
	return append(dst, '*')
}

func (s sourceNode) json() any {
	k := []byte(s.Key)
	name, value := "everything", any(true)
	switch s.Kind {
	case chain.SourceAddress:
		name, value = "address", address.Text(k)
	case chain.SourcePayment:
		name, value = "payment", hex.EncodeToString(k)
	case chain.SourceStake:
		name, value = "stake", hex.EncodeToString(k)
	case chain.SourcePolicy:
		name, value = "policy", hex.EncodeToString(k)
	case chain.SourceAsset:
		name, value = "asset", string(appendAsset(nil, s.Key))
	case chain.SourceTx:
		name, value = "transaction", hex.EncodeToString(k)
	case chain.SourceInput:
		name, value = "input", chain.TxInFromKey(k).String()
	}
	return map[string]any{name: value}
}

func appendAddress(dst, addr []byte) []byte {
	switch address.KindOf(addr) {
	case address.Unknown, address.Reward:
		// The bare text would be read as something else, or not at all.
		return hex.AppendEncode(append(dst, "address:"...), addr)
	}
	return append(dst, address.Text(addr)...)
}

func appendAsset(dst []byte, key string) []byte {
	dst = append(hex.AppendEncode(dst, []byte(key[:policySize])), '.')
	return hex.AppendEncode(dst, []byte(key[policySize:]))
}

func appendInput(dst []byte, key string) []byte {
	r := chain.TxInFromKey([]byte(key))
	return appendRef(dst, r)
}

const policySize = len(chain.Hash28{})
