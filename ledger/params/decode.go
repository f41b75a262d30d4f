package params

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/fxamacker/cbor/v2"

	"github.com/ourotail/ourotail/chain"
)

// Errors of Decode.
var (
	// ErrMalformed is wrapped for bytes that are no parameters of the era.
	ErrMalformed = errors.New("not protocol parameters as this era's ledger writes them")
	// ErrEra is wrapped for an era without such parameters.
	ErrEra = errors.New("no protocol parameters of this form in this era")
)

// Decode reads the answer to GetCurrentPParams: an array with the parameters in
// an order of the era's own (cardano-ledger, the EraPParams instance of each
// era). Up to node-to-client version 20 the protocol version is two items before
// Conway, from 21 on one of two (consensus: Query/LegacyPParams.hs); both are
// read. Errors wrap ErrMalformed or ErrEra and name the parameter.
func Decode(era chain.Era, raw []byte) (*Params, error) {
	if era < chain.Shelley || era > chain.Dijkstra {
		return nil, fmt.Errorf("%w: %s", ErrEra, era)
	}
	var list []cbor.RawMessage
	if err := cbor.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, era, err)
	}
	p := &Params{Era: era}
	fields := p.fields()
	switch n := len(list); {
	case n == len(fields), n > len(fields) && era > chain.Conway:
	case n == len(fields)+1 && era < chain.Conway:
		fields = p.flatVersion(fields)
	default:
		return nil, fmt.Errorf("%w: %s: %d of them, want %d", ErrMalformed, era, n, len(fields))
	}
	for i, f := range fields {
		if err := f.read(list[i]); err != nil {
			return nil, fmt.Errorf("%w: %s: %s, item %d: %w", ErrMalformed, era, f.name, i, err)
		}
	}
	for _, more := range list[len(fields):] {
		p.Further = append(p.Further, hex.EncodeToString(more))
	}
	return p, nil
}

// field reads one parameter.
type field struct {
	name string
	read func(raw []byte) error
}

// number reads an unsigned integer of at most 64 bits.
func number(name string, into *uint64) field {
	return field{name, func(raw []byte) error {
		if raw[0]>>5 != majorUint { // the library reads null as no change
			return fmt.Errorf("CBOR major type %d, want an unsigned integer", raw[0]>>5)
		}
		return cbor.Unmarshal(raw, into)
	}}
}

// CBOR major types (RFC 8949 section 3.1).
const (
	majorUint = 0
	majorTag  = 6
)

// some is number for a parameter that not every era has.
func some(name string, into **uint64) field {
	*into = new(uint64)
	return number(name, *into)
}

func ratio(name string, into **Ratio) field {
	return field{name, func(raw []byte) (err error) {
		*into, err = decodeRatio(raw)
		return err
	}}
}

