package store

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// Made calls fn for every output of a transaction that is kept, each once and in no
// order that means anything: the unspent ones, those spent while that can be undone,
// and in an archive those spent for good. It reads no others, whatever their indices
// are. The output and its bytes are valid within the call.
func (v *Snapshot) Made(ctx context.Context, id chain.TxID, fn func(*chain.Output) error) error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	if err := v.made(ctx, keyOutput, id, decodeOutput, fn); err != nil {
		return err
	}
	return v.made(ctx, keyGone, id, func(b []byte, o *chain.Output) error {
		_, err := decodeGone(b, o)
		return err
	}, fn)
}

func (v *Snapshot) made(ctx context.Context, kind byte, id chain.TxID, decode func([]byte, *chain.Output) error, fn func(*chain.Output) error) error {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: append([]byte{kind}, id[:]...)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		item := it.Item()
		if len(item.Key()) != refKeySize {
			return fmt.Errorf("%w: output key %x", ErrDamaged, item.Key())
		}
		o := chain.Output{Ref: chain.TxInFromKey(item.Key()[1:])}
		if err := item.Value(func(b []byte) error {
			if err := decode(b, &o); err != nil {
				return err
			}
			return fn(&o)
		}); err != nil {
			return err
		}
	}
	return nil
}
