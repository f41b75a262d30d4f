package forge

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// ErrTx is wrapped when bytes are no transaction that this ledger can take.
var ErrTx = errors.New("not a transaction that a generated chain can take")

// Submitted is a transaction that somebody else made. It is put into one block
// at most.
type Submitted struct {
	ID  chain.TxID
	Era chain.Era
	Raw []byte // as it came

	inputs, collateral, refs []chain.TxIn
	outs                     []*Output
	ret                      *Output
	fee, donation            uint64
	ttl, from                *uint64
	mint                     []chain.Minted
	labels                   []uint64
	scripts                  []chain.Hash28
	totalColl                uint64
	invalid                  bool
	body, wits, aux          []byte
}

// unsupported are the body fields that this ledger keeps no books for.
var unsupported = map[uint64]string{keyCerts: "certificates", keyWithdrawals: "withdrawals", 6: "updates", keyVotes: "votes", keyProposals: "proposals"}

// ReadTx reads a transaction of an era from Shelley to Conway: [body, witnesses,
// auxiliary data], from Alonzo on with whether its scripts succeed before the
// last. No signature is checked and no script run. Errors wrap ErrTx.
func ReadTx(era chain.Era, raw []byte) (*Submitted, error) {
	bad := func(err error) (*Submitted, error) { return nil, fmt.Errorf("%w: %w", ErrTx, err) }
	if era < chain.Shelley || era > chain.Conway {
		return bad(fmt.Errorf("transactions of %s are not read", era))
	}
	parts, end, err := list(raw, 0)
	if err != nil {
		return bad(err)
	}
	want := 3
	if era >= chain.Alonzo {
		want = 4
	}
	if end != len(raw) || len(parts) != want {
		return bad(fmt.Errorf("%d items and %d bytes after them, want %d items", len(parts), len(raw)-end, want))
	}
	t := &Submitted{Era: era, Raw: slices.Clone(raw), body: parts[0], wits: parts[1]}
	t.ID = blake(t.body)
	aux := parts[want-1]
	if era >= chain.Alonzo {
		switch {
		case len(parts[2]) == 1 && parts[2][0] == wire.False:
			t.invalid = true
		case len(parts[2]) != 1 || parts[2][0] != wire.True:
			return bad(errors.New("the third item is no truth value"))
		}
	}
	if len(aux) != 1 || aux[0] != wire.Null {
		t.aux = aux
		if t.labels, err = labels(aux); err != nil {
			return bad(fmt.Errorf("auxiliary data: %w", err))
		}
	}
	if err := fields(t.body, 0, t.field); err != nil {
		return bad(err)
	}
	if t.scripts, err = witnessScripts(t.wits); err != nil {
		return bad(fmt.Errorf("witnesses: %w", err))
	}
	for i, o := range t.outs {
		o.Ref = chain.TxIn{ID: t.ID, Index: uint32(i)}
	}
	if t.ret != nil {
		t.ret.Ref = chain.TxIn{ID: t.ID, Index: uint32(len(t.outs))}
	}
	if t.invalid && len(t.collateral) == 0 {
		return bad(errors.New("its scripts fail, and it has no collateral"))
	}
	return t, nil
}

// field reads one field of the body.
func (t *Submitted) field(n uint64, value []byte) (err error) {
	amount := func(into *uint64) error {
		*into, _, err = wire.ReadUint(value, 0)
		return err
	}
	slot := func(into **uint64) error {
		*into = new(uint64)
		return amount(*into)
	}
	switch n {
	case keyInputs:
		t.inputs, err = references(value)
	case keyOutputs:
		var outs [][]byte
		if outs, _, err = list(value, 0); err != nil {
			break
		}
		for i, raw := range outs {
			o, err := readOutput(t.Era, raw)
			if err != nil {
				return fmt.Errorf("output %d: %w", i, err)
			}
			t.outs = append(t.outs, o)
		}
	case keyFee:
		err = amount(&t.fee)
	case keyTTL:
		err = slot(&t.ttl)
	case keyFrom:
		err = slot(&t.from)
	case keyMint:
		t.mint, err = minted(value)
	case keyCollateral:
		t.collateral, err = references(value)
	case keyReturn:
		t.ret, err = readOutput(t.Era, value)
	case keyTotal:
		err = amount(&t.totalColl)
	case keyRefInputs:
		t.refs, err = references(value)
	case keyDonation:
		err = amount(&t.donation)
	default:
		if what := unsupported[n]; what != "" {
			return fmt.Errorf("it has %s, for which a generated chain keeps no books", what)
		}
	}
	if err != nil {
		return fmt.Errorf("body field %d: %w", n, err)
	}
	return nil
}

// references reads a set of inputs.
func references(b []byte) (refs []chain.TxIn, err error) {
	items, _, err := list(b, untag(b))
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		pair, _, err := list(item, 0)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, fmt.Errorf("a reference of %d items", len(pair))
		}
		id, _, err := wire.ReadBytes(pair[0], 0)
		if err != nil {
			return nil, err
		}
		n, _, err := wire.ReadUint(pair[1], 0)
		if err != nil {
			return nil, err
		}
		var ref chain.TxIn
		if len(id) != len(ref.ID) || n > math.MaxUint16 {
			return nil, fmt.Errorf("a reference with %d bytes of id and index %d", len(id), n)
		}
		copy(ref.ID[:], id)
		ref.Index = uint32(n)
		if slices.Contains(refs, ref) {
			return nil, fmt.Errorf("%v twice", ref)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// labels finds the metadata labels in auxiliary data of any form.
func labels(aux []byte) (out []uint64, err error) {
	head, err := wire.Read(aux, 0)
	if err != nil {
		return nil, err
	}
	meta := aux
	switch head.Major {
	case wire.MajorArray: // [metadata, scripts]
		parts, _, err := list(aux, 0)
		if err != nil || len(parts) == 0 {
			return nil, fmt.Errorf("an array of %d items: %w", len(parts), errors.Join(err, ErrTx))
		}
		meta = parts[0]
	case wire.MajorTag: // 259({0: metadata, ...})
		meta = nil
		err := fields(aux, head.Next, func(n uint64, value []byte) error {
			if n == 0 {
				meta = value
			}
			return nil
		})
		if err != nil || meta == nil {
			return nil, err
		}
	}
	err = fields(meta, 0, func(n uint64, _ []byte) error {
		out = append(out, n)
		return nil
	})
	slices.Sort(out)
	return out, err
}

// witnessScripts hashes the scripts of a witness set.
func witnessScripts(wits []byte) (out []chain.Hash28, err error) {
	languages := map[uint64]byte{witNative: 0, witPlutusV1: 1, witPlutusV2: 2, 7: 3}
	err = fields(wits, 0, func(n uint64, value []byte) error {
		language, ok := languages[n]
		if !ok {
			return nil
		}
		items, _, err := list(value, untag(value))
		if err != nil {
			return err
		}
		for _, s := range items {
			if language > 0 {
				if s, _, err = wire.ReadBytes(s, 0); err != nil {
					return err
				}
			}
			out = append(out, scriptHash(language, s))
		}
		return nil
	})
	return out, err
}
