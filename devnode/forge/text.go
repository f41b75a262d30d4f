package forge

import (
	"math/big"
	"slices"
)

// appendAddress appends an address as people write it: Byron ones in base58,
// others in bech32 (CIP-19), whatever their length.
func appendAddress(b, addr []byte) []byte {
	if len(addr) > 0 && addr[0] == byronAddressByte {
		return appendBase58(b, addr)
	}
	hrp := "addr_test"
	if len(addr) > 0 && addr[0]&15 == 1 {
		hrp = "addr"
	}
	return appendBech32(b, hrp, addr)
}

// byronAddressByte begins every Byron address: an array of two.
const byronAddressByte = 0x82

const bech32Digits = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// bech32Table is, for each value of the five bits shifted out of the checksum,
// what BIP-173's generator makes of them.
var bech32Table = func() (t [32]uint32) {
	for top := range t {
		for i, g := range [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				t[top] ^= g
			}
		}
	}
	return t
}()

// appendBech32 encodes data as BIP-173 says, without its limit of 90
// characters, as Cardano does.
func appendBech32(b []byte, hrp string, data []byte) []byte {
	check := uint32(1)
	step := func(v byte) {
		check = (check&0x1ffffff)<<5 ^ uint32(v) ^ bech32Table[check>>25]
	}
	for i := range len(hrp) {
		step(hrp[i] >> 5)
	}
	step(0)
	for i := range len(hrp) {
		step(hrp[i] & 31)
	}
	b = append(b, hrp...)
	b = append(b, '1')
	put := func(v byte) {
		step(v)
		b = append(b, bech32Digits[v])
	}
	acc, n := uint32(0), 0
	for _, c := range data {
		acc, n = acc<<8|uint32(c), n+8
		for n >= 5 {
			n -= 5
			put(byte(acc>>n) & 31)
		}
	}
	if n > 0 {
		put(byte(acc<<(5-n)) & 31)
	}
	for range 6 {
		step(0)
	}
	check ^= 1
	for i := range 6 {
		b = append(b, bech32Digits[check>>(5*(5-i))&31])
	}
	return b
}

const base58Digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// appendBase58 encodes data with the alphabet that Byron addresses use.
func appendBase58(b, data []byte) []byte {
	n, base, digit := new(big.Int).SetBytes(data), big.NewInt(58), new(big.Int)
	var rev []byte
	for n.Sign() > 0 {
		n.DivMod(n, base, digit)
		rev = append(rev, base58Digits[digit.Int64()])
	}
	for _, c := range data {
		if c != 0 {
			break
		}
		rev = append(rev, base58Digits[0])
	}
	slices.Reverse(rev)
	return append(b, rev...)
}
