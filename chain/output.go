package chain

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// TxIn references an output by the transaction that made it and its index.
type TxIn struct {
	ID    TxID
	Index uint32
}

// String returns "txid#index".
func (r TxIn) String() string { return r.ID.String() + "#" + strconv.FormatUint(uint64(r.Index), 10) }

// ParseTxIn reads the form that String writes.
func ParseTxIn(s string) (TxIn, error) {
	id, ix, ok := strings.Cut(s, "#")
	if !ok {
		return TxIn{}, fmt.Errorf("%q is not an output reference (want TXID#INDEX)", s)
	}
	h, err := ParseHash(id)
	if err != nil {
		return TxIn{}, fmt.Errorf("output reference %q: %w", s, err)
	}
	n, err := strconv.ParseUint(ix, 10, 32)
	if err != nil {
		return TxIn{}, fmt.Errorf("output reference %q: index: %w", s, err)
	}
	return TxIn{ID: h, Index: uint32(n)}, nil
}

// MarshalText implements encoding.TextMarshaler with the form of String.
func (r TxIn) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseTxIn.
func (r *TxIn) UnmarshalText(text []byte) (err error) {
	*r, err = ParseTxIn(string(text))
	return err
}

// Compare orders references by transaction id, then index: the order of the
// ledger's input sets.
func (r TxIn) Compare(o TxIn) int {
	if c := bytes.Compare(r.ID[:], o.ID[:]); c != 0 {
		return c
	}
	return cmp.Compare(r.Index, o.Index)
}

// TxInSize is the length of a reference's key form.
const TxInSize = 36

// AppendKey appends the 36 bytes under which a reference sorts as Compare
// orders it: transaction id, then the index big endian.
func (r TxIn) AppendKey(b []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, r.ID[:]...), r.Index)
}

// TxInFromKey reads what AppendKey wrote; b has at least TxInSize bytes.
func TxInFromKey(b []byte) (r TxIn) {
	copy(r.ID[:], b)
	r.Index = binary.BigEndian.Uint32(b[32:])
	return r
}

// Output is an output in the form the store keeps it: the bytes of the chain
// and what is needed to place and decode them. Raw belongs to whoever made the
// Output; see there how long it lives.
type Output struct {
	Ref      TxIn
	Height   Height // of the block that made it; OriginHeight for genesis outputs
	Slot     Slot   // of that block
	TxIndex  uint32 // of the transaction within that block
	Era      Era    // whose decoding rules apply to Raw
	Lovelace uint64
	Raw      []byte // the output's CBOR as it stands in its transaction

	// InBatch is set by resolve on both sides when an output is made and
	// spent by blocks that are committed together.
	InBatch bool
}

// Asset is a quantity of one native asset.
type Asset struct {
	Policy   Hash28
	Name     []byte // 0 to 32 bytes
	Quantity uint64 // never 0
}

// Script is a script as an output or a witness carries it.
type Script struct {
	Language uint8  // 0 native, 1.. Plutus V1..
	Bytes    []byte // native: its CBOR; Plutus: the content of the byte string
}

// Hash returns the blake2b-224 of the language byte followed by the script
// (ledger: hashScript).
func (s Script) Hash() (out Hash28) {
	h, err := blake2b.New(len(out), nil)
	if err != nil {
		panic(err) // the size is a constant that blake2b supports
	}
	h.Write([]byte{s.Language})
	h.Write(s.Bytes)
	h.Sum(out[:0])
	return out
}

// DatumKind tells how an output carries its datum.
type DatumKind uint8

// The kinds of datum.
const (
	NoDatum DatumKind = iota
	HashedDatum
	InlineDatum
)

// TxOut is a decoded output. Its slices alias the bytes it was decoded from
// and are read-only.
type TxOut struct {
	Address   []byte
	Lovelace  uint64
	Assets    []Asset // sorted by policy and name, no repeats, no zero quantities
	DatumKind DatumKind
	DatumHash Hash    // of a HashedDatum; for an inline one see DatumID
	Datum     []byte  // the CBOR inside tag 24 of an InlineDatum
	Script    *Script // reference script, or nil
	Raw       []byte  // the output's own CBOR
}

// DatumID returns the hash of the output's datum, hashed here when it is
// inline; false if it has none.
func (o *TxOut) DatumID() (Hash, bool) {
	switch o.DatumKind {
	case HashedDatum:
		return o.DatumHash, true
	case InlineDatum:
		return blake2b.Sum256(o.Datum), true
	}
	return Hash{}, false
}

// UTxO is an output with its reference and the block that made it: origin for
// genesis outputs, and where a provider does not know.
type UTxO struct {
	Ref     TxIn
	Out     TxOut
	At      At
	TxIndex uint32 // of the transaction that made it, within its block; 0 for genesis outputs
}
