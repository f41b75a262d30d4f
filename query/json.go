package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// ErrJSON is wrapped by the errors of reading a query's JSON form, which name
// the place as a path.
var ErrJSON = errors.New("not the JSON form of a query")

// The JSON form is an object with one member: {"any": [..]}, {"all": [..]},
// {"not": ..} join queries, the others are leaves. Output queries:
// everything, shelley, datum (each true), address, payment, stake, policy, asset
// (POLICY.NAME), transaction, input (TXID#INDEX), inputs (a list), datum_hash,
// min_lovelace (a string or a number). Transaction queries: everything (true),
// involves, mints_policy, mints_asset, spends, script, label. Hashes are
// hexadecimal.

// MarshalJSON implements json.Marshaler.
func (q UTxO) MarshalJSON() ([]byte, error) { return json.Marshal(everythingOr(q.n, q.node())) }

// UnmarshalJSON implements json.Unmarshaler. Errors wrap ErrJSON.
func (q *UTxO) UnmarshalJSON(b []byte) error {
	r := jsonReader[UTxO]{leaf: utxoJSON, some: AnyOf, all: AllOf, not: Not}
	v, err := r.read(b, "$", 0)
	if err == nil {
		*q = v
	}
	return err
}

// MarshalJSON implements json.Marshaler.
func (q Tx) MarshalJSON() ([]byte, error) { return json.Marshal(everythingOr(q.n, q.node())) }

// UnmarshalJSON implements json.Unmarshaler. Errors wrap ErrJSON.
func (q *Tx) UnmarshalJSON(b []byte) error {
	r := jsonReader[Tx]{leaf: txJSON, some: AnyTx, all: AllTx, not: NotTx}
	v, err := r.read(b, "$", 0)
	if err == nil {
		*q = v
	}
	return err
}

// MarshalText and UnmarshalText make a block query its text in JSON.
func (q Block) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseBlock.
func (q *Block) UnmarshalText(b []byte) (err error) {
	*q, err = ParseBlock(string(b))
	return err
}

func everythingOr[T, K any](zero, n node[T, K]) any {
	if zero == nil {
		return map[string]any{"everything": true}
	}
	return n.json()
}

// jsonReader reads the JSON form of queries of one kind.
type jsonReader[Q any] struct {
	leaf func(name string, value json.RawMessage) (Q, bool, error)
	some func(...Q) Q
	all  func(...Q) Q
	not  func(Q) Q
}

func (r *jsonReader[Q]) read(b []byte, path string, depth int) (q Q, err error) {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: at %s: %w", ErrJSON, path, fmt.Errorf(format, args...))
	}
	if depth > maxNesting {
		return q, fail("nested deeper than %d", maxNesting)
	}
	name, value, err := member(b)
	if err != nil {
		return q, fail("%w", err)
	}
	path += "." + name
	switch name {
	case "not":
		q, err = r.read(value, path, depth+1)
		if err != nil {
			return q, err
		}
		return r.not(q), nil
	case "any", "all":
		var arms []json.RawMessage
		if err := json.Unmarshal(value, &arms); err != nil {
			return q, fail("want a list of queries: %w", err)
		}
		qs := make([]Q, len(arms))
		for i, a := range arms {
			if qs[i], err = r.read(a, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return q, err
			}
		}
		if name == "any" {
			return r.some(qs...), nil
		}
		return r.all(qs...), nil
	}
	q, ok, err := r.leaf(name, value)
	switch {
	case err != nil:
		return q, fail("%w", err)
	case !ok:
		return q, fail("no query is called %q", name)
	}
	return q, nil
}

// member reads an object with exactly one member.
func member(b []byte) (name string, value json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", nil, errors.New("want an object with one member")
	}
	t, err := d.Token()
	if err != nil {
		return "", nil, err
	}
	name, ok := t.(string)
	if !ok {
		return "", nil, errors.New("want an object with one member")
	}
	if err := d.Decode(&value); err != nil {
		return "", nil, err
	}
	if t, err := d.Token(); err != nil || t != json.Delim('}') {
		return "", nil, errors.New("want an object with one member")
	}
	if _, err := d.Token(); err != io.EOF {
		return "", nil, errors.New("something follows")
	}
	return name, value, nil
}

