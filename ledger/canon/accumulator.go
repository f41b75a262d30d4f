package canon

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/ourotail/ourotail/chain"
)

// Accumulator is the digest of a set of unspent outputs: the sum modulo 2^128
// of the first 16 bytes, big endian, of the SHA-256 of each output's line (see
// AppendUTxO). It needs no order, and what is removed is subtracted. The zero
// Accumulator is of the empty set.
type Accumulator struct{ hi, lo uint64 }

// Add adds an output's line.
func (a *Accumulator) Add(line []byte) {
	hi, lo := term(line)
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi, _ = bits.Add64(a.hi, hi, carry)
}

// Remove subtracts an output's line.
func (a *Accumulator) Remove(line []byte) {
	hi, lo := term(line)
	var borrow uint64
	a.lo, borrow = bits.Sub64(a.lo, lo, 0)
	a.hi, _ = bits.Sub64(a.hi, hi, borrow)
}

// Merge adds all that another accumulator has added.
func (a *Accumulator) Merge(o Accumulator) {
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, o.lo, 0)
	a.hi, _ = bits.Add64(a.hi, o.hi, carry)
}

// String returns 32 hexadecimal digits.
func (a Accumulator) String() string { return fmt.Sprintf("%016x%016x", a.hi, a.lo) }

func term(line []byte) (hi, lo uint64) {
	sum := sha256.Sum256(line)
	return binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])
}

// Digest adds up a set of unspent outputs: how many, how much, and their
// accumulator.
type Digest struct {
	Count    uint64
	Lovelace uint64
	Sum      Accumulator

	line []byte
}

// Add adds an output.
func (d *Digest) Add(ref chain.TxIn, o *chain.TxOut) {
	d.line = AppendUTxO(d.line[:0], ref, o)
	d.Sum.Add(d.line)
	d.Count++
	d.Lovelace += o.Lovelace
}

// Remove takes an output away again.
func (d *Digest) Remove(ref chain.TxIn, o *chain.TxOut) {
	d.line = AppendUTxO(d.line[:0], ref, o)
	d.Sum.Remove(d.line)
	d.Count--
	d.Lovelace -= o.Lovelace
}
