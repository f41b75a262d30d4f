package address

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/btcsuite/btcd/btcutil/base58"
	"github.com/btcsuite/btcd/btcutil/bech32"
)

// ErrText is wrapped by every error of Parse.
var ErrText = errors.New("not an address")

const mainnetID = 1

// maxBase58 is the length in bytes up to which a Byron address is written in
// base58, which takes time quadratic in it. No chain holds a longer one: a
// Byron transaction has at most 4,096 bytes, later eras limit an address's
// attributes to 64.
const maxBase58 = 8192

// prefix returns the human-readable part of a Shelley address's text (CIP-5).
func prefix(kind Kind, network byte) string {
	switch {
	case kind == Reward && network == mainnetID:
		return "stake"
	case kind == Reward:
		return "stake_test"
	case network == mainnetID:
		return "addr"
	}
	return "addr_test"
}

// Text returns the text of an address: bech32 of any length for Shelley kinds
// (the prefix follows the low nibble of the header byte: 1 is mainnet), base58
// for Byron, always of all the bytes as they stand. What is of no known kind
// (and a Byron address beyond 8,192 bytes, which no chain holds) gives its
// lower-case hexadecimal digits, so that Parse finds it again; the empty
// address gives the empty string.
func Text(addr []byte) string {
	switch kind := KindOf(addr); kind {
	case Unknown:
	case Byron:
		if len(addr) <= maxBase58 {
			return base58.Encode(addr)
		}
	default:
		if s, err := bech32.EncodeFromBase256(prefix(kind, addr[0]&0x0f), addr); err == nil {
			return s
		}
	}
	return hex.EncodeToString(addr)
}

// Parse reads an address in any form people write it: bech32 (addr, addr_test,
// stake, stake_test; of any length), base58 (Byron only, its checksum must
// hold), or hexadecimal digits, which are taken as they are. It is the inverse
// of Text. Errors wrap ErrText.
func Parse(text string) ([]byte, error) {
	if b, err := hex.DecodeString(text); err == nil && text != "" {
		return b, nil
	}
	// A Shelley prefix ends at the last "1" (BIP-173); base58 never holds "_",
	// and a Byron address in base58 begins with a capital or a digit.
	lower := strings.ToLower(text)
	if strings.HasPrefix(lower, "addr") || strings.HasPrefix(lower, "stake") {
		return parseBech32(text)
	}
	if len(text) > 2*maxBase58 {
		return nil, fmt.Errorf("%w: %d characters are too many for base58", ErrText, len(text))
	}
	b := base58.Decode(text)
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: %q (want bech32 beginning with addr or stake, base58, or hexadecimal digits)", ErrText, brief(text))
	}
	payload, crc, ok := byronParts(b)
	if !ok {
		return nil, fmt.Errorf("%w: %q is base58, but not of a Byron address", ErrText, brief(text))
	}
	if uint64(crc32.ChecksumIEEE(payload)) != crc {
		return nil, fmt.Errorf("%w: %q: its checksum is wrong", ErrText, brief(text))
	}
	return b, nil
}

func parseBech32(text string) ([]byte, error) {
	hrp, b, err := decodeBech32(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrText, brief(text), err)
	}
	kind := KindOf(b)
	switch kind {
	case Unknown, Byron:
		return nil, fmt.Errorf("%w: %q holds %d bytes of no known kind of Shelley address", ErrText, brief(text), len(b))
	}
	if want := prefix(kind, b[0]&0x0f); hrp != want {
		return nil, fmt.Errorf("%w: %q begins with %q, but what it holds is written %q", ErrText, brief(text), hrp, want)
	}
	return b, nil
}

// decodeBech32 returns the prefix in lower case and the bytes of a text of any
// length.
func decodeBech32(text string) (hrp string, b []byte, err error) {
	hrp, groups, version, err := bech32.DecodeNoLimitWithVersion(text)
	if err != nil {
		return "", nil, err
	}
	if version != bech32.Version0 {
		return "", nil, errors.New("its checksum is of bech32m, want bech32")
	}
	b, err = bech32.ConvertBits(groups, 5, 8, false)
	return hrp, b, err
}

// brief returns as much of a text as belongs into a message.
func brief(text string) string {
	const most = 128
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
