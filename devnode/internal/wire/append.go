package wire

import "encoding/binary"

// Major types of RFC 8949 section 3.1.
const (
	MajorUint   = 0
	MajorNegInt = 1
	MajorBytes  = 2
	MajorText   = 3
	MajorArray  = 4
	MajorMap    = 5
	MajorTag    = 6
	MajorSimple = 7
)

// Single bytes that stand for whole items or open and close indefinite ones.
const (
	Null       = 0xf6
	True       = 0xf5
	False      = 0xf4
	IndefBytes = 0x5f
	IndefText  = 0x7f
	IndefArray = 0x9f
	IndefMap   = 0xbf
	Break      = 0xff
)

// Head appends a head of the major type with argument n in its shortest form.
func Head(b []byte, major byte, n uint64) []byte {
	m := major << 5
	switch {
	case n < 24:
		return append(b, m|byte(n))
	case n < 1<<8:
		return append(b, m|24, byte(n))
	case n < 1<<16:
		return append(b, m|25, byte(n>>8), byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, m|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, m|27), n)
}

// WideHead appends a head with its argument in eight bytes, however small it
// is: legal, but not the shortest form.
func WideHead(b []byte, major byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, major<<5|27), n)
}

// Uint appends an unsigned integer.
func Uint(b []byte, n uint64) []byte { return Head(b, MajorUint, n) }

// Int appends an integer of either sign.
func Int(b []byte, n int64) []byte {
	if n < 0 {
		return Head(b, MajorNegInt, uint64(-(n + 1)))
	}
	return Head(b, MajorUint, uint64(n))
}

// Bytes appends a byte string.
func Bytes(b, s []byte) []byte { return append(Head(b, MajorBytes, uint64(len(s))), s...) }

// ChunkedBytes appends a byte string as an indefinite sequence of pieces of at
// most size bytes.
func ChunkedBytes(b, s []byte, size int) []byte {
	b = append(b, IndefBytes)
	for len(s) > 0 {
		n := min(size, len(s))
		b, s = Bytes(b, s[:n]), s[n:]
	}
	return append(b, Break)
}

// Text appends a text string.
func Text(b []byte, s string) []byte { return append(Head(b, MajorText, uint64(len(s))), s...) }

// Array opens an array of n items.
func Array(b []byte, n int) []byte { return Head(b, MajorArray, uint64(n)) }

// Map opens a map of n pairs.
func Map(b []byte, n int) []byte { return Head(b, MajorMap, uint64(n)) }

// Tag appends a tag; the tagged item follows.
func Tag(b []byte, n uint64) []byte { return Head(b, MajorTag, n) }

// Embedded appends s as "CBOR in a byte string", tag 24 (RFC 8949 section 3.4.5.1).
func Embedded(b, s []byte) []byte { return Bytes(Tag(b, 24), s) }
