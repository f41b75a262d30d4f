package forge

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Outputs returns those of the references that are unspent after the block with
// that header hash; the zero hash is origin.
func (o *Oracle) Outputs(h chain.Hash, refs []chain.TxIn) (map[chain.TxIn]*Output, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.moveLocked(h); err != nil {
		return nil, err
	}
	out := make(map[chain.TxIn]*Output, len(refs))
	for _, r := range refs {
		if found, ok := o.set[r]; ok {
			out[r] = found
		}
	}
	return out, nil
}

// LedgerCBOR returns the output as a ledger in an era since Shelley writes it
// in the answer to a query: not its own bytes, but what that ledger knows of
// it. Addresses made before Babbage lose trailing bytes, values are normalised,
// an array unless there is an inline datum or a script (cardano-ledger
// Address.hs, Babbage/TxOut.hs). It returns an error that wraps ErrForgotten for
// an output of a lean forge whose datum or script is no longer known.
func (o *Output) LedgerCBOR(era chain.Era) ([]byte, error) {
	datum, script, err := o.extras()
	if err != nil {
		return nil, err
	}
	asMap := datum != nil || script != nil
	if era < chain.Babbage && asMap || era < chain.Alonzo && o.DatumKind != chain.NoDatum || era < chain.Mary && len(o.Assets) > 0 {
		return nil, fmt.Errorf("output %v holds what the %v ledger has no form for", o.Ref, era)
	}
	address := o.Address
	if o.Era != chain.Byron && o.Era < chain.Babbage {
		address = crop(address)
	}
	if !asMap {
		n := 2
		if o.DatumKind == chain.HashedDatum {
			n++
		}
		b := wire.Bytes(wire.Array(nil, n), address)
		b = ledgerValue(b, o.Lovelace, o.Assets)
		if o.DatumKind == chain.HashedDatum {
			b = wire.Bytes(b, o.DatumHash[:])
		}
		return b, nil
	}
	n := 2
	if o.DatumKind != chain.NoDatum {
		n++
	}
	if script != nil {
		n++
	}
	b := wire.Bytes(wire.Uint(wire.Map(nil, n), 0), address)
	b = ledgerValue(wire.Uint(b, 1), o.Lovelace, o.Assets)
	switch o.DatumKind {
	case chain.HashedDatum:
		b = wire.Uint(wire.Array(wire.Uint(b, 2), 2), 0)
		b = wire.Bytes(b, o.DatumHash[:])
	case chain.InlineDatum:
		b = wire.Uint(wire.Array(wire.Uint(b, 2), 2), 1)
		b = wire.Embedded(b, datum)
	}
	if script != nil {
		b = wire.Embedded(wire.Uint(b, 3), script)
	}
	return b, nil
}

// extras finds the inline datum and the script in the output's own bytes; nil
// for what it has not.
func (o *Output) extras() (datum, script []byte, err error) {
	if o.DatumKind != chain.InlineDatum && !o.HasScript {
		return nil, nil, nil
	}
	if o.Raw == nil {
		return nil, nil, fmt.Errorf("output %v: %w", o.Ref, ErrForgotten)
	}
	err = pairs(o.Raw, 0, func(key, value []byte) error {
		n, _, err := wire.ReadUint(key, 0)
		switch {
		case err != nil:
		case n == 2 && o.DatumKind == chain.InlineDatum:
			var parts [][]byte
			if parts, _, err = list(value, 0); err == nil && len(parts) == 2 {
				datum, err = embedded(parts[1], 0)
			}
		case n == 3:
			script, err = embedded(value, 0)
		}
		return err
	})
	return datum, script, err
}

// embedded reads CBOR in a byte string.
func embedded(b []byte, off int) ([]byte, error) {
	tag, err := wire.Read(b, off)
	if err != nil {
		return nil, err
	}
	s, _, err := wire.ReadBytes(b, tag.Next)
	return s, err
}

// crop drops what follows an address: a header byte, 28 bytes of payment
// credential, and by its kind 28 bytes or three numbers of seven bits a byte
// (CIP-19).
func crop(a []byte) []byte {
	n := len(a)
	switch a[0] >> 4 {
	case addrBaseKK, addrBaseSK, addrBaseKS, addrBaseSS:
		n = 57
	case addrEnterprise, addrEntScript:
		n = 29
	case addrPointerK, addrPointerS:
		n = 29
		for numbers := 0; numbers < 3 && n < len(a); n++ {
			if a[n] < 0x80 {
				numbers++
			}
		}
	}
	return a[:min(n, len(a))]
}

// ledgerMap opens a map as the ledger writes them since Shelley: of definite
// length up to 23 pairs (cardano-ledger-binary, encodeMap).
func ledgerMap(b []byte, n int) []byte {
	if n > 23 {
		return append(b, wire.IndefMap)
	}
	return wire.Map(b, n)
}

func endLedgerMap(b []byte, n int) []byte {
	if n > 23 {
		return append(b, wire.Break)
	}
	return b
}

// ledgerValue appends a coin, or [coin, assets].
func ledgerValue(b []byte, coin uint64, assets []chain.Asset) []byte {
	if len(assets) == 0 {
		return wire.Uint(b, coin)
	}
	b = wire.Uint(wire.Array(b, 2), coin)
	policies := 0
	for i := range assets {
		if i == 0 || assets[i].Policy != assets[i-1].Policy {
			policies++
		}
	}
	b = ledgerMap(b, policies)
	for i := 0; i < len(assets); {
		j := i
		for j < len(assets) && assets[j].Policy == assets[i].Policy {
			j++
		}
		b = ledgerMap(wire.Bytes(b, assets[i].Policy[:]), j-i)
		for _, a := range assets[i:j] {
			b = wire.Uint(wire.Bytes(b, a.Name), a.Quantity)
		}
		b = endLedgerMap(b, j-i)
		i = j
	}
	return endLedgerMap(b, policies)
}
