package immutable

import (
	"fmt"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Header is what a block says of itself, and where in the block its header lies.
type Header struct {
	chain.Link
	Epoch        uint64 // of a boundary block or a Byron main block
	SlotInEpoch  uint64 // of a Byron main block
	Offset, Size int    // of the header within the block
}

// ReadHeader reads the header of a block in storage form, [era tag, block].
// The slot of a Byron block is epoch*byronEpochSlots plus the slot within the
// epoch, a boundary block's that of its epoch's start (Byron counts slots by
// epoch; an epoch has 10k slots). Errors wrap wire.ErrMalformed.
func ReadHeader(raw []byte, byronEpochSlots uint64) (h Header, err error) {
	n, off, err := wire.ReadArray(raw, 0)
	if err != nil {
		return h, err
	}
	if n != 2 {
		return h, fmt.Errorf("%w: a block is an array of 2, not of %d", wire.ErrMalformed, n)
	}
	tag, off, err := wire.ReadUint(raw, off)
	if err != nil {
		return h, err
	}
	if tag > uint64(chain.Dijkstra) {
		return h, fmt.Errorf("%w: no era has tag %d", wire.ErrMalformed, tag)
	}
	if _, off, err = wire.ReadArray(raw, off); err != nil {
		return h, err
	}
	end, err := wire.Skip(raw, off)
	if err != nil {
		return h, err
	}
	h.Offset, h.Size = off, end-off
	header := raw[off:end]
	if tag <= uint64(chain.Byron) {
		h.Boundary, h.Era = tag == 0, chain.Byron
		d, err := blake2b.New256(nil)
		if err != nil {
			return h, err
		}
		// Byron hashes a header inside the pair that tells its kind
		// (cardano-ledger Byron: headerHashAnnotated, wrapHeaderBytes).
		d.Write([]byte{0x82, byte(tag)})
		d.Write(header)
		d.Sum(h.Point.Hash[:0])
		return h, h.readByron(header, byronEpochSlots)
	}
	h.Era = chain.Era(tag)
	h.Point.Hash = blake2b.Sum256(header)
	return h, h.readShelley(header)
}

// readByron reads [magic, previous, proof, consensus, extra]; consensus is
// [epoch, [difficulty]] of a boundary block and
// [[epoch, slot], key, [difficulty], signature] of a main one (byron.cddl).
func (h *Header) readByron(b []byte, epochSlots uint64) error {
	_, off, err := wire.ReadArray(b, 0)
	if err != nil {
		return err
	}
	if off, err = wire.Skip(b, off); err != nil {
		return err
	}
	prev, off, err := wire.ReadBytes(b, off)
	if err != nil {
		return err
	}
	copy(h.Parent[:], prev)
	if off, err = wire.Skip(b, off); err != nil {
		return err
	}
	if _, off, err = wire.ReadArray(b, off); err != nil {
		return err
	}
	if !h.Boundary {
		if _, off, err = wire.ReadArray(b, off); err != nil {
			return err
		}
	}
	if h.Epoch, off, err = wire.ReadUint(b, off); err != nil {
		return err
	}
	if !h.Boundary {
		if h.SlotInEpoch, off, err = wire.ReadUint(b, off); err != nil {
			return err
		}
		if off, err = wire.Skip(b, off); err != nil {
			return err
		}
	}
	if _, off, err = wire.ReadArray(b, off); err != nil {
		return err
	}
	height, _, err := wire.ReadUint(b, off)
	if err != nil {
		return err
	}
	h.Height = chain.Height(height)
	h.Point.Slot = chain.Slot(h.Epoch*epochSlots + h.SlotInEpoch)
	return nil
}

// readShelley reads the first three fields of a header body, block number,
// slot and previous hash or null, which every era since Shelley shares.
func (h *Header) readShelley(b []byte) error {
	_, off, err := wire.ReadArray(b, 0)
	if err != nil {
		return err
	}
	if _, off, err = wire.ReadArray(b, off); err != nil {
		return err
	}
	height, off, err := wire.ReadUint(b, off)
	if err != nil {
		return err
	}
	slot, off, err := wire.ReadUint(b, off)
	if err != nil {
		return err
	}
	h.Height, h.Point.Slot = chain.Height(height), chain.Slot(slot)
	if off < len(b) && b[off] == wire.Null {
		return nil
	}
	prev, _, err := wire.ReadBytes(b, off)
	copy(h.Parent[:], prev)
	return err
}
