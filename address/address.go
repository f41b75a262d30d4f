package address

import "encoding/binary"

// Kind is what an address is, as its header byte says.
type Kind uint8

// The kinds of address.
const (
	Unknown    Kind = iota // empty, too short for its header, or a header nobody has defined
	Byron                  // bootstrap address
	Base                   // payment and stake credential
	Pointer                // payment credential and a pointer to a stake registration
	Enterprise             // payment credential alone
	Reward                 // stake credential alone: an account
)

var kindNames = [...]string{"unknown", "byron", "base", "pointer", "enterprise", "reward"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// HashSize is the length of a credential's hash, a blake2b-224 digest.
const HashSize = 28

// Credential is the hash of a key or of a script that owns (a part of) an
// address.
type Credential struct {
	Hash   [HashSize]byte
	Script bool
}

// Lengths of the parts of Shelley addresses.
const (
	oneCredential  = 1 + HashSize
	twoCredentials = 1 + 2*HashSize
)

// Header nibbles (CIP-19). Bit 4 of the byte tells a script payment
// credential (a script stake credential in reward addresses), bit 5 a script
// stake credential in base addresses.
const (
	headerPointer    = 0x4
	headerEnterprise = 0x6
	headerByron      = 0x8
	headerReward     = 0xe
)

// KindOf tells what kind of address the bytes are. Bytes after the end of the
// address do not matter; too few do. The numbers of a pointer are not looked
// at: Pointer may answer for an address whose Target is not known.
func KindOf(addr []byte) Kind {
	if len(addr) == 0 {
		return Unknown
	}
	var want Kind
	size := oneCredential
	switch h := addr[0] >> 4; {
	case h < headerPointer:
		want, size = Base, twoCredentials
	case h < headerEnterprise:
		want, size = Pointer, oneCredential+1
	case h < headerByron:
		want = Enterprise
	case h == headerByron:
		if _, ok := byronPayload(addr); ok {
			return Byron
		}
		return Unknown
	case h >= headerReward:
		want = Reward
	default:
		return Unknown
	}
	if len(addr) < size {
		return Unknown
	}
	return want
}

// NetworkID returns the network id: 1 for mainnet, 0 for test networks, for
// Shelley kinds whatever the low nibble says. A Byron address has none; one
// without a network magic in its attributes is of mainnet, one with it of a
// test network. False if the kind is unknown.
func NetworkID(addr []byte) (id uint8, ok bool) {
	switch KindOf(addr) {
	case Unknown:
		return 0, false
	case Byron:
		_, has, ok := ByronMagic(addr)
		if has {
			return 0, ok
		}
		return 1, ok
	}
	return addr[0] & 0x0f, true
}

// Payment returns the payment credential of a base, pointer or enterprise
// address. Other kinds have none: what a Byron address is spent with is not a
// credential of its own but a hash over it and the attributes.
func Payment(addr []byte) (c Credential, ok bool) {
	switch KindOf(addr) {
	case Base, Pointer, Enterprise:
		copy(c.Hash[:], addr[1:])
		c.Script = addr[0]&0x10 != 0
		return c, true
	}
	return c, false
}

// Stake returns the stake credential that a base or reward address names
// itself. A pointer address names one through the chain; see Target.
func Stake(addr []byte) (c Credential, ok bool) {
	switch KindOf(addr) {
	case Base:
		copy(c.Hash[:], addr[oneCredential:])
		c.Script = addr[0]&0x20 != 0
		return c, true
	case Reward:
		copy(c.Hash[:], addr[1:])
		c.Script = addr[0]&0x10 != 0
		return c, true
	}
	return c, false
}

// RewardAddress returns the 29 bytes of the account of a stake credential on a
// network.
func (c Credential) RewardAddress(network uint8) []byte {
	h := byte(headerReward<<4) | network&0x0f
	if c.Script {
		h |= 0x10
	}
	return append([]byte{h}, c.Hash[:]...)
}

// Place is where a pointer address points: a certificate by the slot of its
// block, the index of the transaction and its own index within that.
type Place struct {
	Slot, Tx, Cert uint64
}

// Target returns the place a pointer address points to; false if the address
// is no pointer, or its numbers are cut short or do not fit 64 bits (the
// ledger accepted such before Conway and ignored where they point).
func Target(addr []byte) (p Place, ok bool) {
	if KindOf(addr) != Pointer {
		return p, false
	}
	rest := addr[oneCredential:]
	for _, dst := range [...]*uint64{&p.Slot, &p.Tx, &p.Cert} {
		if *dst, rest, ok = varint(rest); !ok {
			return Place{}, false
		}
	}
	return p, true
}

// varint reads a number of seven-bit groups, most significant first, all but
// the last with the high bit set (CIP-19).
func varint(b []byte) (n uint64, rest []byte, ok bool) {
	for i, c := range b {
		if n>>57 != 0 {
			return 0, nil, false
		}
		n = n<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}

// ByronMagic returns the network magic in the attributes of a Byron address;
// has tells whether there is one (mainnet addresses carry none), ok whether
// the address could be read at all.
func ByronMagic(addr []byte) (magic uint32, has, ok bool) {
	r, ok := byronPayload(addr)
	if !ok {
		return 0, false, false
	}
	n, ok := r.head(4)
	if !ok || n < 2 {
		return 0, false, false
	}
	if _, ok = r.bytes(); !ok { // address root
		return 0, false, false
	}
	n, ok = r.head(5)
	if !ok {
		return 0, false, false
	}
	for ; n > 0; n-- {
		key, ok := r.head(0)
		if !ok {
			return 0, false, false
		}
		value, ok := r.bytes()
		if !ok {
			return 0, false, false
		}
		if key == 2 { // network magic, CBOR within the byte string
			v := reader(value)
			m, ok := v.head(0)
			if !ok || m > 0xffffffff {
				return 0, false, false
			}
			magic, has = uint32(m), true
		}
	}
	return magic, has, true
}

// byronPayload returns what stands inside tag 24 of [24(payload), crc32], or
// false if the bytes are not of that form. Bytes after it do not matter.
func byronPayload(addr []byte) (payload reader, ok bool) {
	payload, _, ok = byronParts(addr)
	return payload, ok
}

func byronParts(addr []byte) (payload reader, crc uint64, ok bool) {
	r := reader(addr)
	if n, ok := r.head(4); !ok || n != 2 {
		return nil, 0, false
	}
	if tag, ok := r.head(6); !ok || tag != 24 {
		return nil, 0, false
	}
	p, ok := r.bytes()
	if !ok {
		return nil, 0, false
	}
	if crc, ok = r.head(0); !ok {
		return nil, 0, false
	}
	return p, crc, true
}

// reader takes definite-length CBOR items off its front: all that Byron
// addresses hold.
type reader []byte

// head reads the head of an item of the given major type and returns its
// argument.
func (r *reader) head(major byte) (arg uint64, ok bool) {
	b := *r
	if len(b) == 0 || b[0]>>5 != major {
		return 0, false
	}
	info := b[0] & 0x1f
	b = b[1:]
	if info < 24 {
		*r = b
		return uint64(info), true
	}
	if info > 27 {
		return 0, false
	}
	n := 1 << (info - 24)
	if len(b) < n {
		return 0, false
	}
	switch n {
	case 1:
		arg = uint64(b[0])
	case 2:
		arg = uint64(binary.BigEndian.Uint16(b))
	case 4:
		arg = uint64(binary.BigEndian.Uint32(b))
	case 8:
		arg = binary.BigEndian.Uint64(b)
	}
	*r = b[n:]
	return arg, true
}

// bytes reads a byte string.
func (r *reader) bytes() ([]byte, bool) {
	n, ok := r.head(2)
	if !ok || n > uint64(len(*r)) {
		return nil, false
	}
	b := (*r)[:n]
	*r = (*r)[n:]
	return b, true
}
