package address

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"golang.org/x/crypto/blake2b"
)

// ErrCredential is wrapped by every error of ParseCredential.
var ErrCredential = errors.New("not a credential")

// Role is the side of an address that a credential's text names.
type Role uint8

// The roles.
const (
	AnyRole     Role = iota // the text does not say
	PaymentRole             // addr_vk, addr_vkh
	StakeRole               // stake_vk, stake_vkh
)

// Match is a credential as a person writes it: its hash and as much about it
// as the text says. Hexadecimal digits say neither side nor whether the hash
// is of a key or a script.
type Match struct {
	Hash   [HashSize]byte
	Role   Role
	Typed  bool // the text tells keys from scripts; Script holds
	Script bool
}

// Is tells whether a credential is the one that the text names.
func (m Match) Is(c Credential) bool {
	return m.Hash == c.Hash && (!m.Typed || m.Script == c.Script)
}

const keySize = 32 // of an Ed25519 verification key

// forms are the prefixes of credentials in query text (Kupo's patterns; CIP-5).
var forms = map[string]struct {
	key    bool // holds the key itself, not its hash
	role   Role
	script bool
}{
	"vk":        {key: true},
	"addr_vk":   {key: true, role: PaymentRole},
	"stake_vk":  {key: true, role: StakeRole},
	"vkh":       {},
	"addr_vkh":  {role: PaymentRole},
	"stake_vkh": {role: StakeRole},
	"script":    {script: true},
}

// ParseCredential reads a credential: bech32 with one of the prefixes vk,
// addr_vk, stake_vk (a verification key of 32 bytes, which is hashed), vkh,
// addr_vkh, stake_vkh, script (a hash of 28 bytes), or the hexadecimal digits
// of a key (64) or a hash (56). Errors wrap ErrCredential.
func ParseCredential(text string) (Match, error) {
	var m Match
	b, err := hex.DecodeString(text)
	if err != nil {
		var hrp string
		if hrp, b, err = decodeBech32(text); err != nil {
			return m, fmt.Errorf("%w: %q is neither hexadecimal nor bech32: %w", ErrCredential, brief(text), err)
		}
		form, ok := forms[hrp]
		if !ok {
			return m, fmt.Errorf("%w: %q: prefix %q is none of vk, addr_vk, stake_vk, vkh, addr_vkh, stake_vkh, script", ErrCredential, brief(text), hrp)
		}
		want := HashSize
		if form.key {
			want = keySize
		}
		if len(b) != want {
			return m, fmt.Errorf("%w: %q holds %d bytes, want %d", ErrCredential, brief(text), len(b), want)
		}
		m.Role, m.Typed, m.Script = form.role, true, form.script
	}
	switch len(b) {
	case HashSize:
		copy(m.Hash[:], b)
	case keySize:
		m.Hash = KeyHash(b)
		m.Typed = true
	default:
		return Match{}, fmt.Errorf("%w: %q has %d hexadecimal digits, want %d (hash) or %d (key)", ErrCredential, brief(text), len(text), 2*HashSize, 2*keySize)
	}
	return m, nil
}

// KeyHash returns the blake2b-224 of a verification key: its credential.
func KeyHash(key []byte) (out [HashSize]byte) {
	h, err := blake2b.New(HashSize, nil)
	if err != nil {
		panic(err) // the size is a constant that blake2b supports
	}
	h.Write(key)
	h.Sum(out[:0])
	return out
}

// CredentialText returns the bech32 text of a credential: "script" for
// scripts, otherwise "vkh", "addr_vkh" or "stake_vkh" after the role.
func CredentialText(c Credential, role Role) string {
	hrp := "vkh"
	switch {
	case c.Script:
		hrp = "script"
	case role == PaymentRole:
		hrp = "addr_vkh"
	case role == StakeRole:
		hrp = "stake_vkh"
	}
	s, err := bech32.EncodeFromBase256(hrp, c.Hash[:])
	if err != nil {
		panic(err) // prefix and length are constants that bech32 supports
	}
	return s
}
