package ourotail

import (
	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

// terms emits the sources under which the store indexes an output. The store
// asks again when it removes entries: the answer never changes for an output.
func terms(o *chain.Output, emit func(chain.Source)) error {
	out, err := ledger.DecodeOutput(o.Era, o.Raw)
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
