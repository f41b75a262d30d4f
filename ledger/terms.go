package ledger

import (
	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// Terms emits the sources under which a store indexes an output: its address, stake
// credential and assets. A store asks when the output comes and again when it goes,
// so the answer never changes for an output.
func Terms(o *chain.Output, emit func(chain.Source)) error {
	out, err := DecodeOutput(o.Era, o.Raw)
	if err != nil {
		return err
	}
	emit(chain.Source{Kind: chain.SourceAddress, Key: string(out.Address)})
	if stake, ok := address.Stake(out.Address); ok {
		emit(chain.Source{Kind: chain.SourceStake, Key: string(stake.Hash[:])})
	}
	for _, a := range out.Assets {
		emit(chain.Source{Kind: chain.SourceAsset, Key: string(a.Policy[:]) + string(a.Name)})
	}
	return nil
}
