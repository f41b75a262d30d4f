package chainsync

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/eras"
)

// queryGenesisConfig is the query's number (consensus: Shelley/Ledger/Query.hs,
// GetGenesisConfig).
const queryGenesisConfig = 11

// Genesis is the Shelley genesis that a node was started with, without what it only
// needs at origin: the node leaves that empty (consensus: CompactGenesis).
type Genesis struct {
	SystemStart       time.Time // of slot 0
	Magic             uint32
	NetworkID         uint8    // 1 for mainnet
	ActiveSlots       *big.Rat // share of slots that have a block
	K                 uint64   // security parameter, in blocks
	EpochSlots        uint64   // of an epoch since Shelley
	SlotLength        *big.Rat // in seconds, since Shelley
	SlotsPerKESPeriod uint64
	MaxKESEvolutions  uint64
	UpdateQuorum      uint64
	MaxLovelace       uint64
	Params            []byte // the first protocol parameters, CBOR
	Raw               []byte // all of it as the node encodes it
}

// ReadGenesis asks the node for its genesis as ReadParams does for parameters.
func ReadGenesis(ctx context.Context, cfg Config) (Genesis, error) {
	c, err := Dial(ctx, cfg)
	if err != nil {
		return Genesis{}, err
	}
	defer c.Close()
	s, err := c.AcquireTip(ctx)
	if err != nil {
		return Genesis{}, err
	}
	defer s.Release()
	return s.Genesis(ctx)
}

// Genesis returns the Shelley genesis. In Byron, whose ledger does not tell it, the
// error is of kind ErrNoQuery.
func (s *LedgerState) Genesis(ctx context.Context) (Genesis, error) {
	if s.era == chain.Byron {
		return Genesis{}, s.c.problem(s.q.op, ErrNoQuery, errors.New("the genesis, in byron"), "")
	}
	raw, err := s.queryEra(ctx, []any{queryGenesisConfig})
	if err != nil {
		return Genesis{}, err
	}
	g, err := parseGenesis(raw)
	return g, s.broken(err)
}

// parseGenesis reads 15 fields (cardano-ledger, Shelley Genesis.hs; consensus,
// Query/LegacyShelleyGenesis.hs). Some nodes add a sixteenth, for extra configuration
// (cardano-ledger-shelley 1.19).
func parseGenesis(raw []byte) (g Genesis, err error) {
	d := decoder{b: raw}
	fields := d.array("genesis")
	if d.err == nil && fields != 15 && fields != 16 {
		d.fail("genesis of %d fields", fields)
	}
	start := d.item("system start")
	magic := d.uint("network magic")
	id := d.uint("network id")
	g.ActiveSlots = d.fraction("active slots coefficient")
	g.K, g.EpochSlots = d.uint("security parameter"), d.uint("epoch length")
	g.SlotsPerKESPeriod, g.MaxKESEvolutions = d.uint("slots of a KES period"), d.uint("KES evolutions")
	// A time in microseconds (cardano-ledger, NominalDiffTimeMicro).
	g.SlotLength = new(big.Rat).SetFrac(new(big.Int).SetUint64(d.uint("slot length")), big.NewInt(1e6))
	g.UpdateQuorum, g.MaxLovelace = d.uint("update quorum"), d.uint("lovelace")
	g.Params = d.item("protocol parameters")
	for range fields - 12 { // delegates, funds, staking, extra configuration
		if d.err != nil {
			break
		}
		d.item("field")
	}
	if d.err == nil && (magic>>32 != 0 || id > 1) {
		d.fail("network magic %d, network id %d", magic, id)
	}
	if err := d.end(); err != nil {
		return g, err
	}
	g.Magic, g.NetworkID, g.Raw = uint32(magic), uint8(id), raw
	if g.SystemStart, err = eras.DecodeSystemStart(start); err != nil {
		return g, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return g, nil
}

// item reads one item of any kind.
func (d *decoder) item(what string) []byte {
	if d.err != nil {
		return nil
	}
	n, err := ledger.ItemSize(d.b[d.off:])
	if err != nil {
		d.fail("%s: %v", what, err)
		return nil
	}
	d.off += n
	return d.b[d.off-n : d.off : d.off]
}

// fraction reads [numerator, denominator], with the tag of a rational or without.
func (d *decoder) fraction(what string) *big.Rat {
	if d.err == nil && d.off+1 < len(d.b) && d.b[d.off] == 0xd8 && d.b[d.off+1] == 30 {
		d.off += 2
	}
	n := d.array(what)
	num, den := d.uint(what), d.uint(what)
	if d.err == nil && (n != 2 || den == 0) {
		d.fail("%s of %d items with denominator %d", what, n, den)
	}
	if d.err != nil {
		return nil
	}
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
}
