package record

import (
	"encoding/hex"
	"strconv"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// Envelope is one line of a stream, in the shape that oura made customary.
type Envelope struct {
	Event  string `json:"event"`           // apply, undo, idle, or seed for what existed where the stream begins
	Point  *Point `json:"point,omitempty"` // of the block; of undo the last valid point; absent for origin
	Height int64  `json:"height"`          // of the point; of undo: discard every record with a greater height; -1 for origin
	Time   string `json:"time,omitempty"`  // when the point's slot began, RFC 3339, UTC; absent where no calendar tells, and where no Stamp was used
	Record *UTxO  `json:"record,omitempty"`
	Cursor string `json:"cursor,omitempty"` // resumes behind this line; absent inside a seed, and where no Stamp was used
	Final  *bool  `json:"final,omitempty"`  // no fork can undo the block any more; absent on undo, and where no Stamp was used
}

// Point is a slot with a header hash.
type Point struct {
	Slot uint64 `json:"slot"`
	Hash string `json:"hash"`
}

// UTxO is the record of an output that was created or spent.
type UTxO struct {
	ID          string   `json:"id"`
	Kind        string   `json:"kind"` // created or spent
	Height      int64    `json:"height"`
	Tx          string   `json:"tx,omitempty"`
	TxValid     bool     `json:"tx_valid"`
	Output      Match    `json:"output"`
	SpentBy     *SpentBy `json:"spent_by,omitempty"`
	LastOfTx    bool     `json:"last_of_tx"`
	LastOfBlock bool     `json:"last_of_block"`
}

// SpentBy names the transaction that spent an output.
type SpentBy struct {
	Tx         string `json:"tx"`
	InputIndex uint32 `json:"input_index"` // among the transaction's spends, sorted
}

// Match is an output in the shape of Kupo's matches; amounts are strings.
type Match struct {
	TransactionIndex uint32  `json:"transaction_index"`
	TransactionID    string  `json:"transaction_id"`
	OutputIndex      uint32  `json:"output_index"`
	Address          string  `json:"address"`
	Value            Value   `json:"value"`
	DatumHash        *string `json:"datum_hash"`
	DatumType        string  `json:"datum_type,omitempty"` // inline or hash
	ScriptHash       *string `json:"script_hash"`
	CreatedAt        *At     `json:"created_at"` // null for genesis outputs
	SpentAt          *Spent  `json:"spent_at"`   // null while unspent
}

// Value is an amount of lovelace with assets by "policy.name", or "policy" for
// the empty name.
type Value struct {
	Coins  string            `json:"coins"`
	Assets map[string]string `json:"assets"`
}

// At is a point in Kupo's words.
type At struct {
	SlotNo     uint64 `json:"slot_no"`
	HeaderHash string `json:"header_hash"`
}

// Spent is where an output was spent, in Kupo's words.
type Spent struct {
	At
	TransactionID string `json:"transaction_id"`
	InputIndex    uint32 `json:"input_index"`
}

// Of returns the envelope of an event.
func Of(e *chain.UTxOEvent) Envelope {
	env := Envelope{Point: pointOf(e.At.Point), Height: int64(e.At.Height)}
	switch e.Kind {
	case chain.RolledBack:
		env.Event = "undo"
		return env
	case chain.Idle:
		env.Event = "idle"
		return env
	}
	env.Event = "apply"
	if e.Because == chain.Seed {
		env.Event = "seed"
	}
	r := &UTxO{ID: e.ID(), Kind: e.Kind.String(), Height: int64(e.At.Height), TxValid: e.TxValid, Output: MatchOf(e.UTxO),
		LastOfTx: e.LastOfTx, LastOfBlock: e.LastOfBlock}
	if e.Because == chain.Live {
		r.Tx = e.Tx.String()
	} else {
		r.TxValid = true // what is in the set was made by the ledger's rules, whichever way
	}
	if e.Kind == chain.Spent {
		r.SpentBy = &SpentBy{Tx: r.Tx, InputIndex: e.Index}
		r.Output.SpentAt = &Spent{At: *atOf(e.At.Point), TransactionID: r.Tx, InputIndex: e.Index}
	}
	env.Record = r
	return env
}

// MatchOf returns the output in Kupo's shape, unspent.
func MatchOf(u *chain.UTxO) Match {
	m := Match{
		TransactionIndex: u.TxIndex,
		TransactionID:    u.Ref.ID.String(),
		OutputIndex:      u.Ref.Index,
		Address:          address.Text(u.Out.Address),
		Value:            Value{Coins: strconv.FormatUint(u.Out.Lovelace, 10), Assets: make(map[string]string, len(u.Out.Assets))},
		CreatedAt:        atOf(u.At.Point),
	}
	for _, a := range u.Out.Assets {
		m.Value.Assets[AssetName(a.Policy, a.Name)] = strconv.FormatUint(a.Quantity, 10)
	}
	if id, ok := u.Out.DatumID(); ok {
		text := id.String()
		m.DatumHash, m.DatumType = &text, "hash"
		if u.Out.DatumKind == chain.InlineDatum {
			m.DatumType = "inline"
		}
	}
	if u.Out.Script != nil {
		text := u.Out.Script.Hash().String()
		m.ScriptHash = &text
	}
	return m
}

// AssetName returns "policy.name" in hexadecimal, or "policy" for the empty name.
func AssetName(policy chain.Hash28, name []byte) string {
	if len(name) == 0 {
		return policy.String()
	}
	return policy.String() + "." + hex.EncodeToString(name)
}

func pointOf(p chain.Point) *Point {
	if p.IsOrigin() {
		return nil
	}
	return &Point{Slot: uint64(p.Slot), Hash: p.Hash.String()}
}

func atOf(p chain.Point) *At {
	if p.IsOrigin() {
		return nil
	}
	return &At{SlotNo: uint64(p.Slot), HeaderHash: p.Hash.String()}
}
