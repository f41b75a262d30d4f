package immutabledb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// ErrIndex is wrapped by errors about a .primary or .secondary file that does
// not have the form a node writes.
var ErrIndex = errors.New("not an index of an ImmutableDB")

// SecondarySize is the length of a secondary entry: block offset u64, header
// offset u16, header size u16, CRC-32 of the block u32, header hash, slot or
// epoch u64, all big endian (consensus, ImmutableDB/Impl/Index/Secondary.hs).
const SecondarySize = 8 + 2 + 2 + 4 + 32 + 8

// SecondaryEntry is one block as a .secondary file describes it.
type SecondaryEntry struct {
	Offset       uint64 // of the block in its chunk
	HeaderOffset uint16 // of the header in its block
	HeaderSize   uint16
	CRC          uint32 // CRC-32 (IEEE) of the block
	Hash         chain.Hash
	SlotOrEpoch  uint64 // the epoch if it is a boundary block
}

// Append appends the entry in its file form.
func (e SecondaryEntry) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, e.Offset)
	b = binary.BigEndian.AppendUint16(b, e.HeaderOffset)
	b = binary.BigEndian.AppendUint16(b, e.HeaderSize)
	b = binary.BigEndian.AppendUint32(b, e.CRC)
	b = append(b, e.Hash[:]...)
	return binary.BigEndian.AppendUint64(b, e.SlotOrEpoch)
}

// ParseSecondary reads a .secondary file. An incomplete last entry is left out
// and reported as an error beside the whole ones.
func ParseSecondary(b []byte) ([]SecondaryEntry, error) {
	out := make([]SecondaryEntry, 0, len(b)/SecondarySize)
	for len(b) >= SecondarySize {
		e := SecondaryEntry{
			Offset:       binary.BigEndian.Uint64(b),
			HeaderOffset: binary.BigEndian.Uint16(b[8:]),
			HeaderSize:   binary.BigEndian.Uint16(b[10:]),
			CRC:          binary.BigEndian.Uint32(b[12:]),
			SlotOrEpoch:  binary.BigEndian.Uint64(b[48:]),
		}
		copy(e.Hash[:], b[16:48])
		out = append(out, e)
		b = b[SecondarySize:]
	}
	if len(b) != 0 {
		return out, fmt.Errorf("%w: %d bytes behind the last whole secondary entry", ErrIndex, len(b))
	}
	return out, nil
}

// PrimaryVersion is the first byte of a .primary file.
const PrimaryVersion = 1

// Primary is a .primary file: for each relative slot of the chunk, the first
// being the boundary block's own, where its entry begins in the .secondary
// file; an entry that ends where it begins is an empty slot.
type Primary []uint32

// ParsePrimary reads a .primary file. Offsets that fall or are not multiples
// of a secondary entry are refused; a torn last offset is left out.
func ParsePrimary(b []byte) (Primary, error) {
	if len(b) == 0 || b[0] != PrimaryVersion {
		return nil, fmt.Errorf("%w: a primary index begins with version byte %d", ErrIndex, PrimaryVersion)
	}
	b = b[1:]
	p := make(Primary, len(b)/4)
	last := uint32(0)
	for i := range p {
		p[i] = binary.BigEndian.Uint32(b[4*i:])
		if p[i] < last || p[i]%SecondarySize != 0 || i == 0 && p[i] != 0 {
			return nil, fmt.Errorf("%w: primary offset %d of relative slot %d behind %d", ErrIndex, p[i], i, last)
		}
		last = p[i]
	}
	return p, nil
}

// Entries returns how many blocks the index accounts for.
func (p Primary) Entries() int {
	if len(p) == 0 {
		return 0
	}
	return int(p[len(p)-1] / SecondarySize)
}

// HasBoundary tells whether the chunk begins with a boundary block.
func (p Primary) HasBoundary() bool { return len(p) > 1 && p[1] > p[0] }

// PrimarySlots returns how many slots a chunk has whose complete .primary file
// is size bytes long; 0 if that is no possible size.
func PrimarySlots(size int64) uint64 {
	if size < 1+4*3 || (size-1)%4 != 0 {
		return 0
	}
	return uint64((size-1)/4) - 2
}
