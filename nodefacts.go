package ourotail

import (
	"context"
	"errors"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/chainsync/txwatch"
	"github.com/ourotail/ourotail/ledger/eras"
)

// ledgerNode is a node that can be asked for more than its chain. Each question
// goes over a connection of its own: whatever becomes of it, following goes on.
type ledgerNode interface {
	// facts asks for calendar and parameters at the node's newest block. While
	// that is in Byron there are no parameters, and no error. The calendar may come
	// with an error.
	facts(ctx context.Context) (eras.Summaries, *chainsync.Params, error)
	// mempool connects to look into the mempool.
	mempool(ctx context.Context) (txwatch.Conn, error)
	// mempoolSize asks how full the mempool is.
	mempoolSize(ctx context.Context) (chainsync.MempoolSizes, error)
	// genesis asks for what the node was started with.
	genesis(ctx context.Context) (chainsync.Genesis, error)
	// submit hands in a transaction made for the era that the ledger is in.
	submit(ctx context.Context, tx []byte) (chain.TxID, error)
}

func (n socketNode) facts(ctx context.Context) (eras.Summaries, *chainsync.Params, error) {
	c, err := chainsync.Dial(ctx, n.cfg)
	if err != nil {
		return eras.Summaries{}, nil, err
	}
	defer c.Close()
	s, err := c.AcquireTip(ctx)
	if err != nil {
		return eras.Summaries{}, nil, err
	}
	defer s.Release()
	calendar, err := s.Eras(ctx)
	if err != nil {
		return eras.Summaries{}, nil, err
	}
	p, err := s.Params(ctx)
	if errors.Is(err, chainsync.ErrNoQuery) {
		return calendar, nil, nil
	}
	if err != nil {
		return calendar, nil, err
	}
	return calendar, &p, nil
}

func (n socketNode) mempool(ctx context.Context) (txwatch.Conn, error) {
	return txwatch.Node(n.cfg)(ctx)
}

func (n socketNode) mempoolSize(ctx context.Context) (chainsync.MempoolSizes, error) {
	c, err := chainsync.Dial(ctx, n.cfg)
	if err != nil {
		return chainsync.MempoolSizes{}, err
	}
	defer c.Close()
	m, err := c.Mempool(ctx)
	if err != nil {
		return chainsync.MempoolSizes{}, err
	}
	defer m.Release()
	return m.Sizes(ctx)
}

func (n socketNode) genesis(ctx context.Context) (chainsync.Genesis, error) {
	return chainsync.ReadGenesis(ctx, n.cfg)
}

func (n socketNode) submit(ctx context.Context, tx []byte) (chain.TxID, error) {
	c, err := chainsync.Dial(ctx, n.cfg)
	if err != nil {
		return chain.TxID{}, err
	}
	defer c.Close()
	return c.Submit(ctx, 0, tx)
}

// How often is looked whether the node has to be asked again, and into its
// mempool.
const (
	factsEvery   = 500 * time.Millisecond
	mempoolEvery = txwatch.DefaultInterval
)