// yes reads true.
func yes(value json.RawMessage) error {
	if string(value) != "true" {
		return errors.New("want true")
	}
	return nil
}

// text reads a string and what is in it.
func text[T any](value json.RawMessage, parse func(string) (T, error)) (v T, err error) {
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return v, err
	}
	return parse(s)
}

func number(value json.RawMessage) (uint64, error) {
	if len(value) > 0 && value[0] == '"' {
		return text(value, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	}
	return strconv.ParseUint(string(value), 10, 64)
}

// anyAddress reads an address's text, which may be empty.
func anyAddress(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	return address.Parse(s)
}

type assetID struct {
	policy chain.Hash28
	name   []byte
}

func parseAssetID(s string) (a assetID, err error) {
	var whole bool
	fail := func(_ token, _ error, format string, args ...any) error { return fmt.Errorf(format, args...) }
	a.policy, a.name, whole, err = parseAsset(fail, token{text: s, end: len(s)})
	if err == nil && whole {
		err = errors.New("want POLICY.NAME")
	}
	return a, err
}

// made turns what was read into a query.
func made[T, Q any](v T, err error, make func(T) Q) (q Q, ok bool, _ error) {
	if err != nil {
		return q, true, err
	}
	return make(v), true, nil
}

func utxoJSON(name string, v json.RawMessage) (UTxO, bool, error) {
	switch name {
	case "everything":
		return Everything(), true, yes(v)
	case "shelley":
		return Shelley(), true, yes(v)
	case "datum":
		return HasDatum(), true, yes(v)
	case "address":
		x, err := text(v, anyAddress)
		return made(x, err, Address)
	case "payment":
		x, err := text(v, chain.ParseHash28)
		return made(x, err, Payment)
	case "stake":
		x, err := text(v, chain.ParseHash28)
		return made(x, err, Stake)
	case "policy":
		x, err := text(v, chain.ParseHash28)
		return made(x, err, Policy)
	case "asset":
		x, err := text(v, parseAssetID)
		return made(x, err, func(a assetID) UTxO { return Asset(a.policy, a.name) })
	case "transaction":
		x, err := text(v, chain.ParseHash)
		return made(x, err, OutputsOf)
	case "input":
		x, err := text(v, chain.ParseTxIn)
		return made(x, err, func(r chain.TxIn) UTxO { return Inputs(r) })
	case "inputs":
		var refs []chain.TxIn
		err := json.Unmarshal(v, &refs)
		return made(refs, err, func(refs []chain.TxIn) UTxO { return Inputs(refs...) })
	case "datum_hash":
		x, err := text(v, chain.ParseHash)
		return made(x, err, DatumHash)
	case "min_lovelace":
		x, err := number(v)
		return made(x, err, MinLovelace)
	}
	return UTxO{}, false, nil
}

func txJSON(name string, v json.RawMessage) (Tx, bool, error) {
	switch name {
	case "everything":
		return EveryTx(), true, yes(v)
	case "involves":
		x, err := text(v, anyAddress)
		return made(x, err, Involves)
	case "mints_policy":
		x, err := text(v, chain.ParseHash28)
		return made(x, err, MintsPolicy)
	case "mints_asset":
		x, err := text(v, parseAssetID)
		return made(x, err, func(a assetID) Tx { return MintsAsset(a.policy, a.name) })
	case "spends":
		x, err := text(v, chain.ParseTxIn)
		return made(x, err, Spends)
	case "script":
		x, err := text(v, chain.ParseHash28)
		return made(x, err, InvolvesScript)
	case "label":
		x, err := number(v)
		return made(x, err, HasLabel)
	}
	return Tx{}, false, nil
}
