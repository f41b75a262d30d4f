package reject

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/ourotail/ourotail/chain"
)

// ErrMalformed is wrapped for bytes that are no refusal.
var ErrMalformed = errors.New("not a refusal as a node writes it")

// Reason is why a transaction was refused.
type Reason struct {
	// Era is that of the ledger that refused; 0 if it could not be read.
	Era chain.Era
	// WrongEra is set if the transaction is one of another era, which then is
	// TxEra, and the ledger did not look at it.
	WrongEra bool
	TxEra    chain.Era
	Failures []Failure
}

// Failure is one thing that is wrong with a transaction.
type Failure struct {
	Name   string   `json:"name"`             // of the constructor: "BadInputsUTxO", or "UTXO 99"
	Rules  []string `json:"rules,omitempty"`  // that led there, the outermost first: "LEDGER", "UTXOW", "UTXO"
	Detail string   `json:"detail,omitempty"` // what comes with it: references as TXID#INDEX, otherwise CBOR's diagnostic notation
}

// String returns the name and what comes with it.
func (f Failure) String() string {
	if f.Detail == "" {
		return f.Name
	}
	return f.Name + ": " + f.Detail
}

// String returns all failures in one line.
func (r *Reason) String() string {
	if r.WrongEra {
		return fmt.Sprintf("a transaction of %s, while the ledger is in %s", r.TxEra, r.Era)
	}
	var all []string
	for _, f := range r.Failures {
		all = append(all, f.String())
	}
	return strings.Join(all, "; ")
}

// Decode reads the reason of a MsgRejectTx: [[era, failures]], or [transaction's
// era, ledger's era], each as [number, name] (consensus: the hard fork
// combinator's encodeEitherMismatch and encodeNS). Some servers write text. Its
// errors wrap ErrMalformed.
func Decode(raw []byte) (*Reason, error) {
	var text string
	if cbor.Unmarshal(raw, &text) == nil {
		return &Reason{Failures: []Failure{{Name: text}}}, nil
	}
	outer, err := items(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	r := &Reason{}
	switch len(outer) {
	case 1:
		inner, err := items(outer[0])
		if err == nil && len(inner) != 2 {
			err = fmt.Errorf("%d items, want an era and failures", len(inner))
		}
		if err == nil {
			r.Era, err = eraOf(inner[0])
		}
		var list []cbor.RawMessage
		if err == nil {
			list, err = items(inner[1])
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		for _, f := range list {
			r.Failures = append(r.Failures, walk(rulesOf(r.Era), nil, f, 0))
		}
	case 2:
		for i, into := range []*chain.Era{&r.TxEra, &r.Era} {
			pair, err := items(outer[i])
			if err == nil && len(pair) != 2 {
				err = fmt.Errorf("%d items, want an era's number and name", len(pair))
			}
			if err == nil {
				*into, err = eraOf(pair[0])
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
			}
		}
		r.WrongEra = true
	default:
		return nil, fmt.Errorf("%w: %d items", ErrMalformed, len(outer))
	}
	return r, nil
}

// Text returns what Decode reads, in one line, and the bytes in diagnostic
// notation, or in hexadecimal, if it reads nothing.
func Text(raw []byte) string {
	if r, err := Decode(raw); err == nil {
		if s := r.String(); s != "" {
			return s
		}
	}
	return diagnose(raw)
}

func items(raw []byte) (list []cbor.RawMessage, err error) {
	var set cbor.RawTag
	if len(raw) > 0 && raw[0]>>5 == 6 {
		if err := cbor.Unmarshal(raw, &set); err != nil {
			return nil, err
		}
		raw = set.Content
	}
	return list, cbor.Unmarshal(raw, &list)
}

func eraOf(raw []byte) (chain.Era, error) {
	n, ok := number(raw)
	if !ok || n > uint64(chain.Dijkstra-chain.Byron) {
		return 0, fmt.Errorf("%x is no era's number", raw)
	}
	return chain.Byron + chain.Era(n), nil
}

func number(raw []byte) (n uint64, ok bool) {
	return n, len(raw) > 0 && raw[0]>>5 == 0 && cbor.Unmarshal(raw, &n) == nil
}

// deepest bounds how deep rules nest. Real ones go to 6.
const deepest = 16

// walk follows a failure, [number, ...], through the rules to what it says.
func walk(r *rule, path []string, raw []byte, depth int) Failure {
	path = append(slices.Clone(path), r.name)
	parts, err := items(raw)
	if err != nil || len(parts) == 0 {
		return Failure{Name: r.name, Rules: path, Detail: diagnose(raw)}
	}
	n, ok := number(parts[0])
	if !ok || depth > deepest {
		return Failure{Name: r.name, Rules: path, Detail: diagnose(raw)}
	}
	if inner := r.inner[n]; inner != nil && len(parts) == 2 {
		return walk(inner, path, parts[1], depth+1)
	}
	f := Failure{Name: r.failures[n], Rules: path}
	if f.Name == "" {
		f.Name = r.name + " " + strconv.FormatUint(n, 10)
	}
	var details []string
	for _, p := range parts[1:] {
		details = append(details, detail(p))
	}
	f.Detail = strings.Join(details, ", ")
	return f
}

// detail shows what comes with a failure: references in their usual form, text
// as it is, the rest in diagnostic notation.
func detail(raw []byte) string {
	var text string
	if cbor.Unmarshal(raw, &text) == nil {
		return text
	}
	if list, err := items(raw); err == nil && len(list) > 0 {
		var refs []string
		for _, item := range list {
			ref, ok := reference(item)
			if !ok {
				return diagnose(raw)
			}
			refs = append(refs, ref.String())
		}
		return strings.Join(refs, " ")
	}
	return diagnose(raw)
}

func reference(raw []byte) (ref chain.TxIn, ok bool) {
	pair, err := items(raw)
	if err != nil || len(pair) != 2 {
		return ref, false
	}
	var id []byte
	n, ok := number(pair[1])
	if !ok || n > 1<<32-1 || cbor.Unmarshal(pair[0], &id) != nil || len(id) != len(ref.ID) {
		return ref, false
	}
	copy(ref.ID[:], id)
	ref.Index = uint32(n)
	return ref, true
}

func diagnose(raw []byte) string {
	s, err := cbor.Diagnose(raw)
	if err != nil {
		return fmt.Sprintf("%x", raw)
	}
	return s
}
