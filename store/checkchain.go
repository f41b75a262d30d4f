package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// journal reads all records: whether they decode and stand where they should,
// and what the set of outputs must look like after them.
func (c *checker) journal(ctx context.Context) error {
	c.records = map[chain.Position]*checkedRecord{}
	c.spends, c.births = map[chain.TxIn]spend{}, map[chain.TxIn]birth{}
	var rec record
	return c.each(ctx, []byte{keyRecord}, "record", func(key, v []byte) error {
		pos, err := positionFromKey(key)
		if err != nil {
			return err
		}
		if err := rec.decode(v); err != nil {
			return fmt.Errorf("height %d: %w", pos.Height, err)
		}
		c.Records++
		switch {
		case rec.link.Position() != pos:
			c.bad("record", "that at height %d is of %s", pos.Height, rec.link.At())
		case pos.Compare(c.head.link.Position()) > 0:
			c.bad("record", "block %s lies above the head, %s", rec.link.At(), c.head.link.At())
		case pos.Compare(c.head.swept) <= 0:
			c.bad("record", "block %s was swept already", rec.link.At())
		}
		r := &checkedRecord{link: rec.link, raw: rec.raw, made: rec.made, used: rec.used}
		r.old = pos.Compare(c.head.base.Position()) <= 0
		c.records[pos] = r
		from, born, index := 0, 0, -1
		for _, tx := range rec.txs {
			if !tx.ID.IsZero() {
				index++
			}
			by := Spender{Height: rec.link.Height, TxIndex: uint32(max(index, 0)), Tx: tx.ID}
			for i, ref := range rec.spent[from:tx.Spent] {
				by.Input = uint32(i)
				if before, twice := c.spends[ref]; twice {
					c.bad("record", "output %s is spent by block %s and by block %s", ref, before.rec.link.At(), rec.link.At())
				}
				c.spends[ref] = spend{by, r}
			}
			for _, ref := range rec.created[born:tx.Created] {
				if r.old {
					continue // a block without a record may have spent it for good
				}
				if before, twice := c.births[ref]; twice {
					c.bad("record", "output %s is made by block %s and by block %s", ref, before.rec.link.At(), rec.link.At())
				}
				c.births[ref] = birth{uint32(max(index, 0)), r}
			}
			from, born = tx.Spent, tx.Created
		}
		return nil
	})
}

// walk goes down the chain from the head to its first block.
func (c *checker) walk(ctx context.Context) error {
	w := newWalker(c.txn)
	defer w.close()
	head := c.head.link
	if head.Height > 1<<31 { // a length that nothing could fill
		c.bad("head", "it has height %d", head.Height)
		return nil
	}
	c.slots = make([]uint32, head.Height+1)
	err := w.seek(head.Position())
	above, based, top := originLink(), c.head.base.Point.IsOrigin(), true
	for ; err == nil; err = w.next() {
		l, ok := w.link()
		if !ok {
			break
		}
		if c.Links++; c.Links%8192 == 0 {
			c.o.Progress("blocks", c.Links, int64(head.Height)+1)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		switch {
		case top && l != head:
			c.bad("chain", "its newest block is %s, the head %s", l.At(), head.At())
		case !top && !follows(l, above):
			c.bad("chain", "block %s does not follow %s", above.At(), l.At())
		}
		if above, top = l, false; l == c.head.base {
			based = true
		}
		if l.Height >= 0 && !l.Boundary && l.Point.Slot <= 1<<32-1 {
			c.slots[l.Height] = uint32(l.Point.Slot)
		}
		pos := l.Position()
		if _, recorded := c.records[pos]; !recorded && pos.Compare(c.head.base.Position()) > 0 {
			c.bad("record", "block %s above the floor has none", l.At())
		}
	}
	switch {
	case errors.Is(err, ErrDamaged):
		c.bad("chain", "%v", err)
	case err != nil:
		return err
	case top && !head.Point.IsOrigin():
		c.bad("chain", "it has no block, the head is %s", head.At())
	case !top && !follows(originLink(), above):
		c.bad("chain", "it begins at %s", above.At())
	}
	if !based {
		c.bad("chain", "the floor, %s, is not on it", c.head.base.At())
	}
	return nil
}

// packs looks at what the walk down does not: packs above the head, and links
// that are also in a record.
func (c *checker) packs(ctx context.Context) error {
	return c.each(ctx, []byte{keyPoints}, "points", func(key, v []byte) error {
		p, err := decodePack(key, v)
		if err != nil {
			return err
		}
		for i := range p.len() {
			pos := p.position(i)
			if pos.Compare(c.head.base.Position()) > 0 {
				c.bad("points", "block %s lies above the floor, %s", p.link(i).At(), c.head.base.At())
			}
			if _, also := c.records[pos]; also {
				c.bad("points", "block %s has a record, too", p.link(i).At())
			}
		}
		return nil
	})
}

// raw compares the blocks' own bytes with their records.
func (c *checker) raw(ctx context.Context) error {
	dir := filepath.Join(c.o.Dir, "db")
	files, err := segment.ReadOnly(dir)
	if err != nil {
		return err
	}
	defer files.Close() // it was only read
	c.blocks = files
	var block []byte
	for done, pos := range slices.SortedFunc(maps.Keys(c.records), chain.Position.Compare) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done%64 == 0 {
			c.o.Progress("raw blocks", int64(done), int64(len(c.records)))
		}
		r := c.records[pos]
		block, err = c.bytes(r.link, r.raw, block)
		if err != nil {
			return err
		}
		if c.o.Block == nil || len(block) == 0 {
			continue
		}
		if err := c.o.Block(r.link, block); err != nil {
			c.bad("raw block", "%s: %v", r.link.At(), err)
		}
	}
	return c.undone(ctx)
}

// bytes reads what belongs to a block, reusing b. It is empty if that is damaged.
func (c *checker) bytes(l chain.Link, p segment.Place, b []byte) ([]byte, error) {
	b, err := c.blocks.Read(p, b[:0])
	var damaged *segment.DamagedError
	if errors.As(err, &damaged) {
		c.bad("raw block", "%s: %v", l.At(), err)
		err = nil
	}
	c.RawBytes += int64(len(b))
	return b, err
}

// undone looks at the orphans: they must read whole.
func (c *checker) undone(ctx context.Context) error {
	var rec record
	var buf []byte
	return c.each(ctx, []byte{keyOrphan}, "orphan", func(key, v []byte) error {
		contents, err := decodeOrphan(v, &rec)
		if err != nil {
			return err
		}
		l := rec.link
		c.Orphans++
		if string(key[1:]) != string(l.Point.Hash[:]) {
			c.bad("orphan", "%s is under the key of %x", l.At(), key[1:])
		}
		if r := c.records[l.Position()]; r != nil && r.link == l {
			c.bad("orphan", "%s is on our chain", l.At())
		}
		if buf, err = c.bytes(l, rec.raw, buf); err != nil {
			return err
		}
		if buf, err = c.bytes(l, contents, buf); err != nil || len(buf) == 0 && contents.Size > 0 {
			return err
		}
		return decodeContents(buf, &rec, new(chain.Effects))
	})
}
