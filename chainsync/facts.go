package chainsync

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger/eras"
)

// Queries about the chain, and the numbers of those for an era (consensus:
// Ledger/Query.hs, Shelley/Ledger/Query.hs).
const (
	querySystemStart = 1
	queryBlockNo     = 2
	queryPoint       = 3

	queryEpochNo        = 1
	queryCurrentPParams = 3
)

// Params are the protocol parameters that hold at a point. Package ledger/params
// reads Raw.
type Params struct {
	At    chain.At // the block after which the ledger has them
	Epoch uint64
	Raw   []byte // as the node encodes them; the era tells how to read it
	Era   chain.Era
}

// ReadParams asks the node for the parameters at its newest block, on a
// connection of its own, which ends by Config.HandshakeTimeout plus
// Config.AnswerTimeout for each of some five questions, or with ctx. They change
// at the boundary of an epoch only. While the chain is in Byron the error is of
// kind ErrNoQuery.
func ReadParams(ctx context.Context, cfg Config) (Params, error) {
	c, err := Dial(ctx, cfg)
	if err != nil {
		return Params{}, err
	}
	defer c.Close()
	s, err := c.AcquireTip(ctx)
	if err != nil {
		return Params{}, err
	}
	defer s.Release()
	return s.Params(ctx)
}

// ReadEras asks the node for its calendar in the same way.
func ReadEras(ctx context.Context, cfg Config) (eras.Summaries, error) {
	c, err := Dial(ctx, cfg)
	if err != nil {
		return eras.Summaries{}, err
	}
	defer c.Close()
	s, err := c.AcquireTip(ctx)
	if err != nil {
		return eras.Summaries{}, err
	}
	defer s.Release()
	return s.Eras(ctx)
}

// Params returns the protocol parameters. In Byron, which has others, the error
// is of kind ErrNoQuery.
func (s *LedgerState) Params(ctx context.Context) (Params, error) {
	p := Params{Era: s.era}
	if s.era == chain.Byron {
		return p, s.c.problem(s.q.op, ErrNoQuery, errors.New("protocol parameters, in byron"), "")
	}
	var err error
	if p.Raw, err = s.queryEra(ctx, []any{queryCurrentPParams}); err != nil {
		return p, err
	}
	raw, err := s.queryEra(ctx, []any{queryEpochNo})
	if err != nil {
		return p, err
	}
	d := decoder{b: raw}
	if p.Epoch = d.uint("epoch"); d.end() != nil {
		return p, s.c.broken(d.end())
	}
	p.At.Point = s.at
	p.At.Height, err = s.Height(ctx)
	return p, err
}

// Height returns the height of the point; chain.OriginHeight for origin.
func (s *LedgerState) Height(ctx context.Context) (chain.Height, error) {
	answer, err := s.query(ctx, []any{queryBlockNo})
	if err != nil {
		return 0, err
	}
	// [0] or [1, number] (cardano-slotting, WithOrigin).
	d := decoder{b: answer}
	items, known, height := d.array("height"), d.uint("height"), uint64(0)
	switch {
	case d.err == nil && items == 1 && known == 0:
		return chain.OriginHeight, s.broken(d.end())
	case d.err == nil && (items != 2 || known != 1):
		d.fail("height of %d items", items)
	default:
		if height = d.uint("height"); d.err == nil && height > math.MaxInt64 {
			d.fail("height %d", height)
		}
	}
	return chain.Height(height), s.broken(d.end())
}

// Eras returns the calendar that the ledger is certain of: see package
// ledger/eras. Its horizon moves on with the chain.
func (s *LedgerState) Eras(ctx context.Context) (eras.Summaries, error) {
	answer, err := s.query(ctx, []any{querySystemStart})
	if err != nil {
		return eras.Summaries{}, err
	}
	start, err := eras.DecodeSystemStart(answer)
	if err != nil {
		return eras.Summaries{}, s.broken(fmt.Errorf("%w: %w", ErrMalformed, err))
	}
	// [0, [2, [0]]]: GetInterpreter.
	if answer, err = s.query(ctx, []any{0, []any{2, []any{0}}}); err != nil {
		return eras.Summaries{}, err
	}
	out, err := eras.Decode(start, answer)
	if err != nil {
		return eras.Summaries{}, s.broken(fmt.Errorf("%w: %w", ErrMalformed, err))
	}
	return out, nil
}

// point asks where the state is.
func (s *LedgerState) point(ctx context.Context) (chain.Point, error) {
	answer, err := s.query(ctx, []any{queryPoint})
	if err != nil {
		return chain.Point{}, err
	}
	d := decoder{b: answer}
	p := d.point()
	return p, s.broken(d.end())
}

// queryEra asks a query for the state's era and returns the bytes of the answer.
func (s *LedgerState) queryEra(ctx context.Context, q any) ([]byte, error) {
	answer, err := s.query(ctx, []any{0, []any{0, []any{int(s.era - chain.Byron), q}}})
	if err != nil {
		return nil, err
	}
	d := decoder{b: answer}
	err = d.ifCurrent()
	switch {
	case errors.Is(err, ErrEra):
		return nil, s.c.problem(s.q.op, ErrEra, strip(err, ErrEra), "")
	case err != nil:
		return nil, s.c.broken(err)
	}
	return answer[d.off:], nil
}

// broken is Conn.broken, and nil for nil.
func (s *LedgerState) broken(err error) error {
	if err == nil {
		return nil
	}
	return s.c.broken(err)
}

// end is the decoder's error, or that there are bytes left, of a message that is
// complete.
func (d *decoder) end() error {
	if d.err == nil && d.off != len(d.b) {
		d.fail("%d bytes after the end", len(d.b)-d.off)
	}
	return whole(d.err)
}
