package forge

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// What a generated chain's ledger asks of a transaction. The genesis files and
// the protocol parameters say the same.
const (
	FeePerByte    = 44
	FeeFixed      = 155_381
	MaxTxSize     = 16_384
	MaxBlockBody  = 90_112
	MaxHeaderSize = 1100
)

// RefusalKind is what is wrong with a transaction, named as cardano-ledger does.
type RefusalKind uint8

// The kinds.
const (
	MempoolFailure RefusalKind = iota // said in words
	BadInputsUTxO
	OutsideValidityInterval
	MaxTxSizeUTxO
	InputSetEmpty
	FeeTooSmall
	ValueNotConserved
	WrongEra
)

// Refusal is why a transaction cannot stand in the next block.
type Refusal struct {
	Kind       RefusalKind
	Text       string       // of a MempoolFailure
	Refs       []chain.TxIn // BadInputsUTxO
	From, TTL  *uint64      // OutsideValidityInterval
	Slot       uint64
	Want, Have uint64    // MaxTxSizeUTxO, FeeTooSmall
	In, Out    []byte    // ValueNotConserved: what goes in and what comes out, as CBOR
	TxEra, Era chain.Era // WrongEra
}

// Error implements error.
func (r *Refusal) Error() string {
	switch r.Kind {
	case BadInputsUTxO:
		return fmt.Sprintf("not unspent: %v", r.Refs)
	case OutsideValidityInterval:
		return fmt.Sprintf("not valid at slot %d", r.Slot)
	case MaxTxSizeUTxO:
		return fmt.Sprintf("%d bytes, at most %d are allowed", r.Have, r.Want)
	case InputSetEmpty:
		return "it has no inputs"
	case FeeTooSmall:
		return fmt.Sprintf("a fee of %d, at least %d is asked", r.Have, r.Want)
	case ValueNotConserved:
		return fmt.Sprintf("%x goes in, %x comes out", r.In, r.Out)
	case WrongEra:
		return fmt.Sprintf("a transaction of %s in %s", r.TxEra, r.Era)
	}
	return r.Text
}

// allSpent is what a node says about a transaction that it, most likely, has
// seen before (cardano-ledger Conway: MEMPOOL).
const allSpent = "All inputs are spent. Transaction has probably already been included"

// Check tells whether a transaction can stand in the block behind the head, or
// in the mempool behind others that can: in a slot, with the outputs unspent at
// the head or made by those. Nil means that it can. No signature is checked and
// no script run.
func (f *Forge) Check(t *Submitted, slot chain.Slot, before []*Submitted) *Refusal {
	in := t.inputs
	if t.invalid {
		in = t.collateral
	}
	at := f.unspent(slices.Concat(t.inputs, t.collateral, t.refs))
	for _, b := range before {
		b.step(at)
	}
	era := f.Era()
	return t.check(era, uint64(slot), in, at)
}

// Era returns the era of the ledger at the head.
func (f *Forge) Era() chain.Era {
	if f.head == f.oracle.root {
		return f.opts.Eras[0].Era
	}
	return f.head.Era
}

// unspent finds outputs at the head.
func (f *Forge) unspent(refs []chain.TxIn) map[chain.TxIn]*Output {
	at, err := f.oracle.Outputs(f.head.Point.Hash, refs)
	if err != nil {
		panic(err) // the head is a block of the tree, and never forgotten
	}
	return at
}

// step does to a set what the transaction does.
func (t *Submitted) step(at map[chain.TxIn]*Output) {
	spent, made := t.inputs, t.outs
	if t.invalid {
		spent, made = t.collateral, nil
		if t.ret != nil {
			made = []*Output{t.ret}
		}
	}
	for _, r := range spent {
		delete(at, r)
	}
	for _, o := range made {
		at[o.Ref] = o
	}
}

