package ledger

import (
	"bytes"
	"crypto/sha3"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// nodeConfig is what we need of a node's config.json.
type nodeConfig struct {
	ByronGenesisFile     string
	ByronGenesisHash     string
	ShelleyGenesisFile   string
	ShelleyGenesisHash   string
	RequiresNetworkMagic string

	// Set on networks that do not begin in Byron: 0.
	TestShelleyHardForkAtEpoch *int
	TestAllegraHardForkAtEpoch *int
}

type byronFile struct {
	AvvmDistr        map[string]lovelace
	NonAvvmBalances  map[string]lovelace
	StartTime        int64
	ProtocolConsts   struct{ K, ProtocolMagic uint64 }
	BlockVersionData struct{ SlotDuration lovelace }
}

type shelleyFile struct {
	ActiveSlotsCoeff float64
	EpochLength      uint64
	InitialFunds     map[string]lovelace
	NetworkID        string `json:"networkId"`
	NetworkMagic     uint64
	SecurityParam    uint64
	SlotLength       float64
	SystemStart      time.Time
}

// lovelace is a number that JSON holds as a number or as text.
type lovelace uint64

func (l *lovelace) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(b), `"`), 10, 64)
	*l = lovelace(n)
	return err
}

// LoadGenesis reads a node's config.json and the Byron and Shelley genesis
// files it names (relative to itself). Where the configuration gives a hash of
// a file, the file must have it. Errors wrap ErrGenesis or ErrGenesisHash.
func LoadGenesis(configPath string) (*Genesis, error) {
	text, err := os.ReadFile(configPath)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGenesis, err)
	}
	var conf nodeConfig
	if err := json.Unmarshal(text, &conf); err != nil {
		return nil, fmt.Errorf("%w: %s: %w (want the node's configuration as JSON)", ErrGenesis, configPath, err)
	}
	dir := filepath.Dir(configPath)
	var byron byronFile
	byronHash, err := readGenesis(dir, configPath, "ByronGenesisFile", conf.ByronGenesisFile, conf.ByronGenesisHash, canonicalJSONHash, &byron)
	if err != nil {
		return nil, err
	}
	var shelley shelleyFile
	shelleyHash, err := readGenesis(dir, configPath, "ShelleyGenesisFile", conf.ShelleyGenesisFile, conf.ShelleyGenesisHash, fileHash, &shelley)
	if err != nil {
		return nil, err
	}
	g := &Genesis{ByronHash: byronHash, ShelleyHash: shelleyHash}
	if err := g.fill(&conf, &byron, &shelley); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrGenesis, configPath, err)
	}
	return g, nil
}

