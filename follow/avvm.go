package follow

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/resolve"
)

// retireAVVM adds to the first block of Allegra, before its transactions, the
// spending of the genesis redemption outputs that nobody redeemed: the ledger
// removes them at that boundary without a transaction (ledger: Allegra
// translation, returnRedeemAddrsToReserves). They are spent by the all-zero id.
func (f *Follower) retireAVVM(e *chain.Effects) error {
	if len(f.cfg.AVVM) == 0 || e.Era < chain.Allegra {
		return nil
	}
	if head, ok := f.points.Head(); ok && head.Era >= chain.Allegra {
		return nil
	}
	if err := f.commit(); err != nil { // so that the store knows what is left of them
		return err
	}
	left, err := f.cfg.Store.Live(f.cfg.AVVM)
	if err != nil {
		return err
	}
	resolve.Retire(e, left)
	return nil
}
