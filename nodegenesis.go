package ourotail

import (
	"context"
	"fmt"
	"math/big"
	"strconv"

	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/ledger"
)

// NodeGenesis asks the node for the Shelley genesis that it was started with. It needs
// the node, on a connection of its own, but not Run. While the node is in Byron, whose
// ledger does not tell it, the error wraps chainsync.ErrNoQuery. See GenesisDifferences.
func (f *Follower) NodeGenesis(ctx context.Context) (chainsync.Genesis, error) {
	node, ok := f.node.(ledgerNode)
	if !ok {
		return chainsync.Genesis{}, errNoLedger
	}
	return node.genesis(ctx)
}

// GenesisDifferences says where a node's genesis is not the one that we follow it with:
// a sentence for each, none if they agree.
func GenesisDifferences(node chainsync.Genesis, ours *ledger.Genesis) (diffs []string) {
	for _, c := range []struct{ what, node, ours string }{
		{"the network magic", fmt.Sprint(node.Magic), fmt.Sprint(ours.Magic)},
		{"the network id", fmt.Sprint(node.NetworkID), fmt.Sprint(ours.NetworkID)},
		{"the system start", node.SystemStart.UTC().String(), ours.SystemStart.UTC().String()},
		{"the security parameter", fmt.Sprint(node.K), fmt.Sprint(ours.K)},
		{"the epoch length", fmt.Sprint(node.EpochSlots), fmt.Sprint(ours.ShelleyEpochSlots)},
		{"the slot length in seconds", node.SlotLength.RatString(), big.NewRat(int64(ours.ShelleySlot), 1e9).RatString()},
		{"the active slots coefficient", node.ActiveSlots.RatString(), decimal(ours.ActiveSlots)},
	} {
		if c.node != c.ours {
			diffs = append(diffs, fmt.Sprintf("%s is %s for the node, %s for us", c.what, c.node, c.ours))
		}
	}
	return diffs
}

// decimal is the fraction that the digits of a number in a file say: 0.05 is 1/20.
func decimal(v float64) string {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if r, ok := new(big.Rat).SetString(text); ok {
		return r.RatString()
	}
	return text
}
