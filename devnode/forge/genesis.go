package forge

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// Genesis is what a chain starts from: its outputs and the files that describe
// them to a node.
type Genesis struct {
	Outputs []*Output
	// Hash is the hash of the Byron genesis, the parent of the first block of a
	// chain that begins in Byron; zero otherwise.
	Hash chain.Hash

	byron, shelley, alonzo, conway, config []byte
}

// genesisFiles are the names that WriteConfig uses.
const (
	configFile  = "config.json"
	byronFile   = "byron-genesis.json"
	shelleyFile = "shelley-genesis.json"
	alonzoFile  = "alonzo-genesis.json"
	conwayFile  = "conway-genesis.json"
)

// WriteConfig writes config.json and the genesis files it names into a folder.
func (gen *Genesis) WriteConfig(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("genesis files: %w", err)
	}
	for name, b := range map[string][]byte{configFile: gen.config, byronFile: gen.byron, shelleyFile: gen.shelley,
		alonzoFile: gen.alonzo, conwayFile: gen.conway} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return fmt.Errorf("genesis files: %w", err)
		}
	}
	return nil
}

const ada = 1_000_000

// makeGenesis decides the genesis outputs and writes the files.
func (f *Forge) makeGenesis(g *rnd) *Genesis {
	gen := &Genesis{}
	magic := f.opts.Magic
	first := f.opts.Eras[0].Era
	add := func(o *Output) {
		o.Height, o.Era = chain.OriginHeight, chain.Byron
		gen.Outputs = append(gen.Outputs, o)
	}
	avvm, balances, funds := map[string]string{}, map[string]string{}, map[string]int64{}
	byron := func(lovelace uint64) {
		a := byronAddress(g.hash28(), byronPubKey, &magic, nil)
		add(&Output{Ref: chain.TxIn{ID: blake2b.Sum256(a)}, Address: a, Lovelace: lovelace})
		balances[string(appendBase58(nil, a))] = strconv.FormatUint(lovelace, 10)
	}
	// One output above 2^53, a few large ones, and empty ones as real networks
	// have them.
	byron(12_000_000_000 * ada)
	for range 12 {
		byron(uint64(g.between(1_000_000, 500_000_000)) * ada)
	}
	byron(0)
	byron(0)
	if first <= chain.Shelley {
		for range 24 {
			var key [32]byte
			g.fill(key[:])
			a := redeemAddress(key, magic)
			n := uint64(g.between(1, 4_000_000)) * ada
			add(&Output{Ref: chain.TxIn{ID: blake2b.Sum256(a)}, Address: a, Lovelace: n, avvm: true})
			avvm[base64.URLEncoding.EncodeToString(key[:])] = strconv.FormatUint(n, 10)
		}
	}
	if first > chain.Byron {
		for i := range 4 {
			a := g.address([]byte{addrBaseKK, addrEnterprise, addrBaseKS, addrEnterprise}[i], 0)
			n := int64(g.between(1_000_000, 300_000_000)) * ada
			add(&Output{Ref: chain.TxIn{ID: blake2b.Sum256(a)}, Address: a, Lovelace: uint64(n)})
			gen.Outputs[len(gen.Outputs)-1].Era = chain.Shelley
			funds[hex.EncodeToString(a)] = n
		}
	}
	gen.files(f, avvm, balances, funds)
	if first == chain.Byron {
		gen.Hash = blake2b.Sum256(gen.byron)
	}
	return gen
}

// object is a JSON object; encoding/json writes its keys sorted and without
// white space, which is the canonical JSON whose hash names a Byron genesis.
type object = map[string]any

// files renders the genesis files.
func (gen *Genesis) files(f *Forge, avvm, balances map[string]string, funds map[string]int64) {
	o := f.opts
	gen.byron = marshal(object{
		"avvmDistr":        avvm,
		"nonAvvmBalances":  balances,
		"bootStakeholders": object{},
		"heavyDelegation":  object{},
		"ftsSeed":          "",
		"startTime":        o.SystemStart.Unix(),
		"protocolConsts":   object{"k": o.K, "protocolMagic": o.Magic},
		"blockVersionData": object{"scriptVersion": 0, "slotDuration": "1000", "maxBlockSize": "2000000",
			"maxHeaderSize": "2000000", "maxTxSize": "16384", "maxProposalSize": "700", "mpcThd": "20000000000000",
			"heavyDelThd": "300000000000", "updateVoteThd": "1000000000000", "updateProposalThd": "100000000000000",
			"updateImplicit":   "10000",
			"softforkRule":     object{"initThd": "900000000000000", "minThd": "600000000000000", "thdDecrement": "50000000000000"},
			"txFeePolicy":      object{"summand": "155381000000000", "multiplier": "43946000000"},
			"unlockStakeEpoch": "18446744073709551615"},
	})
	gen.shelley = marshal(object{
		"activeSlotsCoeff": 0.05, "epochLength": f.cal.epochSlots, "genDelegs": object{}, "initialFunds": funds,
		"maxKESEvolutions": 62, "maxLovelaceSupply": 45000000000000000, "networkId": "Testnet",
		"networkMagic": o.Magic, "securityParam": o.K, "slotLength": 1, "slotsPerKESPeriod": 129600,
		"systemStart": o.SystemStart.Format(time.RFC3339), "updateQuorum": 5,
		"protocolParams": object{"protocolVersion": object{"major": 2, "minor": 0}, "decentralisationParam": 1,
			"eMax": 18, "extraEntropy": object{"tag": "NeutralNonce"}, "maxTxSize": 16384, "maxBlockBodySize": 90112,
			"maxBlockHeaderSize": 1100, "minFeeA": 44, "minFeeB": 155381, "minUTxOValue": 0, "poolDeposit": 500000000,
			"minPoolCost": 340000000, "keyDeposit": 2000000, "nOpt": 150, "rho": 0.003, "tau": 0.2, "a0": 0.3},
		"staking": object{"pools": object{}, "stake": object{}},
	})
	gen.alonzo, gen.conway = marshal(object{}), marshal(object{})
	config := object{
		"Protocol": "Cardano", "RequiresNetworkMagic": "RequiresMagic",
		"ByronGenesisFile": byronFile, "ByronGenesisHash": hexHash(gen.byron),
		"ShelleyGenesisFile": shelleyFile, "ShelleyGenesisHash": hexHash(gen.shelley),
		"AlonzoGenesisFile": alonzoFile, "AlonzoGenesisHash": hexHash(gen.alonzo),
		"ConwayGenesisFile": conwayFile, "ConwayGenesisHash": hexHash(gen.conway),
	}
	for _, s := range f.cal.starts {
		if s.era > chain.Byron {
			name := s.era.String()
			config["Test"+string(name[0]-'a'+'A')+name[1:]+"HardForkAtEpoch"] = s.epoch
		}
	}
	// Eras that are passed over begin with the first one there is.
	for e := chain.Shelley; e < f.cal.starts[0].era; e++ {
		name := e.String()
		config["Test"+string(name[0]-'a'+'A')+name[1:]+"HardForkAtEpoch"] = 0
	}
	gen.config = marshal(config)
}

func hexHash(b []byte) string {
	h := blake2b.Sum256(b)
	return hex.EncodeToString(h[:])
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return b
}
