package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// Indexed tells whether UTxOs answers from an index; if not it scans the whole
// set.
func (v *Snapshot) Indexed() bool { return v.head.index == indexBuilt }

// UTxOs calls fn for every unspent output of a source, each once: for everything
// and for a transaction in ascending order of reference, otherwise in no order
// that means anything. Without an index it reads the whole set (Indexed). The
// output and its bytes are valid within the call. An error of fn ends it and is
// returned; so does the end of ctx.
func (v *Snapshot) UTxOs(ctx context.Context, src chain.Source, fn func(*chain.Output) error) error {
	if err := v.begin(); err != nil {
		return err
	}
	defer v.end()
	switch src.Kind {
	case chain.SourceAll:
		return v.everything(ctx, fn)
	case chain.SourceTx:
		return v.scan(ctx, append([]byte{keyOutput}, src.Key...), fn)
	case chain.SourceInput:
		if len(src.Key) != chain.TxInSize {
			return fmt.Errorf("a reference of %d bytes", len(src.Key))
		}
		o, ok, err := v.Get(chain.TxInFromKey([]byte(src.Key)))
		if err != nil || !ok {
			return err
		}
		return fn(&o)
	}
	if v.Indexed() {
		return v.indexScan(ctx, src, fn)
	}
	if v.store.opts.Terms == nil {
		return fmt.Errorf("look for outputs: %w", ErrNoTerms)
	}
	return v.scan(ctx, []byte{keyOutput}, func(o *chain.Output) error {
		hit := false
		if err := v.store.opts.Terms(o, func(term chain.Source) { hit = hit || term == src }); err != nil {
			return fmt.Errorf("index terms of %s: %w", o.Ref, err)
		}
		if !hit {
			return nil
		}
		return fn(o)
	})
}

// everything goes over all outputs and counts them: a damaged block hides what
// is in it.
func (v *Snapshot) everything(ctx context.Context, fn func(*chain.Output) error) error {
	n := uint64(0)
	if err := v.scan(ctx, []byte{keyOutput}, func(o *chain.Output) error {
		n++
		return fn(o)
	}); err != nil {
		return err
	}
	if n == v.head.utxos {
		return nil
	}
	if err := v.store.verify(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: %d outputs are unspent, the head says %d", ErrDamaged, n, v.head.utxos)
}

// scan goes over outputs by key.
func (v *Snapshot) scan(ctx context.Context, prefix []byte, fn func(*chain.Output) error) error {
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	var o chain.Output
	var key []byte
	marked := v.head.marks > 0
	for n := 0; ; n++ {
		if n == 0 {
			it.Rewind()
		} else {
			it.Next()
		}
		if !it.Valid() {
			return nil
		}
		if n%64 == 0 && (ctx.Err() != nil || v.store.closed.Load()) {
			return cmp.Or(ctx.Err(), ErrClosed)
		}
		item := it.Item()
		if len(item.Key()) != refKeySize {
			return fmt.Errorf("%w: output key %x", ErrDamaged, item.Key())
		}
		o = chain.Output{Ref: chain.TxInFromKey(item.Key()[1:])}
		if marked {
			key = appendRefKey(key[:0], keyMark, o.Ref)
			spent, err := get(v.txn, key, func([]byte) error { return nil })
			if err != nil {
				return err
			}
			if spent {
				continue
			}
		}
		if err := item.Value(func(b []byte) error {
			if err := decodeOutput(b, &o); err != nil {
				return err
			}
			return fn(&o)
		}); err != nil {
			return err
		}
	}
}

// indexScan goes over index entries and looks up what they name.
func (v *Snapshot) indexScan(ctx context.Context, src chain.Source, fn func(*chain.Output) error) error {
	prefix, exact := sourcePrefix(src)
	if prefix == nil {
		return fmt.Errorf("no index answers a source of kind %d with %d bytes", src.Kind, len(src.Key))
	}
	it := v.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	var a arena
	seen := map[chain.TxIn]struct{}{} // an output holds several assets of one policy
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if n++; n%64 == 0 && (ctx.Err() != nil || v.store.closed.Load()) {
			return cmp.Or(ctx.Err(), ErrClosed)
		}
		key := it.Item().Key()
		if len(key) < len(prefix)+chain.TxInSize || exact && len(key) != len(prefix)+chain.TxInSize {
			continue
		}
		ref := chain.TxInFromKey(key[len(key)-chain.TxInSize:])
		if src.Kind == chain.SourcePolicy {
			if _, twice := seen[ref]; twice {
				continue
			}
			seen[ref] = struct{}{}
		}
		a.reset()
		o := chain.Output{Ref: ref}
		ok, err := lookUp(v.txn, v.head.marks > 0, &a, &o)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := fn(&o); err != nil {
			return err
		}
	}
	return nil
}
