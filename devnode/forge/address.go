package forge

import (
	"hash/crc32"

	"crypto/sha3"
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Kinds of Shelley address by the upper half of their first byte (CIP-19).
const (
	addrBaseKK     = 0x0
	addrBaseSK     = 0x1
	addrBaseKS     = 0x2
	addrBaseSS     = 0x3
	addrPointerK   = 0x4
	addrPointerS   = 0x5
	addrEnterprise = 0x6
	addrEntScript  = 0x7
	addrRewardK    = 0xe
	addrRewardS    = 0xf
)

// scriptAddress tells whether an address is locked by a script.
func scriptAddress(addr []byte) bool {
	return addr[0] != byronAddressByte && addr[0]>>4&1 == 1 && addr[0]>>4 < addrRewardK
}

// address makes a Shelley address of the kind from fresh or given credentials.
func (g *rnd) address(kind byte, network byte) []byte {
	b := append(make([]byte, 0, 57), kind<<4|network)
	b = append(b, g.bytes(28)...)
	switch kind {
	case addrBaseKK, addrBaseSK, addrBaseKS, addrBaseSS:
		b = append(b, g.bytes(28)...)
	case addrPointerK, addrPointerS:
		b = appendVarint(b, uint64(g.IntN(1<<26)))
		b = appendVarint(b, uint64(g.IntN(300)))
		b = appendVarint(b, uint64(g.IntN(10)))
	}
	return b
}

// appendVarint appends a number of a pointer: seven bits a byte, the most
// significant first, all but the last with the top bit set (CIP-19).
func appendVarint(b []byte, n uint64) []byte {
	var rev []byte
	for {
		rev = append(rev, byte(n&127))
		if n >>= 7; n == 0 {
			break
		}
	}
	for i := len(rev) - 1; i >= 0; i-- {
		v := rev[i]
		if i > 0 {
			v |= 128
		}
		b = append(b, v)
	}
	return b
}

// Types of Byron address (byron.cddl).
const (
	byronPubKey = 0
	byronRedeem = 2
)

// byronAddress makes a Byron address from its root. Off mainnet the attributes
// hold the network magic; path, if not nil, is an encrypted derivation path.
func byronAddress(root chain.Hash28, kind uint64, magic *uint32, path []byte) []byte {
	n := 0
	if magic != nil {
		n++
	}
	if path != nil {
		n++
	}
	p := wire.Array(nil, 3)
	p = wire.Bytes(p, root[:])
	p = wire.Map(p, n)
	if path != nil {
		p = wire.Bytes(wire.Uint(p, 1), wire.Bytes(nil, path))
	}
	if magic != nil {
		p = wire.Bytes(wire.Uint(p, 2), wire.Uint(nil, uint64(*magic)))
	}
	p = wire.Uint(p, kind)
	b := wire.Array(nil, 2)
	b = wire.Embedded(b, p)
	return wire.Uint(b, uint64(crc32.ChecksumIEEE(p)))
}

// redeemAddress is the address of an AVVM voucher's key: its root is the
// blake2b-224 of the SHA3-256 of [type, [type, key], attributes] (cardano-ledger
// Byron: makeRedeemAddress, addressHash).
func redeemAddress(key [32]byte, magic uint32) []byte {
	b := wire.Array(nil, 3)
	b = wire.Uint(b, byronRedeem)
	b = wire.Array(b, 2)
	b = wire.Uint(b, byronRedeem)
	b = wire.Bytes(b, key[:])
	b = wire.Map(b, 1)
	b = wire.Bytes(wire.Uint(b, 2), wire.Uint(nil, uint64(magic)))
	inner := sha3.Sum256(b)
	return byronAddress(hash28(inner[:]), byronRedeem, &magic, nil)
}

func hash28(b []byte) (out chain.Hash28) {
	h, err := blake2b.New(len(out), nil)
	if err != nil {
		panic(err) // the size is a constant that blake2b supports
	}
	h.Write(b)
	h.Sum(out[:0])
	return out
}
