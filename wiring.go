package ourotail

import (
	"context"
	"errors"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
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

// followStore is the store as follow sees it.
type followStore struct{ *store.Store }

func (s followStore) Head() chain.Link      { return s.State().Head }
func (s followStore) Highest() chain.Height { return s.State().Highest }
func (s followStore) Floor() chain.At       { return s.State().Floor }

func (s followStore) LinkAt(p chain.Position) (chain.Link, bool, error) {
	l, err := s.Store.LinkAt(p)
	if errors.Is(err, store.ErrUnknownPoint) {
		return chain.Link{Height: chain.OriginHeight}, false, nil
	}
	return l, err == nil, err
}

func (s followStore) Live(refs []chain.TxIn) (live []chain.TxIn, err error) {
	v := s.Snapshot()
	defer v.Close()
	for _, ref := range refs {
		_, ok, err := v.Get(ref)
		if err != nil {
			return nil, err
		}
		if ok {
			live = append(live, ref)
		}
	}
	return live, nil
}

func (s followStore) Rollback(ctx context.Context, to chain.Point) error {
	_, err := s.Store.Rollback(ctx, to)
	return err
}