func (t *Submitted) check(era chain.Era, slot uint64, in []chain.TxIn, at map[chain.TxIn]*Output) *Refusal {
	var missing []chain.TxIn
	for _, r := range slices.Concat(t.inputs, t.collateral, t.refs) {
		if at[r] == nil && !slices.Contains(missing, r) {
			missing = append(missing, r)
		}
	}
	slices.SortFunc(missing, chain.TxIn.Compare)
	gone := func(r chain.TxIn) bool { return at[r] == nil }
	size, least := uint64(len(t.Raw)), uint64(0)
	if t.Era >= chain.Alonzo {
		size-- // the truth value does not count (cardano-ledger Alonzo: toCBORForSizeComputation)
	}
	least = FeePerByte*size + FeeFixed
	switch {
	case t.Era != era:
		return &Refusal{Kind: WrongEra, TxEra: t.Era, Era: era}
	case len(t.inputs) == 0:
		return &Refusal{Kind: InputSetEmpty}
	case era >= chain.Conway && !slices.ContainsFunc(t.inputs, func(r chain.TxIn) bool { return !gone(r) }):
		return &Refusal{Kind: MempoolFailure, Text: allSpent}
	case len(missing) > 0:
		return &Refusal{Kind: BadInputsUTxO, Refs: missing}
	case t.ttl != nil && slot >= *t.ttl || t.from != nil && slot < *t.from:
		return &Refusal{Kind: OutsideValidityInterval, From: t.from, TTL: t.ttl, Slot: slot}
	case size > MaxTxSize:
		return &Refusal{Kind: MaxTxSizeUTxO, Want: MaxTxSize, Have: size}
	case t.fee < least:
		return &Refusal{Kind: FeeTooSmall, Want: least, Have: t.fee}
	case t.invalid:
		return t.checkCollateral(in, at)
	}
	sum := books{}
	for _, r := range in {
		sum.add(1, at[r].Lovelace, at[r].Assets)
	}
	for _, m := range t.mint {
		sum.change(assetKey{m.Policy, string(m.Name)}, big.NewInt(m.Quantity))
	}
	left := sum.clone()
	left.add(-1, t.fee, nil)
	left.add(-1, t.donation, nil)
	for _, o := range t.outs {
		left.add(-1, o.Lovelace, o.Assets)
	}
	if left.balanced() {
		return nil
	}
	out := sum.clone()
	for k, v := range left {
		out.change(k, new(big.Int).Neg(v))
	}
	return &Refusal{Kind: ValueNotConserved, In: sum.value(), Out: out.value()}
}

// checkCollateral is for a transaction whose scripts fail: what its collateral
// holds and does not return is the fee.
func (t *Submitted) checkCollateral(in []chain.TxIn, at map[chain.TxIn]*Output) *Refusal {
	sum := books{}
	for _, r := range in {
		if at[r].script {
			return &Refusal{Kind: MempoolFailure, Text: "collateral locked by a script"}
		}
		sum.add(1, at[r].Lovelace, at[r].Assets)
	}
	if t.ret != nil {
		sum.add(-1, t.ret.Lovelace, t.ret.Assets)
	}
	left := sum[assetKey{}]
	delete(sum, assetKey{})
	if !sum.balanced() || left == nil || left.Sign() < 0 || !left.IsUint64() || t.totalColl > 0 && left.Uint64() != t.totalColl {
		return &Refusal{Kind: MempoolFailure, Text: "collateral that is not balanced"}
	}
	return nil
}

// books add up assets; lovelace has the empty key.
type books map[assetKey]*big.Int

func (b books) change(k assetKey, n *big.Int) {
	if b[k] == nil {
		b[k] = new(big.Int)
	}
	b[k].Add(b[k], n)
}

func (b books) add(sign int64, coin uint64, assets []chain.Asset) {
	put := func(k assetKey, n uint64) {
		v := new(big.Int).SetUint64(n)
		b.change(k, v.Mul(v, big.NewInt(sign)))
	}
	put(assetKey{}, coin)
	for _, a := range assets {
		put(assetKey{a.Policy, string(a.Name)}, a.Quantity)
	}
}

func (b books) clone() books {
	out := books{}
	for k, v := range b {
		out[k] = new(big.Int).Set(v)
	}
	return out
}

func (b books) balanced() bool {
	for _, v := range b {
		if v.Sign() != 0 {
			return false
		}
	}
	return true
}

// value is the sum as the ledger writes a value; what no value can hold is left
// out.
func (b books) value() []byte {
	var coin uint64
	var assets []chain.Asset
	for k, v := range b {
		switch {
		case !v.IsUint64():
		case k == assetKey{}:
			coin = v.Uint64()
		default:
			assets = append(assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: v.Uint64()})
		}
	}
	return ledgerValue(nil, coin, normalise(assets))
}
