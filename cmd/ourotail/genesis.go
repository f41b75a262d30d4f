package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chainsync"
)

// genesisFacts are what params --genesis prints as JSON, by the names of the genesis
// file; fractions are exact.
type genesisFacts struct {
	SystemStart       time.Time `json:"systemStart"`
	NetworkMagic      uint32    `json:"networkMagic"`
	NetworkID         string    `json:"networkId"`
	ActiveSlotsCoeff  string    `json:"activeSlotsCoeff"`
	SecurityParam     uint64    `json:"securityParam"`
	EpochLength       uint64    `json:"epochLength"`
	SlotLength        string    `json:"slotLength"`
	SlotsPerKESPeriod uint64    `json:"slotsPerKESPeriod"`
	MaxKESEvolutions  uint64    `json:"maxKESEvolutions"`
	UpdateQuorum      uint64    `json:"updateQuorum"`
	MaxLovelaceSupply uint64    `json:"maxLovelaceSupply"`
	// Compared is false where we have no genesis, only a network magic.
	Compared    bool     `json:"compared"`
	Differences []string `json:"differences"`
	CBOR        string   `json:"cbor"`
}

// showGenesis prints the node's genesis and fails if it is not the one that we would
// follow it with.
func showGenesis(cmd *cobra.Command, cfg chainsync.Config, asJSON bool) error {
	g, err := chainsync.ReadGenesis(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	facts := genesisFacts{SystemStart: g.SystemStart, NetworkMagic: g.Magic, NetworkID: "Testnet", ActiveSlotsCoeff: g.ActiveSlots.RatString(),
		SecurityParam: g.K, EpochLength: g.EpochSlots, SlotLength: g.SlotLength.RatString(), SlotsPerKESPeriod: g.SlotsPerKESPeriod,
		MaxKESEvolutions: g.MaxKESEvolutions, UpdateQuorum: g.UpdateQuorum, MaxLovelaceSupply: g.MaxLovelace,
		Differences: []string{}, CBOR: hex.EncodeToString(g.Raw)}
	if g.NetworkID == 1 {
		facts.NetworkID = "Mainnet"
	}
	if ours, err := network(cmd); err == nil { // a magic of its own has no genesis, and nodeConfig was content with it
		facts.Compared = true
		facts.Differences = append(facts.Differences, ourotail.GenesisDifferences(g, ours)...)
	}
	if err := printGenesis(cmd, facts, asJSON); err != nil || len(facts.Differences) == 0 {
		return err
	}
	return coded(exitDiverged, fmt.Errorf("the node was started with another genesis than ours: %s", strings.Join(facts.Differences, "; ")))
}

func printGenesis(cmd *cobra.Command, facts genesisFacts, asJSON bool) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if asJSON {
		_, err = fmt.Fprintf(out, "%s\n", text)
		return err
	}
	return printJSON(out, "", text)
}
