package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger/eras"
)

// Errors about a network's genesis.
var (
	ErrGenesis        = errors.New("cannot read the genesis")
	ErrGenesisHash    = errors.New("a genesis file is not the one that the configuration names")
	ErrUnknownNetwork = errors.New("not a network with a built-in genesis (want mainnet, preprod or preview, or the config.json of the node)")
	ErrNeedGenesis    = errors.New("the genesis outputs of mainnet are not built in: to follow it from origin, pass --config with the node's config.json, which names the genesis files")
)

// Genesis is what a network is before its first block.
type Genesis struct {
	Name      string // mainnet, preprod, preview, or empty for any other
	Magic     uint32
	NetworkID uint8  // of Shelley addresses: 1 for mainnet
	K         uint64 // security parameter, in blocks: a node rolls back no further

	// FirstHeight is the height of the first block that is no boundary block:
	// 1 where the chain begins in Byron, behind the boundary block at height
	// 0, and 0 where it begins in a later era.
	FirstHeight chain.Height

	SystemStart       time.Time // of slot 0
	ByronSlot         time.Duration
	ByronEpochSlots   uint64 // 10·k of the Byron genesis; see Block.ByronEpochSlots
	ShelleyEpoch      int    // first epoch of Shelley or a later era; -1 if unknown
	ShelleySlot       time.Duration
	ShelleyEpochSlots uint64
	ActiveSlots       float64 // share of Shelley slots that have a block

	ByronHash   chain.Hash // of the genesis files; zero if not known
	ShelleyHash chain.Hash

	// Outputs are the unspent outputs before the first block, in no block
	// themselves; the first AVVM of them (vouchers for redemption) leave the
	// set at the first block of Allegra if they are unspent by then. Both
	// parts are sorted by reference.
	Outputs []chain.Output
	AVVM    int

	needFiles bool
}

// Complete returns ErrNeedGenesis if the genesis outputs are not known, and
// nil if Outputs is all of them.
func (g *Genesis) Complete() error {
	if g.needFiles {
		return ErrNeedGenesis
	}
	return nil
}

// Eras returns the calendar that the genesis files give: Byron, then the lengths
// of Shelley for ever. False if the end of Byron is not known, or out of reason.
func (g *Genesis) Eras() (eras.Summaries, bool) {
	const most = 1 << 24 // epochs; k is at most 1<<24 too, so that nothing overflows
	if g.ShelleyEpoch < 0 || g.ShelleyEpoch > most {
		return eras.Summaries{}, false
	}
	fork := eras.Bound{Slot: chain.Slot(uint64(g.ShelleyEpoch) * g.ByronEpochSlots), Epoch: uint64(g.ShelleyEpoch)}
	if g.ByronSlot > 0 && uint64(fork.Slot) > uint64(math.MaxInt64/g.ByronSlot) {
		return eras.Summaries{}, false
	}
	fork.Time = time.Duration(fork.Slot) * g.ByronSlot
	s := eras.Summaries{SystemStart: g.SystemStart}
	if fork.Epoch > 0 {
		s.List = append(s.List, eras.Summary{End: &fork, EpochSlots: g.ByronEpochSlots, SlotLength: g.ByronSlot})
	}
	s.List = append(s.List, eras.Summary{Start: fork, EpochSlots: g.ShelleyEpochSlots, SlotLength: g.ShelleySlot})
	return s, s.Check() == nil
}

// Time returns when a slot begins; false if the end of Byron is not known or no
// calendar reaches that far.
func (g *Genesis) Time(slot chain.Slot) (time.Time, bool) {
	s, ok := g.Eras()
	if !ok {
		return time.Time{}, false
	}
	t, err := s.Time(slot)
	return t, err == nil
}

// Known magics of public networks.
const (
	magicMainnet = 764824073
	magicPreprod = 1
	magicPreview = 2
)

// NetworkName returns the name of a public network by its magic, or the empty
// string.
func NetworkName(magic uint32) string {
	switch magic {
	case magicMainnet:
		return "mainnet"
	case magicPreprod:
		return "preprod"
	case magicPreview:
		return "preview"
	}
	return ""
}

// Network returns the built-in genesis of a public network: all of preview and
// preprod; of mainnet everything but the outputs (see Complete). An unknown
// name is ErrUnknownNetwork.
func Network(name string) (*Genesis, error) {
	switch strings.ToLower(name) {
	case "preview":
		return preview(), nil
	case "preprod":
		return preprod(), nil
	case "mainnet":
		return mainnet(), nil
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownNetwork, name)
}

// genesisOutput makes an output that is in no block: its transaction id is the
// blake2b-256 of the address, its index 0 (cardano-ledger: Byron genesisUtxo,
// Shelley initialFundsPseudoTxIn). Raw is the output as a transaction of the
// era would hold it.
func genesisOutput(era chain.Era, addr []byte, lovelace uint64) chain.Output {
	raw := []byte{0x82}
	if era != chain.Byron { // a Byron address is CBOR itself
		raw = appendHead(raw, majorBytes, uint64(len(addr)))
	}
	raw = append(raw, addr...)
	raw = appendHead(raw, majorUint, lovelace)
	return chain.Output{
		Ref:      chain.TxIn{ID: blake2b.Sum256(addr)},
		Height:   chain.OriginHeight,
		Era:      era,
		Lovelace: lovelace,
		Raw:      raw,
	}
}

func sortOutputs(outs []chain.Output) {
	slices.SortFunc(outs, func(x, y chain.Output) int { return x.Ref.Compare(y.Ref) })
}

// appendHead appends the shortest head of an item.
func appendHead(b []byte, major byte, n uint64) []byte {
	m := major << 5
	switch {
	case n < 24:
		return append(b, m|byte(n))
	case n < 1<<8:
		return append(b, m|24, byte(n))
	case n < 1<<16:
		return append(b, m|25, byte(n>>8), byte(n))
	case n < 1<<32:
		return append(b, m|26, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, m|27, byte(n>>56), byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}
