package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// outputs goes over outputs and marks side by side and compares them with the
// journal, the chain and the head's counts.
func (c *checker) outputs(ctx context.Context) error {
	marks := c.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyMark}})
	defer marks.Close()
	marks.Rewind()
	var live, marked, lovelace, seen uint64
	total := int64(c.head.utxos + c.head.marks)
	if err := c.each(ctx, []byte{keyOutput}, "output", func(key, v []byte) error {
		if seen++; seen%8192 == 0 {
			c.o.Progress("outputs", int64(seen), total)
		}
		if len(key) != refKeySize {
			return fmt.Errorf("%w: key %x", ErrDamaged, key)
		}
		o := chain.Output{Ref: chain.TxInFromKey(key[1:])}
		by, spent, err := c.mark(marks, key[1:], &marked)
		if err != nil {
			return err
		}
		if err := decodeOutput(v, &o); err != nil {
			return fmt.Errorf("%s: %w", o.Ref, err)
		}
		c.output(&o, by, spent)
		if !spent {
			live++
			lovelace += o.Lovelace
		}
		if c.o.Output != nil {
			if err := c.o.Output(&o, spent); err != nil {
				c.bad("output", "%s: %v", o.Ref, err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for ; marks.Valid(); marks.Next() {
		marked++
		c.orphanMark(marks.Item().KeyCopy(nil))
	}
	for ref, s := range c.spends {
		c.bad("output", "%s, which block %s spends, is gone", ref, s.rec.link.At())
	}
	for ref, b := range c.births {
		c.bad("output", "%s, which block %s makes, is gone", ref, b.rec.link.At())
	}
	for _, r := range c.records {
		if r.made != r.sumMade && !r.old || r.used != r.sumUsed {
			c.bad("record", "block %s makes %d lovelace and spends %d, its record says %d and %d", r.link.At(), r.sumMade, r.sumUsed, r.made, r.used)
		}
	}
	h := &c.head
	if live != h.utxos {
		c.bad("counts", "%d outputs are unspent, the head says %d", live, h.utxos)
	}
	if lovelace != h.lovelace {
		c.bad("counts", "there are %d lovelace, the head says %d", lovelace, h.lovelace)
	}
	if marked != h.marks {
		c.bad("counts", "%d outputs are spent within reach of a rollback, the head says %d", marked, h.marks)
	}
	return nil
}

// mark moves the marks up to an output's and returns it.
func (c *checker) mark(marks *badger.Iterator, ref []byte, count *uint64) (by Spender, spent bool, err error) {
	for ; marks.Valid(); marks.Next() {
		item := marks.Item()
		switch bytes.Compare(item.Key()[1:], ref) {
		case -1:
			*count++
			c.orphanMark(item.KeyCopy(nil))
		case 0:
			*count++
			err = item.Value(func(v []byte) (err error) {
				by, err = decodeSpender(v)
				return err
			})
			marks.Next()
			if errors.Is(err, ErrDamaged) {
				c.bad("mark", "%v", err)
				err = nil
			}
			return by, true, err
		default:
			return by, false, nil
		}
	}
	return by, false, nil
}

func (c *checker) orphanMark(key []byte) {
	if len(key) != refKeySize {
		c.bad("mark", "key %x", key)
		return
	}
	c.bad("mark", "%s is marked as spent and not there", chain.TxInFromKey(key[1:]))
}

// output compares one with what the journal and the chain say of it.
func (c *checker) output(o *chain.Output, by Spender, spent bool) {
	if s, ok := c.spends[o.Ref]; ok {
		delete(c.spends, o.Ref)
		s.rec.sumUsed += o.Lovelace
		switch {
		case !spent:
			c.bad("mark", "%s is not marked, block %s spends it", o.Ref, s.rec.link.At())
		case by != s.by:
			c.bad("mark", "%s is spent by input %d of transaction %s, the journal says input %d of %s", o.Ref, by.Input, by.Tx, s.by.Input, s.by.Tx)
		}
	} else if spent {
		c.bad("mark", "%s is marked as spent by %s, no record says so", o.Ref, by.Tx)
	}
	if b, ok := c.births[o.Ref]; ok {
		delete(c.births, o.Ref)
		b.rec.sumMade += o.Lovelace
		if o.Height != b.rec.link.Height || o.Slot != b.rec.link.Point.Slot || o.TxIndex != b.index || o.Era != b.rec.link.Era {
			c.bad("output", "%s says that it was made at height %d, slot %d, by transaction %d; block %s made it by transaction %d", o.Ref, o.Height, o.Slot, o.TxIndex, b.rec.link.At(), b.index)
		}
		return
	}
	if o.Height == chain.OriginHeight {
		return
	}
	if r := c.records[chain.Position{Height: o.Height}]; r != nil && !r.old {
		c.bad("output", "%s says that it was made at height %d, the record of that block does not", o.Ref, o.Height)
	}
	switch {
	case o.Height > c.head.link.Height:
		c.bad("output", "%s was made at height %d, above the head", o.Ref, o.Height)
	case int(o.Height) < len(c.slots) && o.Slot != chain.Slot(c.slots[o.Height]):
		c.bad("output", "%s was made at height %d in slot %d, the block there has slot %d", o.Ref, o.Height, o.Slot, c.slots[o.Height])
	}
}

// archive looks at the spent outputs that an archive keeps.
func (c *checker) archive(ctx context.Context) error {
	err := c.each(ctx, []byte{keyGone}, "archive", func(key, v []byte) error {
		if len(key) != refKeySize {
			return fmt.Errorf("%w: key %x", ErrDamaged, key)
		}
		o := chain.Output{Ref: chain.TxInFromKey(key[1:])}
		by, err := decodeGone(v, &o)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Ref, err)
		}
		c.Spent++
		switch base := c.head.base.Height; {
		case !c.meta.archive:
			c.left++
		case by.Height > base:
			c.bad("archive", "%s was spent at height %d, within reach of a rollback", o.Ref, by.Height)
		case o.Height > by.Height:
			c.bad("archive", "%s was made at height %d and spent at %d", o.Ref, o.Height, by.Height)
		}
		if _, err := c.txn.Get(appendRefKey(nil, keyOutput, o.Ref)); err == nil {
			c.bad("archive", "%s is also an output that was not spent for good", o.Ref)
		} else if !errors.Is(err, badger.ErrKeyNotFound) {
			return err
		}
		if c.o.Output != nil {
			if err := c.o.Output(&o, true); err != nil {
				c.bad("archive", "%s: %v", o.Ref, err)
			}
		}
		return nil
	})
	if c.left > 0 {
		c.note("%d spent outputs are left of an archive that was given up; the next start removes them", c.left)
	}
	return err
}

// keySum is a sum over keys that does not depend on their order: two lists of
// distinct keys have the same one if they are the same, and otherwise not.
type keySum struct {
	seeds *[2]maphash.Seed
	sum   [2]uint64
	n     int64
}

func (s *keySum) add(key []byte) {
	s.n++
	for i := range s.sum {
		s.sum[i] += maphash.Bytes(s.seeds[i], key)
	}
}

// indexes compares the index entries with those that the outputs ask for.
func (c *checker) indexes(ctx context.Context) error {
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	want, got := keySum{seeds: &seeds}, keySum{seeds: &seeds}
	for _, kind := range []byte{indexPayment, indexOther, indexStake, indexAsset} {
		if err := c.each(ctx, []byte{kind}, "index", func(key, v []byte) error {
			got.add(key)
			if len(v) > 0 {
				c.bad("index", "entry %x has a value", key)
			}
			if got.n%8192 == 0 {
				c.o.Progress("index entries", got.n, 0)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	c.Indexed = got.n
	if c.o.Terms == nil {
		return nil
	}
	if c.head.index == indexBuilding { // not all are there yet
		return c.strayEntries(ctx)
	}
	if err := c.entries(ctx, func(_ chain.TxIn, key []byte) error {
		want.add(key)
		return nil
	}); err != nil || want == got {
		return err
	}
	before := len(c.Findings)
	if err := c.entries(ctx, func(ref chain.TxIn, key []byte) error {
		_, err := c.txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			c.bad("index", "output %s has no entry %x", ref, key[:len(key)-chain.TxInSize])
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	if err := c.strayEntries(ctx); err != nil {
		return err
	}
	if len(c.Findings) == before {
		c.bad("index", "%d entries, %d are wanted", got.n, want.n)
	}
	return nil
}

// entries calls fn with every index entry that there should be, each once.
func (c *checker) entries(ctx context.Context, fn func(ref chain.TxIn, key []byte) error) error {
	if c.head.index == indexNone {
		return nil
	}
	seen := int64(0)
	return c.each(ctx, []byte{keyOutput}, "output", func(key, v []byte) error {
		if seen++; seen%8192 == 0 {
			c.o.Progress("indexes", seen, int64(c.head.utxos+c.head.marks))
		}
		if len(key) != refKeySize {
			return nil
		}
		o := chain.Output{Ref: chain.TxInFromKey(key[1:])}
		if err := decodeOutput(v, &o); err != nil {
			return nil //nolint:nilerr // outputs has said so
		}
		keys, err := c.keysOf(&o)
		if err != nil {
			c.bad("index", "%v", err)
		}
		for _, k := range keys {
			if err := fn(o.Ref, k); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *checker) keysOf(o *chain.Output) (keys [][]byte, err error) {
	s := Store{opts: Options{Terms: c.o.Terms}}
	var ops opset
	err = ops.entries(&s, o, true)
next:
	for i := range ops.ops {
		for _, k := range keys {
			if bytes.Equal(k, ops.ops[i].key) {
				continue next
			}
		}
		keys = append(keys, ops.ops[i].key)
	}
	return keys, err
}

// strayEntries names the entries that no output asks for.
func (c *checker) strayEntries(ctx context.Context) error {
	for _, kind := range []byte{indexPayment, indexOther, indexStake, indexAsset} {
		if err := c.each(ctx, []byte{kind}, "index", func(key, _ []byte) error {
			if len(key) < chain.TxInSize+1 || c.head.index == indexNone {
				c.bad("index", "entry %x should not be there", key)
				return nil
			}
			o := chain.Output{Ref: chain.TxInFromKey(key[len(key)-chain.TxInSize:])}
			found, err := get(c.txn, appendRefKey(nil, keyOutput, o.Ref), func(v []byte) error { return decodeOutput(bytes.Clone(v), &o) })
			if err != nil || !found {
				if err == nil {
					c.bad("index", "an entry names output %s, which is not there", o.Ref)
				}
				return err
			}
			keys, err := c.keysOf(&o)
			for _, k := range keys {
				if bytes.Equal(k, key) {
					return err
				}
			}
			c.bad("index", "an entry of output %s does not fit it", o.Ref)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
