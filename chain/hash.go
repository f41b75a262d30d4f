package chain

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// Hash is a blake2b-256 digest: of a block header, a transaction body or a
// datum. The zero Hash belongs to no block; as a transaction id it stands for
// the ledger itself (contract 1.7).
type Hash [32]byte

// TxID is the blake2b-256 of a transaction body's bytes as they were received.
type TxID = Hash

// Hash28 is a blake2b-224 digest: a minting policy, a script or a credential.
type Hash28 [28]byte

// ErrHash is wrapped by every error of ParseHash and ParseHash28.
var ErrHash = errors.New("not a hash")

// String returns the hash as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero tells whether every byte is zero.
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText implements encoding.TextMarshaler with the form of String.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseHash.
func (h *Hash) UnmarshalText(text []byte) error { return decodeHex(h[:], string(text)) }

// ParseHash reads 64 hexadecimal digits of either case.
func ParseHash(s string) (h Hash, err error) { return h, decodeHex(h[:], s) }

// String returns the hash as 56 lower-case hexadecimal digits.
func (h Hash28) String() string { return hex.EncodeToString(h[:]) }

// MarshalText implements encoding.TextMarshaler with the form of String.
func (h Hash28) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseHash28.
func (h *Hash28) UnmarshalText(text []byte) error { return decodeHex(h[:], string(text)) }

// ParseHash28 reads 56 hexadecimal digits of either case.
func ParseHash28(s string) (h Hash28, err error) { return h, decodeHex(h[:], s) }

func decodeHex(dst []byte, s string) error {
	if len(s) != 2*len(dst) {
		return fmt.Errorf("%w: %q has %d characters, want %d hexadecimal digits", ErrHash, s, len(s), 2*len(dst))
	}
	if _, err := hex.Decode(dst, []byte(s)); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrHash, s, err)
	}
	return nil
}
