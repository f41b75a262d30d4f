package follow

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// bufferBlocks hands the committed batch to the hub. The publish lock is held.
// With nobody subscribed no AppliedBlock is built.
func (f *Follower) bufferBlocks() (func(), error) {
	blocks := f.open.blocks
	if f.cfg.Hub.Subscribers() == 0 {
		// Skip what has no journal record: the hub could not go back to it anyway.
		n := 0
		var last chain.Link
		for n < len(blocks) && !blocks[n].Journal {
			if !blocks[n].Boundary {
				last = blocks[n].Link
			}
			n++
		}
		if !last.Point.IsOrigin() {
			f.cfg.Hub.Skip(last.At())
		}
		blocks = blocks[n:]
	}
	var flushes []func()
	flush := func() {
		for _, fl := range flushes {
			fl()
		}
	}
	for _, e := range blocks {
		if e.Boundary {
			continue // the hub never sees one (contract 1.6)
		}
		ok, fl, err := f.cfg.Hub.Pass(e.At(), e.Txs)
		if err == nil && !ok {
			var b *chain.AppliedBlock
			if b, err = f.builder.Build(e, f.createdAt); err == nil {
				fl, err = f.cfg.Hub.BufferBlock(b)
			}
		}
		if err == nil {
			flushes = append(flushes, fl)
			continue
		}
		return flush, &FatalError{Op: "publishing", At: e.At(), Cause: fmt.Errorf("the block is committed but could not be published: %w", err)}
	}
	return flush, nil
}

// createdAt names the block at a height of our chain.
func (f *Follower) createdAt(height chain.Height) (chain.At, error) {
	l, ok := f.points.At(height)
	if !ok {
		var err error
		if l, ok, err = f.cfg.Store.LinkAt(chain.Position{Height: height}); err != nil {
			return chain.Origin, err
		}
	}
	if !ok {
		return chain.Origin, fmt.Errorf("no block is kept for height %d", height)
	}
	return l.At(), nil
}
