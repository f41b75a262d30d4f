package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	gledger "github.com/blinklabs-io/gouroboros/ledger"
	fx "github.com/fxamacker/cbor/v2"
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/ledger"
)

// blocks reads the first Limit blocks of a chain, or all the real blocks of a
// folder of hex files that gouroboros decodes too.
func (j job) blocks() (list [][]byte, err error) {
	if j.Data == "" {
		return realBlocks()
	}
	db, err := immutable.Open(j.Data, immutable.Options{})
	if err != nil {
		return nil, err
	}
	cur := db.Cursor()
	defer cur.Close()
	n := db.Len()
	if j.Limit > 0 {
		n = min(n, j.Limit)
	}
	for i := range n {
		raw, err := cur.Block(i)
		if err != nil {
			return nil, err
		}
		list = append(list, append([]byte(nil), raw...))
	}
	return list, nil
}

func realBlocks() (list [][]byte, err error) {
	dir, err := sharedDir("blocks")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.hex"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		if decodeGouroboros(raw) == nil && decodeLazy(raw) == nil {
			list = append(list, raw)
		}
	}
	return list, nil
}

// leastCPU is how long a walk is measured.
const leastCPU = 700 * time.Millisecond

// each walks the blocks again and again.
func (j job) each(walk func(raw []byte) error) (r result, err error) {
	blocks, err := j.blocks()
	if err != nil {
		return r, err
	}
	for _, raw := range blocks[:min(100, len(blocks))] { // scratch memory grows once
		if err := walk(raw); err != nil {
			return r, err
		}
	}
	size := 0
	before, began := mallocs(), cpu()
	for pass := 0; pass == 0 || cpu()-began < leastCPU; pass++ {
		for _, raw := range blocks {
			if err := walk(raw); err != nil {
				return r, err
			}
			size += len(raw)
		}
		r.Units += len(blocks)
	}
	r.Part = int64(cpu() - began)
	r.Allocs, r.counted = float64(mallocs()-before), true
	r.More = []figure{{"block", float64(size) / float64(r.Units), "bytes"}}
	return r, nil
}

func walkOurs(j job) (result, error) {
	var b ledger.Block
	var e chain.Effects
	return j.each(func(raw []byte) error {
		if err := b.Walk(raw); err != nil {
			return err
		}
		b.Effects(&e)
		return nil
	})
}

func walkGouroboros(j job) (result, error) { return j.each(decodeGouroboros) }

// decodeGouroboros has that library say what every transaction consumes and
// produces. A block in storage form is [era tag, block], with a tag below 24.
func decodeGouroboros(raw []byte) error {
	if len(raw) < 3 || raw[0] != 0x82 || raw[1] > 0x17 {
		return fmt.Errorf("no block in storage form")
	}
	b, err := gledger.NewBlockFromCbor(uint(raw[1]), raw[2:])
	if err != nil {
		return err
	}
	for _, tx := range b.Transactions() {
		_ = tx.Hash()
		_, _ = tx.Consumed(), tx.Produced()
	}
	return nil
}

func walkLazy(j job) (result, error) { return j.each(decodeLazy) }

// decodeLazy takes a block apart with fxamacker/cbor and RawMessage, as little as
// will do: hashes of header and bodies, inputs, outputs as bytes.
func decodeLazy(raw []byte) error {
	var outer struct {
		_     struct{} `cbor:",toarray"`
		Era   uint
		Block fx.RawMessage
	}
	if err := fx.Unmarshal(raw, &outer); err != nil {
		return err
	}
	var parts []fx.RawMessage
	if err := fx.Unmarshal(outer.Block, &parts); err != nil {
		return err
	}
	_ = blake2b.Sum256(parts[0])
	if outer.Era < 2 { // Byron: [header, body, extra], a body begins with its transactions
		return lazyByron(outer.Era, parts[1])
	}
	var bodies []fx.RawMessage
	if err := fx.Unmarshal(parts[1], &bodies); err != nil {
		return err
	}
	for _, b := range bodies {
		_ = blake2b.Sum256(b)
		var fields map[uint64]fx.RawMessage
		if err := fx.Unmarshal(b, &fields); err != nil {
			return err
		}
		for _, key := range []uint64{0, 13} { // inputs, collateral
			if err := lazyInputs(fields[key]); err != nil {
				return err
			}
		}
		var outs []fx.RawMessage
		if err := fx.Unmarshal(fields[1], &outs); err != nil {
			return err
		}
	}
	return nil
}

func lazyInputs(b fx.RawMessage) error {
	if len(b) == 0 {
		return nil
	}
	if len(b) > 3 && b[0] == 0xd9 { // tag 258, a set
		b = b[3:]
	}
	var inputs []struct {
		_  struct{} `cbor:",toarray"`
		ID []byte
		Ix uint32
	}
	return fx.Unmarshal(b, &inputs)
}

func lazyByron(era uint, body fx.RawMessage) error {
	if era == 0 {
		return nil
	}
	var parts []fx.RawMessage
	if err := fx.Unmarshal(body, &parts); err != nil {
		return err
	}
	var txs []struct {
		_         struct{} `cbor:",toarray"`
		Body      fx.RawMessage
		Witnesses fx.RawMessage
	}
	if err := fx.Unmarshal(parts[0], &txs); err != nil {
		return err
	}
	for _, tx := range txs {
		_ = blake2b.Sum256(tx.Body)
		var parts []fx.RawMessage
		if err := fx.Unmarshal(tx.Body, &parts); err != nil {
			return err
		}
	}
	return nil
}