// several reads an array with exactly these in it.
func several(name string, inner ...field) field {
	return field{name, func(raw []byte) error {
		var list []cbor.RawMessage
		if err := cbor.Unmarshal(raw, &list); err != nil {
			return err
		}
		if len(list) != len(inner) {
			return fmt.Errorf("%d items, want %d", len(list), len(inner))
		}
		for i, f := range inner {
			if err := f.read(list[i]); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}}
}

const versionName = "protocolVersion"

// flatVersion replaces the version by its two numbers.
func (p *Params) flatVersion(fields []field) (out []field) {
	for _, f := range fields {
		if f.name != versionName {
			out = append(out, f)
			continue
		}
		out = append(out, number(f.name, &p.ProtocolVersion.Major), number(f.name, &p.ProtocolVersion.Minor))
	}
	return out
}

// fields are the parameters of the era in its order.
func (p *Params) fields() []field {
	f := []field{
		number("txFeePerByte", &p.TxFeePerByte), number("txFeeFixed", &p.TxFeeFixed),
		number("maxBlockBodySize", &p.MaxBlockBodySize), number("maxTxSize", &p.MaxTxSize), number("maxBlockHeaderSize", &p.MaxBlockHeaderSize),
		number("stakeAddressDeposit", &p.StakeAddressDeposit), number("stakePoolDeposit", &p.StakePoolDeposit),
		number("poolRetireMaxEpoch", &p.PoolRetireMaxEpoch), number("stakePoolTargetNum", &p.StakePoolTargetNum),
		ratio("poolPledgeInfluence", &p.PoolPledgeInfluence), ratio("monetaryExpansion", &p.MonetaryExpansion), ratio("treasuryCut", &p.TreasuryCut),
	}
	if p.Era < chain.Babbage {
		f = append(f, ratio("decentralization", &p.Decentralization), field{"extraPraosEntropy", p.entropy})
	}
	f = append(f, several(versionName, number("major", &p.ProtocolVersion.Major), number("minor", &p.ProtocolVersion.Minor)))
	if p.Era < chain.Alonzo {
		return append(f, some("minUTxOValue", &p.MinUTxOValue), number("minPoolCost", &p.MinPoolCost))
	}
	f = append(f, number("minPoolCost", &p.MinPoolCost))
	if p.Era == chain.Alonzo {
		f = append(f, some("utxoCostPerWord", &p.UTxOCostPerWord))
	} else {
		f = append(f, some("utxoCostPerByte", &p.UTxOCostPerByte))
	}
	p.ExecutionUnitPrices, p.MaxTxExecutionUnits, p.MaxBlockExecutionUnits = &Prices{}, &ExUnits{}, &ExUnits{}
	f = append(f,
		field{"costModels", p.costModels},
		several("executionUnitPrices", ratio("memory", &p.ExecutionUnitPrices.Memory), ratio("steps", &p.ExecutionUnitPrices.Steps)),
		units("maxTxExecutionUnits", p.MaxTxExecutionUnits), units("maxBlockExecutionUnits", p.MaxBlockExecutionUnits),
		some("maxValueSize", &p.MaxValueSize), some("collateralPercentage", &p.CollateralPercentage), some("maxCollateralInputs", &p.MaxCollateralInputs))
	if p.Era < chain.Conway {
		return f
	}
	pool, rep := &PoolThresholds{}, &DRepThresholds{}
	p.PoolVotingThresholds, p.DRepVotingThresholds = pool, rep
	return append(f,
		several("poolVotingThresholds", ratio("motionNoConfidence", &pool.MotionNoConfidence), ratio("committeeNormal", &pool.CommitteeNormal),
			ratio("committeeNoConfidence", &pool.CommitteeNoConfidence), ratio("hardForkInitiation", &pool.HardForkInitiation), ratio("ppSecurityGroup", &pool.PPSecurityGroup)),
		several("dRepVotingThresholds", ratio("motionNoConfidence", &rep.MotionNoConfidence), ratio("committeeNormal", &rep.CommitteeNormal),
			ratio("committeeNoConfidence", &rep.CommitteeNoConfidence), ratio("updateToConstitution", &rep.UpdateToConstitution),
			ratio("hardForkInitiation", &rep.HardForkInitiation), ratio("ppNetworkGroup", &rep.PPNetworkGroup), ratio("ppEconomicGroup", &rep.PPEconomicGroup),
			ratio("ppTechnicalGroup", &rep.PPTechnicalGroup), ratio("ppGovGroup", &rep.PPGovGroup), ratio("treasuryWithdrawal", &rep.TreasuryWithdrawal)),
		some("committeeMinSize", &p.CommitteeMinSize), some("committeeMaxTermLength", &p.CommitteeMaxTermLength),
		some("govActionLifetime", &p.GovActionLifetime), some("govActionDeposit", &p.GovActionDeposit),
		some("dRepDeposit", &p.DRepDeposit), some("dRepActivity", &p.DRepActivity), ratio("minFeeRefScriptCostPerByte", &p.MinFeeRefScriptCostPerByte))
}

func units(name string, into *ExUnits) field {
	return several(name, number("memory", &into.Memory), number("steps", &into.Steps))
}

// entropy reads a nonce: [0], neutral, or [1, 32 bytes].
func (p *Params) entropy(raw []byte) error {
	var list []cbor.RawMessage
	if err := cbor.Unmarshal(raw, &list); err != nil {
		return err
	}
	p.ExtraPraosEntropy = new(string)
	switch len(list) {
	case 1:
		return nil
	case 2:
		var nonce []byte
		if err := cbor.Unmarshal(list[1], &nonce); err != nil {
			return err
		}
		*p.ExtraPraosEntropy = hex.EncodeToString(nonce)
		return nil
	}
	return fmt.Errorf("%d items, want 1 or 2", len(list))
}

// costModels reads a map from a language's number to a list of numbers. PlutusV1
// is 0.
func (p *Params) costModels(raw []byte) error {
	var models map[uint64][]int64
	if err := cbor.Unmarshal(raw, &models); err != nil {
		return err
	}
	p.CostModels = CostModels{}
	for language, costs := range models {
		if language > 1<<16 {
			return fmt.Errorf("language %d", language)
		}
		p.CostModels["PlutusV"+strconv.FormatUint(language+1, 10)] = costs
	}
	return nil
}

const tagRational = 30 // cardano-ledger-binary, encodeRatioWithTag

func decodeRatio(raw []byte) (*Ratio, error) {
	var tag cbor.RawTag
	if err := cbor.Unmarshal(raw, &tag); err != nil {
		return nil, err
	}
	if tag.Number != tagRational {
		return nil, fmt.Errorf("tag %d, want %d, a fraction", tag.Number, tagRational)
	}
	var parts []cbor.RawMessage
	if err := cbor.Unmarshal(tag.Content, &parts); err != nil {
		return nil, err
	}
	if len(parts) != 2 {
		return nil, fmt.Errorf("a fraction of %d parts", len(parts))
	}
	var n [2]big.Int
	for i, p := range parts {
		if m := p[0] >> 5; m != majorUint && m != majorTag {
			return nil, fmt.Errorf("a fraction with CBOR major type %d in it", m)
		}
		if err := cbor.Unmarshal(p, &n[i]); err != nil {
			return nil, err
		}
		if n[i].Sign() < 0 || n[i].BitLen() > 256 {
			return nil, errors.New("a fraction out of reason")
		}
	}
	if n[1].Sign() == 0 {
		return nil, errors.New("a fraction over 0")
	}
	r := &Ratio{}
	r.rat.SetFrac(&n[0], &n[1])
	return r, nil
}
