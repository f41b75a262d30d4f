package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// TestStampedGolden: what tail prints has the fields of TestGolden, and three more.
func TestStampedGolden(t *testing.T) {
	at := func(slot uint64, h chain.Height) chain.At {
		return chain.At{Point: chain.Point{Slot: chain.Slot(slot), Hash: chain.Hash{byte(h)}}, Height: h}
	}
	base, old, young := at(90, 9), at(100, 10), at(200, 11)
	u := &chain.UTxO{Ref: chain.TxIn{ID: chain.Hash{1}}, At: base, Out: chain.TxOut{Address: append([]byte{0x60}, bytes.Repeat([]byte{7}, 28)...)}}
	events := []chain.UTxOEvent{
		{Kind: chain.Created, Because: chain.Seed, UTxO: u, At: chain.Origin, Base: &base, NoCursor: true},
		{Kind: chain.Created, Because: chain.Seed, UTxO: u, At: base, Base: &base, Mark: &base},
		{Kind: chain.Created, UTxO: u, At: old, Tx: chain.Hash{1}, TxValid: true, Place: 3, Base: &base},
		{Kind: chain.Idle, At: young, LastOfBlock: true, Base: &base},
		{Kind: chain.RolledBack, At: old, Mark: &young, Base: &base},
	}
	s := Stamp{Magic: 42, K: 10, Highest: func() chain.Height { return 20 }, Time: func(slot chain.Slot) (time.Time, error) {
		if slot == 200 { // beyond every calendar
			return time.Time{}, errors.New("not known")
		}
		return time.Unix(int64(slot), 0).In(time.FixedZone("", 3600)), nil
	}}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for i := range events {
		if err := enc.Encode(s.Of(&events[i])); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join("testdata", "stamped.jsonl")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.Bytes(), want)
	}
	dec := json.NewDecoder(&out)
	for i := range events {
		var env Envelope
		if err := dec.Decode(&env); err != nil {
			t.Fatal(err)
		}
		c, ok := events[i].Cursor()
		token, err := chain.ParseToken(env.Cursor)
		if ok != (err == nil) || ok && (token.Magic != 42 || token.Cursor != c) {
			t.Errorf("line %d: cursor %q of %v: %v", i, env.Cursor, c, err)
		}
		if e := &events[i]; e.Kind == chain.RolledBack != (env.Final == nil) || env.Final != nil && *env.Final != (e.At.Height <= 10) {
			t.Errorf("line %d: final %v at height %d of 20, k is 10", i, env.Final, e.At.Height)
		}
	}
}
