package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ourotail/ourotail/chain"
)

// reader takes values apart. The first thing that does not fit sets bad; from
// then on everything reads as zero, so that callers check once at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

// below reads a number that must be less than limit.
func (r *reader) below(limit uint64) uint64 {
	n := r.uvarint()
	if n >= limit {
		r.fail()
		return 0
	}
	return n
}

// count reads the length of a list whose elements take at least size bytes, so
// that a wrong one cannot ask for more memory than the value could fill.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) hash() (h chain.Hash) {
	copy(h[:], r.bytes(len(h)))
	return h
}

func (r *reader) ref() (in chain.TxIn) {
	if b := r.bytes(chain.TxInSize); b != nil {
		in = chain.TxInFromKey(b)
	}
	return in
}

func (r *reader) bool() bool {
	b := r.byte()
	if b > 1 {
		r.fail()
	}
	return b == 1
}

// height reads a height stored one higher, so that origin is 0.
func (r *reader) height() chain.Height { return chain.Height(r.below(1<<62)) - 1 }

// end reports whether the value held exactly what was read.
func (r *reader) end(what string) error {
	if r.bad || len(r.b) != 0 {
		return fmt.Errorf("%w: %s does not decode", ErrDamaged, what)
	}
	return nil
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendHeight(b []byte, h chain.Height) []byte { return binary.AppendUvarint(b, uint64(h+1)) }

// output: height, slot, transaction index, era, lovelace, then the output's own
// bytes to the end. The lovelace repeats what the bytes say so that counting a
// spend does not need a decoder.
func appendOutput(b []byte, o *chain.Output) []byte {
	b = appendHeight(b, o.Height)
	b = binary.AppendUvarint(b, uint64(o.Slot))
	b = binary.AppendUvarint(b, uint64(o.TxIndex))
	b = append(b, byte(o.Era))
	b = binary.AppendUvarint(b, o.Lovelace)
	return append(b, o.Raw...)
}

// outputHeadMax bounds what appendOutput writes before the output's own bytes.
const outputHeadMax = 10 + 10 + 5 + 1 + 10

// decodeOutput fills in everything but Ref and InBatch; Raw aliases b.
func decodeOutput(b []byte, o *chain.Output) error {
	r := reader{b: b}
	o.Height = r.height()
	o.Slot = chain.Slot(r.uvarint())
	o.TxIndex = uint32(r.below(1 << 32))
	o.Era = chain.Era(r.byte())
	o.Lovelace = r.uvarint()
	o.Raw = r.bytes(len(r.b))
	return r.end("an output")
}

// Spender is who spent an output and where.
type Spender struct {
	Height  chain.Height
	TxIndex uint32 // within its block
	Input   uint32 // its place among what the transaction spent, by reference
	Tx      chain.TxID
}

func appendSpender(b []byte, m Spender) []byte {
	b = appendHeight(b, m.Height)
	b = binary.AppendUvarint(b, uint64(m.TxIndex))
	b = binary.AppendUvarint(b, uint64(m.Input))
	return append(b, m.Tx[:]...)
}

const spenderMax = 10 + 5 + 5 + 32

func (r *reader) spender() (m Spender) {
	m.Height = r.height()
	m.TxIndex = uint32(r.below(1 << 32))
	m.Input = uint32(r.below(1 << 32))
	m.Tx = r.hash()
	return m
}

func decodeSpender(b []byte) (Spender, error) {
	r := reader{b: b}
	m := r.spender()
	return m, r.end("a mark")
}

// an archived output is its spender followed by the output.
func decodeGone(b []byte, o *chain.Output) (Spender, error) {
	r := reader{b: b}
	m := r.spender()
	if r.bad {
		return m, r.end("a spent output")
	}
	return m, decodeOutput(r.b, o)
}

// link: height, slot, hash, parent, era, boundary. The zero link stands for
// origin and must have OriginHeight.
func appendLink(b []byte, l chain.Link) []byte {
	b = appendHeight(b, l.Height)
	b = binary.AppendUvarint(b, uint64(l.Point.Slot))
	b = append(b, l.Point.Hash[:]...)
	b = append(b, l.Parent[:]...)
	b = append(b, byte(l.Era))
	return appendBool(b, l.Boundary)
}

const linkMax = 10 + 10 + 32 + 32 + 2

func (r *reader) link() (l chain.Link) {
	l.Height = r.height()
	l.Point.Slot = chain.Slot(r.uvarint())
	l.Point.Hash = r.hash()
	l.Parent = r.hash()
	l.Era = chain.Era(r.byte())
	l.Boundary = r.bool()
	return l
}

func decodeLink(b []byte) (chain.Link, error) {
	r := reader{b: b}
	l := r.link()
	return l, r.end("a link")
}

func addUint64(a, b uint64) (uint64, bool) { return a + b, a <= math.MaxUint64-b }
