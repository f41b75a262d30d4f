package follow

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// bufferBlocks hands the committed batch to the hub. The publish lock is held.
// Far from the tip, with nobody subscribed, no AppliedBlock is built.
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
		b, err := f.builder.Build(e, f.createdAt)
		if err == nil {
			var fl func()
			if fl, err = f.cfg.Hub.BufferBlock(b); err == nil {
				flushes = append(flushes, fl)
				continue
			}
		}
		return flush, &FatalError{Op: "publishing", At: e.At(), Cause: fmt.Errorf("the block is committed but could not be published: %w", err)}
	}
	return flush, nil
}

// createdAt names the block at a height if it is within the points held, and
// origin if it is older: that is all a subscriber may rely on (contract 3.3).
func (f *Follower) createdAt(height chain.Height) chain.At {
	if l, ok := f.points.At(height); ok {
		return l.At()
	}
	return chain.Origin
}
