package canon

import (
	"encoding/hex"
	"strconv"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// AppendContent appends the five fields of an output: address, lovelace,
// assets ("policy.name=quantity" joined by commas), datum ("h:" a hash, "i:"
// the hash of an inline datum), script ("s:" a script hash); "-" stands for
// what there is not.
func AppendContent(b []byte, o *chain.TxOut) []byte {
	b = append(b, address.Text(o.Address)...)
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
	b = append(b, ' ')
	if id, ok := o.DatumID(); ok {
		kind := "h:"
		if o.DatumKind == chain.InlineDatum {
			kind = "i:"
		}
		b = append(b, kind...)
		b = hex.AppendEncode(b, id[:])
	} else {
		b = append(b, '-')
	}
	b = append(b, ' ')
	if o.Script != nil {
		h := o.Script.Hash()
		b = append(b, "s:"...)
		return hex.AppendEncode(b, h[:])
	}
	return append(b, '-')
}

// AppendRef appends "txid#ix".
func AppendRef(b []byte, ref chain.TxIn) []byte {
	b = hex.AppendEncode(b, ref.ID[:])
	b = append(b, '#')
	return strconv.AppendUint(b, uint64(ref.Index), 10)
}

// AppendUTxO appends the line of an unspent output: "txid#ix CONTENT".
func AppendUTxO(b []byte, ref chain.TxIn, o *chain.TxOut) []byte {
	b = append(AppendRef(b, ref), ' ')
	return AppendContent(b, o)
}

// AppendCreated appends the effect line of a creation: "+ txid#ix CONTENT".
func AppendCreated(b []byte, ref chain.TxIn, o *chain.TxOut) []byte {
	return AppendUTxO(append(b, "+ "...), ref, o)
}

// AppendSpent appends the effect line of a spend: "- txid#ix CONTENT by txid".
func AppendSpent(b []byte, ref chain.TxIn, o *chain.TxOut, by chain.TxID) []byte {
	b = AppendUTxO(append(b, "- "...), ref, o)
	b = append(b, " by "...)
	return hex.AppendEncode(b, by[:])
}

// AppendRolledBack appends the line of a rollback, which names the point that
// was kept: "! slot.hash".
func AppendRolledBack(b []byte, kept chain.Point) []byte {
	return append(append(b, "! "...), kept.String()...)
}