// readGenesis reads one genesis file, checks its hash and decodes it.
func readGenesis(dir, config, key, name, wantHash string, hash func([]byte) (chain.Hash, error), into any) (chain.Hash, error) {
	if name == "" {
		return chain.Hash{}, fmt.Errorf("%w: %s has no %s", ErrGenesis, config, key)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return chain.Hash{}, fmt.Errorf("%w: %s: %w", ErrGenesis, key, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return chain.Hash{}, fmt.Errorf("%w: %s: %w", ErrGenesis, name, err)
	}
	got, err := hash(text)
	if err != nil {
		return chain.Hash{}, fmt.Errorf("%w: %s: %w", ErrGenesis, name, err)
	}
	if wantHash != "" && !strings.EqualFold(wantHash, got.String()) {
		return chain.Hash{}, fmt.Errorf("%w: %s has hash %s, %s says %s", ErrGenesisHash, name, got, config, wantHash)
	}
	return got, nil
}

func (g *Genesis) fill(conf *nodeConfig, byron *byronFile, shelley *shelleyFile) error {
	switch {
	case shelley.NetworkMagic > math.MaxUint32:
		return fmt.Errorf("networkMagic %d does not fit 32 bits", shelley.NetworkMagic)
	case byron.ProtocolConsts.ProtocolMagic != shelley.NetworkMagic:
		return fmt.Errorf("the Byron genesis is of network %d, the Shelley genesis of network %d", byron.ProtocolConsts.ProtocolMagic, shelley.NetworkMagic)
	case shelley.SecurityParam == 0 || byron.ProtocolConsts.K == 0:
		return fmt.Errorf("the security parameter is missing")
	case shelley.SecurityParam > 1<<24 || byron.ProtocolConsts.K > 1<<24:
		return fmt.Errorf("a security parameter of %d is out of reason", max(shelley.SecurityParam, byron.ProtocolConsts.K))
	case !(shelley.SlotLength > 0 && shelley.SlotLength < 1e6):
		return fmt.Errorf("slotLength %v is not a length of time in seconds", shelley.SlotLength)
	case shelley.EpochLength == 0:
		return fmt.Errorf("epochLength is missing")
	case byron.BlockVersionData.SlotDuration > 1e9:
		return fmt.Errorf("slotDuration %d is not a length of time in milliseconds", byron.BlockVersionData.SlotDuration)
	}
	g.Magic = uint32(shelley.NetworkMagic)
	g.Name = NetworkName(g.Magic)
	if shelley.NetworkID == "Mainnet" {
		g.NetworkID = 1
	}
	g.K = shelley.SecurityParam
	g.SystemStart = shelley.SystemStart.UTC()
	g.ByronSlot = time.Duration(byron.BlockVersionData.SlotDuration) * time.Millisecond
	g.ByronEpochSlots = 10 * byron.ProtocolConsts.K
	g.ShelleySlot = time.Duration(math.Round(shelley.SlotLength * float64(time.Second)))
	g.ShelleyEpochSlots = shelley.EpochLength
	g.ActiveSlots = shelley.ActiveSlotsCoeff
	g.ShelleyEpoch = knownShelleyEpoch(g.Magic)
	if conf.TestShelleyHardForkAtEpoch != nil {
		g.ShelleyEpoch = *conf.TestShelleyHardForkAtEpoch
	}
	if g.ShelleyEpoch != 0 {
		g.FirstHeight = 1
	}
	// A chain that begins in Allegra or later has been through the boundary
	// that removes vouchers before its first block, and one that begins in
	// Byron never makes Shelley's initial funds (consensus,
	// protocolInfoCardano).
	if at := conf.TestAllegraHardForkAtEpoch; at == nil || *at != 0 {
		if err := g.vouchers(byron.AvvmDistr, conf.RequiresNetworkMagic != "RequiresNoMagic"); err != nil {
			return err
		}
	}
	if err := g.balances(chain.Byron, byron.NonAvvmBalances, address.Parse); err != nil {
		return err
	}
	if g.ShelleyEpoch == 0 {
		if err := g.balances(chain.Shelley, shelley.InitialFunds, hex.DecodeString); err != nil {
			return err
		}
	}
	sortOutputs(g.Outputs[:g.AVVM])
	sortOutputs(g.Outputs[g.AVVM:])
	return nil
}

func (g *Genesis) balances(era chain.Era, funds map[string]lovelace, parse func(string) ([]byte, error)) error {
	for text, amount := range funds {
		addr, err := parse(text)
		if err != nil {
			return fmt.Errorf("address %q: %w", text, err)
		}
		g.Outputs = append(g.Outputs, genesisOutput(era, addr, uint64(amount)))
	}
	return nil
}

// vouchers adds the outputs of the AVVM distribution: keys in base64 (URL
// alphabet) and amounts.
func (g *Genesis) vouchers(distr map[string]lovelace, magic bool) error {
	for text, amount := range distr {
		key, err := base64.URLEncoding.DecodeString(text)
		if err != nil || len(key) != 32 {
			return fmt.Errorf("avvmDistr: %q is not a key of 32 bytes in base64", text)
		}
		g.Outputs = append(g.Outputs, genesisOutput(chain.Byron, g.redeemAddress(key, magic), uint64(amount)))
	}
	g.AVVM = len(g.Outputs)
	return nil
}

// redeemAddress returns the Byron address of a redemption key: payload [root,
// attributes, 2] with root blake2b-224 of SHA3-256 of [2, [2, key],
// attributes] (cardano-ledger-byron, Cardano.Chain.Common.Address).
func (g *Genesis) redeemAddress(key []byte, magic bool) []byte {
	const redeem = 0x02
	attributes := []byte{0xa0}
	if magic {
		inner := appendHead(nil, majorUint, uint64(g.Magic))
		attributes = appendHead([]byte{0xa1, 0x02}, majorBytes, uint64(len(inner)))
		attributes = append(attributes, inner...)
	}
	spending := append([]byte{0x83, redeem, 0x82, redeem, 0x58, byte(len(key))}, key...)
	outer := sha3.Sum256(append(spending, attributes...))
	root := address.KeyHash(outer[:])

	payload := append([]byte{0x83, 0x58, byte(len(root))}, root[:]...)
	payload = append(payload, attributes...)
	payload = append(payload, redeem)
	addr := appendHead([]byte{0x82, 0xd8, tagEncoded}, majorBytes, uint64(len(payload)))
	addr = append(addr, payload...)
	return appendHead(addr, majorUint, uint64(crc32.ChecksumIEEE(payload)))
}

func fileHash(text []byte) (chain.Hash, error) { return blake2b.Sum256(text), nil }

// canonicalJSONHash returns the hash of a Byron genesis file: of its canonical
// JSON, with keys sorted and no space.
func canonicalJSONHash(text []byte) (chain.Hash, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return chain.Hash{}, err
	}
	return blake2b.Sum256(appendCanonical(nil, v)), nil
}

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, key), ':')
			b = appendCanonical(b, v[key])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, element)
		}
		return append(b, ']')
	case string:
		return appendQuoted(b, v)
	case json.Number:
		return append(b, v...)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, "null"...)
}

// appendQuoted escapes what canonical JSON escapes: quote and backslash.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}
