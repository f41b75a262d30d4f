package forge

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// readOutput reads an output of either form.
func readOutput(era chain.Era, raw []byte) (*Output, error) {
	o := &Output{Raw: slices.Clone(raw), ordered: true}
	head, err := wire.Read(raw, 0)
	if err != nil {
		return nil, err
	}
	if head.Major == wire.MajorMap {
		err = fields(raw, 0, o.field)
	} else {
		var parts [][]byte
		if parts, _, err = list(raw, 0); err != nil {
			return nil, err
		}
		if len(parts) < 2 || len(parts) > 3 {
			return nil, fmt.Errorf("an output of %d items", len(parts))
		}
		for i, p := range parts {
			if i == 2 {
				p = append([]byte{0x82, 0}, p...) // as the map form has it
			}
			if err = o.field(uint64(i), p); err != nil {
				break
			}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(o.Address) == 0:
		return nil, errors.New("an output without an address")
	case head.Major == wire.MajorMap && era < chain.Babbage || o.DatumKind != chain.NoDatum && era < chain.Alonzo || len(o.Assets) > 0 && era < chain.Mary:
		return nil, fmt.Errorf("an output that %s has no form for", era)
	case o.Address[0] == byronAddressByte && !wellFormedByron(o.Address):
		return nil, fmt.Errorf("byron address %x", o.Address)
	case o.Address[0] != byronAddressByte && (len(o.Address) < 29 || o.Address[0]>>4 >= 8 || len(crop(o.Address)) != len(o.Address)):
		return nil, fmt.Errorf("address %x", o.Address)
	}
	o.script = scriptAddress(o.Address)
	return o, nil
}

// wellFormedByron tells whether the bytes are [#6.24(payload), CRC-32].
func wellFormedByron(b []byte) bool {
	parts, end, err := list(b, 0)
	if err != nil || end != len(b) || len(parts) != 2 {
		return false
	}
	payload, err := embedded(parts[0], 0)
	sum, _, err2 := wire.ReadUint(parts[1], 0)
	if err != nil || err2 != nil || sum != uint64(crc32.ChecksumIEEE(payload)) {
		return false
	}
	inner, end, err := list(payload, 0)
	return err == nil && end == len(payload) && len(inner) == 3
}

// field reads a field of an output in map form.
func (o *Output) field(n uint64, value []byte) (err error) {
	switch n {
	case 0:
		o.Address, _, err = wire.ReadBytes(value, 0)
		o.Address = slices.Clone(o.Address)
	case 1:
		o.Lovelace, o.Assets, err = readValue(value)
	case 2:
		var parts [][]byte
		if parts, _, err = list(value, 0); err != nil {
			return err
		}
		if len(parts) != 2 || len(parts[0]) != 1 || parts[0][0] > 1 {
			return errors.New("a datum that is none")
		}
		if parts[0][0] == 1 {
			var datum []byte
			datum, err = embedded(parts[1], 0)
			o.DatumKind, o.DatumHash = chain.InlineDatum, blake(datum)
			return err
		}
		var h []byte
		if h, _, err = wire.ReadBytes(parts[1], 0); err == nil && len(h) != len(o.DatumHash) {
			err = fmt.Errorf("a datum hash of %d bytes", len(h))
		}
		o.DatumKind = chain.HashedDatum
		copy(o.DatumHash[:], h)
	case 3:
		var script []byte
		if script, err = embedded(value, 0); err != nil {
			return err
		}
		var parts [][]byte
		if parts, _, err = list(script, 0); err != nil {
			return err
		}
		if len(parts) != 2 || len(parts[0]) != 1 || parts[0][0] > 3 {
			return errors.New("a script that is none")
		}
		content := parts[1]
		if parts[0][0] > 0 {
			content, _, err = wire.ReadBytes(parts[1], 0)
		}
		o.HasScript, o.Script = true, scriptHash(parts[0][0], content)
	default:
		err = fmt.Errorf("an output with a field %d", n)
	}
	return err
}

// readValue reads a coin, or [coin, assets].
func readValue(b []byte) (coin uint64, assets []chain.Asset, err error) {
	head, err := wire.Read(b, 0)
	if err != nil || head.Major == wire.MajorUint {
		return head.Arg, nil, err
	}
	parts, _, err := list(b, 0)
	if err != nil {
		return 0, nil, err
	}
	if len(parts) != 2 {
		return 0, nil, fmt.Errorf("a value of %d items", len(parts))
	}
	if coin, _, err = wire.ReadUint(parts[0], 0); err != nil {
		return 0, nil, err
	}
	err = eachAsset(parts[1], func(policy chain.Hash28, name, q []byte) error {
		n, _, err := wire.ReadUint(q, 0)
		if err == nil && n == 0 {
			err = errors.New("a quantity of 0")
		}
		assets = append(assets, chain.Asset{Policy: policy, Name: name, Quantity: n})
		return err
	})
	return coin, normalise(assets), err
}

// minted reads the field of minted and burnt assets.
func minted(b []byte) (out []chain.Minted, err error) {
	err = eachAsset(b, func(policy chain.Hash28, name, q []byte) error {
		t, err := wire.Read(q, 0)
		if err != nil {
			return err
		}
		n := int64(t.Arg)
		switch {
		case t.Major > wire.MajorNegInt || t.Arg > math.MaxInt64-1 || t.Arg == 0 && t.Major == wire.MajorUint:
			return errors.New("a quantity that is none")
		case t.Major == wire.MajorNegInt:
			n = -1 - n
		}
		out = append(out, chain.Minted{Policy: policy, Name: name, Quantity: n})
		return nil
	})
	slices.SortFunc(out, func(a, b chain.Minted) int {
		return compareAssets(chain.Asset{Policy: a.Policy, Name: a.Name}, chain.Asset{Policy: b.Policy, Name: b.Name})
	})
	return out, err
}

// eachAsset goes over {policy => {name => quantity}}.
func eachAsset(b []byte, f func(policy chain.Hash28, name, quantity []byte) error) error {
	seen, policies := map[assetKey]bool{}, map[chain.Hash28]bool{}
	return pairs(b, 0, func(key, value []byte) error {
		id, _, err := wire.ReadBytes(key, 0)
		if err != nil {
			return err
		}
		var policy chain.Hash28
		if len(id) != len(policy) {
			return fmt.Errorf("a policy of %d bytes", len(id))
		}
		copy(policy[:], id)
		if policies[policy] {
			return errors.New("a policy twice")
		}
		policies[policy] = true
		count := 0
		err = pairs(value, 0, func(key, value []byte) error {
			count++
			name, _, err := wire.ReadBytes(key, 0)
			if err == nil && len(name) > 32 {
				err = fmt.Errorf("an asset name of %d bytes", len(name))
			}
			if err == nil && seen[assetKey{policy, string(name)}] {
				err = errors.New("an asset twice")
			}
			if err != nil {
				return err
			}
			seen[assetKey{policy, string(name)}] = true
			return f(policy, slices.Clone(name), value)
		})
		if err == nil && count == 0 {
			err = errors.New("a policy without assets")
		}
		return err
	})
}
