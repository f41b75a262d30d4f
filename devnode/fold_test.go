package devnode_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/big"
	"slices"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
)

// fold is a naive follower over package ledger: a map of outputs, canonical
// text, no undo.
type fold struct {
	block   ledger.Block
	g       *ledger.Genesis
	set     map[chain.TxIn]chain.Output
	allegra bool
	all     hash.Hash
	effects string
	nums    [5]uint64 // transactions, created, spent, lovelace created, lovelace spent
}

func newFold(g *ledger.Genesis) *fold {
	f := &fold{g: g, set: map[chain.TxIn]chain.Output{}, all: sha256.New()}
	f.block.ByronEpochSlots = g.ByronEpochSlots
	for _, o := range g.Outputs {
		f.set[o.Ref] = o
	}
	return f
}

func content(o chain.Output) chain.TxOut {
	out, err := ledger.DecodeOutput(o.Era, o.Raw)
	if err != nil {
		panic(fmt.Sprintf("%v: %v", o.Ref, err))
	}
	return out
}

func (f *fold) apply(raw []byte) error {
	if err := f.block.Walk(slices.Clone(raw)); err != nil {
		return err
	}
	var text []byte
	f.nums = [5]uint64{}
	spend := func(ref chain.TxIn, by chain.TxID) error {
		o, ok := f.set[ref]
		if !ok {
			return fmt.Errorf("%v: %v spends %v, which is not there", f.block.At(), by, ref)
		}
		delete(f.set, ref)
		out := content(o)
		text = append(canon.AppendSpent(text, ref, &out, by), '\n')
		f.nums[2]++
		f.nums[4] += out.Lovelace
		return nil
	}
	if f.block.Era >= chain.Allegra && !f.allegra {
		f.allegra = true
		for _, o := range f.g.Outputs[:f.g.AVVM] {
			if _, ok := f.set[o.Ref]; ok {
				if err := spend(o.Ref, chain.TxID{}); err != nil {
					return err
				}
			}
		}
	}
	var e chain.Effects
	f.block.Effects(&e)
	for i, tx := range e.Txs {
		spent, created := e.Tx(i)
		for _, s := range spent {
			if err := spend(s.Ref, tx.ID); err != nil {
				return err
			}
		}
		for _, c := range created {
			c.Raw = slices.Clone(c.Raw)
			f.set[c.Ref] = c
			out := content(c)
			text = append(canon.AppendCreated(text, c.Ref, &out), '\n')
			f.nums[1]++
			f.nums[3] += out.Lovelace
		}
	}
	f.nums[0] = uint64(len(e.Txs))
	f.effects = string(text)
	f.all.Write(text)
	return nil
}

// lines are the sorted lines of the set.
func (f *fold) lines() []string {
	var out []string
	for ref, o := range f.set {
		c := content(o)
		out = append(out, string(canon.AppendUTxO(nil, ref, &c)))
	}
	slices.Sort(out)
	return out
}

// line is the BLOCK line of the last block, with everything computed afresh.
func (f *fold) line() string {
	acc, mod := new(big.Int), new(big.Int).Lsh(big.NewInt(1), 128)
	var lovelace uint64
	for ref, o := range f.set {
		c := content(o)
		d := sha256.Sum256(canon.AppendUTxO(nil, ref, &c))
		acc.Add(acc, new(big.Int).SetBytes(d[:16]))
		lovelace += c.Lovelace
	}
	acc.Mod(acc, mod)
	own := sha256.Sum256([]byte(f.effects))
	return strings.Join([]string{
		fmt.Sprintf("%d %d %v %v", f.block.Height, f.block.Point.Slot, f.block.Point.Hash, f.block.Era),
		fmt.Sprintf("%d %d %d %d %d", f.nums[0], f.nums[1], f.nums[2], f.nums[3], f.nums[4]),
		fmt.Sprintf("%d %d %032x", len(f.set), lovelace, acc),
		fmt.Sprintf("%016x %016x", binary.BigEndian.Uint64(own[:]), binary.BigEndian.Uint64(f.all.Sum(nil))),
	}, " ")
}
