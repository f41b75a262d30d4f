package ourotail

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// openFiles opens the folder of Config.Immutable.
func openFiles(cfg Config) (*immutabledb.Folder, error) {
	block := ledger.Block{ByronEpochSlots: cfg.Genesis.ByronEpochSlots}
	return immutabledb.Open(cfg.Immutable, immutabledb.Options{
		ChunkSlots: cfg.Genesis.ByronEpochSlots,
		K:          chain.Height(cfg.Genesis.K),
		Link: func(raw []byte) (chain.Link, error) {
			err := block.Walk(raw)
			return block.Link, err
		},
	})
}

// dialFiles connects to the node's files if they go on above our head, and to
// nothing, with no error, if they do not. After their turn the socket has one,
// whatever has been appended meanwhile: a session there begins at our head.
func (f *Follower) dialFiles(ctx context.Context) (follow.Conn, error) {
	if f.cfg.Immutable == "" || f.overFiles {
		f.overFiles = false
		return nil, nil
	}
	files, err := openFiles(f.cfg)
	if err != nil {
		return nil, err
	}
	head := f.store.Head()
	end, ok, err := files.End()
	if err != nil {
		return nil, err
	}
	if !ok || end.Height <= head.Height {
		return nil, nil
	}
	tip, err := f.askAboutFiles(ctx, files, end)
	if err != nil {
		return nil, err
	}
	f.overFiles = true
	f.cfg.Logger.Info("reading the node's files", "dir", files.Dir(), "head", head.At(), "end", end.At(), "node", tip)
	return f.watch.watches(&filesConn{files.Conn(end, tip), files, f.store}), nil
}

// askAboutFiles asks the node for its tip and whether it knows the files: those of
// another chain must not be followed to where no rollback leads back from.
// chain.Origin is the answer of a node that is not there, or not yet.
func (f *Follower) askAboutFiles(ctx context.Context, files *immutabledb.Folder, end chain.Link) (chain.Tip, error) {
	points, err := files.Points(end)
	if err != nil {
		return chain.Origin, err
	}
	c, err := f.node.dial(ctx)
	if err == nil {
		defer c.Close()
		var found chain.Point
		var known bool
		var tip chain.Tip
		if found, known, tip, err = c.Intersect(ctx, points); err == nil {
			f.connected.Store(true)
			switch {
			case tip.IsOrigin():
				return chain.Origin, nil
			case !known, found != end.Point && tip.Height > end.Height:
				return chain.Origin, files.NotOurs(fmt.Errorf("the node, whose tip is %s, does not have their last block %s", tip, end.At()))
			}
			return tip, nil
		}
	}
	if ctx.Err() != nil {
		return chain.Origin, ctx.Err()
	}
	var node *chainsync.Error
	if errors.As(err, &node) && !chainsync.Retryable(err) {
		return chain.Origin, err // the wrong network, no permission: better said now than at the end of the files
	}
	f.cfg.Logger.Info("the node does not answer yet, beginning with its files", "error", err)
	return chain.Origin, nil
}

// filesConn is the files as follow sees them: their end is no failure, and a
// chain that is not ours is the files' fault, not the node's.
type filesConn struct {
	*immutabledb.Conn
	files *immutabledb.Folder
	store *store.Store
}

func (c *filesConn) Intersect(ctx context.Context, points []chain.Point) (chain.Point, bool, chain.Tip, error) {
	found, ok, tip, err := c.Conn.Intersect(ctx, points)
	// Origin is on every chain. It is an answer to a head that can go back so far.
	if err == nil && (!ok || found.IsOrigin() && !c.store.Floor().IsOrigin()) {
		err = c.files.NotOurs(fmt.Errorf("neither the head %s of the data directory nor any of the last blocks below it is in them", c.store.Head().At()))
	}
	return found, ok, tip, err
}

func (c *filesConn) Next(ctx context.Context) (chain.Messages, error) {
	m, err := c.Conn.Next(ctx)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %s, end of the files", follow.ErrHandover, c.files.Dir())
	}
	return m, err
}
