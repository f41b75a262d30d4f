package params

import (
	"math/big"

	"github.com/ourotail/ourotail/chain"
)

// Params are the protocol parameters of an era since Shelley. What an era does
// not have is nil, and left out of the JSON. Amounts are lovelace, sizes bytes,
// lifetimes epochs.
type Params struct {
	Era             chain.Era `json:"era"`
	ProtocolVersion Version   `json:"protocolVersion"`

	TxFeePerByte       uint64 `json:"txFeePerByte"`
	TxFeeFixed         uint64 `json:"txFeeFixed"`
	MaxBlockBodySize   uint64 `json:"maxBlockBodySize"`
	MaxTxSize          uint64 `json:"maxTxSize"`
	MaxBlockHeaderSize uint64 `json:"maxBlockHeaderSize"`

	StakeAddressDeposit uint64 `json:"stakeAddressDeposit"`
	StakePoolDeposit    uint64 `json:"stakePoolDeposit"`
	MinPoolCost         uint64 `json:"minPoolCost"`
	PoolRetireMaxEpoch  uint64 `json:"poolRetireMaxEpoch"`
	StakePoolTargetNum  uint64 `json:"stakePoolTargetNum"`
	PoolPledgeInfluence *Ratio `json:"poolPledgeInfluence"`
	MonetaryExpansion   *Ratio `json:"monetaryExpansion"`
	TreasuryCut         *Ratio `json:"treasuryCut"`

	// Shelley to Alonzo.
	Decentralization  *Ratio  `json:"decentralization,omitempty"`
	ExtraPraosEntropy *string `json:"extraPraosEntropy,omitempty"` // hexadecimal; empty if neutral
	MinUTxOValue      *uint64 `json:"minUTxOValue,omitempty"`      // Shelley to Mary
	UTxOCostPerWord   *uint64 `json:"utxoCostPerWord,omitempty"`   // Alonzo
	UTxOCostPerByte   *uint64 `json:"utxoCostPerByte,omitempty"`   // from Babbage on

	// From Alonzo on.
	CostModels             CostModels `json:"costModels,omitempty"`
	ExecutionUnitPrices    *Prices    `json:"executionUnitPrices,omitempty"`
	MaxTxExecutionUnits    *ExUnits   `json:"maxTxExecutionUnits,omitempty"`
	MaxBlockExecutionUnits *ExUnits   `json:"maxBlockExecutionUnits,omitempty"`
	MaxValueSize           *uint64    `json:"maxValueSize,omitempty"`
	CollateralPercentage   *uint64    `json:"collateralPercentage,omitempty"`
	MaxCollateralInputs    *uint64    `json:"maxCollateralInputs,omitempty"`

	// From Conway on.
	PoolVotingThresholds       *PoolThresholds `json:"poolVotingThresholds,omitempty"`
	DRepVotingThresholds       *DRepThresholds `json:"dRepVotingThresholds,omitempty"`
	CommitteeMinSize           *uint64         `json:"committeeMinSize,omitempty"`
	CommitteeMaxTermLength     *uint64         `json:"committeeMaxTermLength,omitempty"`
	GovActionLifetime          *uint64         `json:"govActionLifetime,omitempty"`
	GovActionDeposit           *uint64         `json:"govActionDeposit,omitempty"`
	DRepDeposit                *uint64         `json:"dRepDeposit,omitempty"`
	DRepActivity               *uint64         `json:"dRepActivity,omitempty"`
	MinFeeRefScriptCostPerByte *Ratio          `json:"minFeeRefScriptCostPerByte,omitempty"`

	// Further are the parameters behind those that this package knows, each as
	// CBOR in hexadecimal: those that Dijkstra adds, whose list may yet change.
	Further []string `json:"further,omitempty"`
}

// Version is a version of the protocol.
type Version struct {
	Major uint64 `json:"major"`
	Minor uint64 `json:"minor"`
}

// ExUnits are an amount of memory and of steps.
type ExUnits struct {
	Memory uint64 `json:"memory"`
	Steps  uint64 `json:"steps"`
}

// Prices are lovelace per unit.
type Prices struct {
	Memory *Ratio `json:"priceMemory"`
	Steps  *Ratio `json:"priceSteps"`
}

// CostModels are the cost models by the name of their language, PlutusV1 and so
// on; the numbers are in the ledger's order.
type CostModels map[string][]int64

// PoolThresholds are the shares of stake that pools must vote yes with.
type PoolThresholds struct {
	MotionNoConfidence    *Ratio `json:"motionNoConfidence"`
	CommitteeNormal       *Ratio `json:"committeeNormal"`
	CommitteeNoConfidence *Ratio `json:"committeeNoConfidence"`
	HardForkInitiation    *Ratio `json:"hardForkInitiation"`
	PPSecurityGroup       *Ratio `json:"ppSecurityGroup"`
}

// DRepThresholds are the same for representatives.
type DRepThresholds struct {
	MotionNoConfidence    *Ratio `json:"motionNoConfidence"`
	CommitteeNormal       *Ratio `json:"committeeNormal"`
	CommitteeNoConfidence *Ratio `json:"committeeNoConfidence"`
	UpdateToConstitution  *Ratio `json:"updateToConstitution"`
	HardForkInitiation    *Ratio `json:"hardForkInitiation"`
	PPNetworkGroup        *Ratio `json:"ppNetworkGroup"`
	PPEconomicGroup       *Ratio `json:"ppEconomicGroup"`
	PPTechnicalGroup      *Ratio `json:"ppTechnicalGroup"`
	PPGovGroup            *Ratio `json:"ppGovGroup"`
	TreasuryWithdrawal    *Ratio `json:"treasuryWithdrawal"`
}

// Ratio is an exact fraction; it reads "3/10" as text and in JSON.
type Ratio struct{ rat big.Rat }

// NewRatio returns a fraction; den is not 0.
func NewRatio(num, den int64) *Ratio {
	r := &Ratio{}
	r.rat.SetFrac64(num, den)
	return r
}

// Rat returns a copy to calculate with.
func (r *Ratio) Rat() *big.Rat { return new(big.Rat).Set(&r.rat) }

// String returns the fraction in lowest terms, as "3/10", and "2/1".
func (r *Ratio) String() string { return r.rat.String() }

// MarshalText implements encoding.TextMarshaler with the form of String.
func (r *Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
