package immutabledb

import (
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// errHeader says that bytes which the index calls a header are none.
var errHeader = errors.New("where the index says a header is, there is none")

// header is what links a block to the one below.
type header struct {
	hash   chain.Hash
	parent chain.Hash // zero if it names none
	slot   chain.Slot // of a block since Shelley; Byron counts by epoch
	byron  bool
}

// maxByronTag is the greater of the two era tags of Byron blocks, 0 for
// boundary blocks and 1 for main ones.
const maxByronTag = 1

// readHeader reads the header of a block in storage form, [era tag, block],
// that lies where an entry says. Byron: [magic, parent, ...]; since Shelley:
// [[number, slot, parent or null, ...], signature] (the ledger's CDDL files).
// The memory of scratch is used again.
func readHeader(raw []byte, offset, size int, scratch *[]byte) (h header, err error) {
	if len(raw) < 2 || raw[0] != 0x82 || offset+size > len(raw) {
		return h, errHeader
	}
	b := raw[offset : offset+size]
	ok := true
	next := func(major byte) (arg uint64) {
		var m byte
		if m, arg, b = head(b); m != major {
			ok = false
		}
		return arg
	}
	if tag := raw[1]; tag <= maxByronTag {
		// Byron hashes a header inside the pair that tells its kind (cardano-ledger
		// Byron: headerHashAnnotated, wrapHeaderBytes).
		*scratch = append(append((*scratch)[:0], 0x82, tag), b...)
		h.hash = blake2b.Sum256(*scratch)
		h.byron = true
		next(4)
		next(0)
	} else {
		h.hash = blake2b.Sum256(b)
		next(4)
		next(4)
		next(0)
		h.slot = chain.Slot(next(0))
	}
	if !h.byron && len(b) > 0 && b[0] == 0xf6 { // null: there is nothing below
		if !ok {
			return h, errHeader
		}
		return h, nil
	}
	if n := next(2); !ok || n != uint64(len(h.parent)) || len(b) < len(h.parent) {
		return h, errHeader
	}
	copy(h.parent[:], b)
	return h, nil
}

// head takes the head of a CBOR item (RFC 8949 section 3) off the front of b;
// major is 0xff if there is none that is definite.
func head(b []byte) (major byte, arg uint64, rest []byte) {
	if len(b) == 0 {
		return 0xff, 0, nil
	}
	major, low := b[0]>>5, b[0]&31
	if low < 24 {
		return major, uint64(low), b[1:]
	}
	n := 1 << (low - 24)
	if low > 27 || len(b) < 1+n {
		return 0xff, 0, nil
	}
	var buf [8]byte
	copy(buf[8-n:], b[1:1+n])
	return major, binary.BigEndian.Uint64(buf[:]), b[1+n:]
}
