package devnode

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// generator grows a chain.
type generator struct {
	mu     sync.Mutex // one change at a time; held longer than the chain's lock
	forge  *forge.Forge
	closed bool // by Chain.Close
}

// grower locks the generator, which the caller unlocks.
func (c *Chain) grower() (*generator, error) {
	if c.gen == nil {
		return nil, ErrNotGenerated
	}
	c.gen.mu.Lock()
	if c.gen.closed {
		c.gen.mu.Unlock()
		return nil, ErrNotGenerated
	}
	return c.gen, nil
}

// Generate returns an empty chain that Extend and Fork let grow: the same
// calls with the same options give the same blocks. Errors wrap
// forge.ErrOptions.
func Generate(opts forge.Options) (*Chain, error) {
	f, err := forge.New(opts)
	if err != nil {
		return nil, err
	}
	c := NewChain()
	c.gen = &generator{forge: f}
	return c, nil
}

// Oracle returns the ledger of a generated chain, nil of any other.
func (c *Chain) Oracle() *forge.Oracle {
	if c.gen == nil {
		return nil
	}
	return c.gen.forge.Oracle()
}

// Genesis returns what a generated chain starts from, nil of any other.
func (c *Chain) Genesis() *forge.Genesis {
	if c.gen == nil {
		return nil
	}
	return c.gen.forge.Genesis()
}

// Wallet returns the addresses that a generated chain pays to again and again.
func (c *Chain) Wallet() [][]byte {
	if c.gen == nil {
		return nil
	}
	return c.gen.forge.Wallet()
}

// Extend makes n blocks on the tip, boundary blocks included, and shows each
// as soon as it is made. It returns ErrNotGenerated if the chain has no
// generator.
func (c *Chain) Extend(n int) error {
	gen, err := c.grower()
	if err != nil {
		return err
	}
	defer gen.mu.Unlock()
	for range n {
		if _, err := c.growLocked(gen, 0); err != nil {
			return err
		}
	}
	return nil
}

// growLocked makes one block of what is in the mempool and what is ordered, and
// shows it. The generator is locked.
func (c *Chain) growLocked(gen *generator, slot chain.Slot, orders ...forge.Order) ([]chain.TxID, error) {
	b, ids, err := gen.forge.SubmittedNext(slot, c.pool.ready(), orders...)
	if err != nil {
		return nil, fmt.Errorf("extend %v: %w", c.Tip(), err)
	}
	if err := c.Append(Block(b)); err != nil {
		return nil, err
	}
	c.pool.sift(gen.forge)
	return ids, nil
}

// ExtendAt makes one block in a given slot, or in the first possible one after
// that; see forge.NextAt.
func (c *Chain) ExtendAt(slot chain.Slot) error {
	gen, err := c.grower()
	if err != nil {
		return err
	}
	defer gen.mu.Unlock()
	_, err = c.growLocked(gen, slot)
	return err
}

// Include makes one block that begins with what is in the mempool and then has
// the transactions ordered, whose ids it returns; see forge.NextWith.
func (c *Chain) Include(orders ...forge.Order) ([]chain.TxID, error) {
	gen, err := c.grower()
	if err != nil {
		return nil, err
	}
	defer gen.mu.Unlock()
	return c.growLocked(gen, 0, orders...)
}

// SlotAt returns the slot of a generated chain that is current at a time.
func (c *Chain) SlotAt(t time.Time) chain.Slot {
	if c.gen == nil {
		return 0
	}
	return c.gen.forge.SlotAt(t)
}

// Fork replaces the newest depth heights by n other blocks, in one step. Depth
// is at most the tip's height plus one. A boundary block that stands at the
// height below the fork stays. As with a node, transactions of the blocks that
// leave the chain do not return to the mempool.
func (c *Chain) Fork(depth, n int) error {
	gen, err := c.grower()
	if err != nil {
		return err
	}
	defer gen.mu.Unlock()
	f := gen.forge
	to := f.Head().Height - chain.Height(depth)
	if depth < 0 || to < chain.OriginHeight {
		return fmt.Errorf("fork of depth %d at %v: %w", depth, f.Head(), forge.ErrTooDeep)
	}
	undone, err := c.above(to)
	if err != nil {
		return fmt.Errorf("fork of depth %d: %w", depth, err)
	}
	if err := f.Rewind(undone); err != nil {
		return fmt.Errorf("fork of depth %d: %w", depth, err)
	}
	keep := f.Head().Point
	blocks := make([]Block, 0, n)
	for range n {
		b, _, err := f.SubmittedNext(0, c.pool.ready())
		if err != nil {
			return fmt.Errorf("fork at %v: %w", keep, err)
		}
		blocks = append(blocks, Block(b))
	}
	if err := c.Switch(keep, blocks...); err != nil {
		return err
	}
	c.pool.sift(f)
	return nil
}

// above counts the blocks above a height, all of which must be such as can be
// undone.
func (c *Chain) above(h chain.Height) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(c.blocks) && c.blocks[len(c.blocks)-1-n].Height > h {
		n++
	}
	if at := c.baseLen - 1; n == len(c.blocks) && at >= 0 && c.atLocked(at).Height > h {
		return 0, ErrSettled
	}
	return n, nil
}

// grow lets the chain grow until ctx ends.
func (s *Server) grow(ctx context.Context) error {
	t := time.NewTicker(s.cfg.Interval)
	defer t.Stop()
	r := rand.New(rand.NewPCG(s.cfg.Seed, 1))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		depth := 0
		if s.cfg.MaxDepth > 0 && r.Float64() < s.cfg.ForkRate {
			depth = forkDepth(r, min(s.cfg.MaxDepth, int(s.cfg.Chain.Tip().Height)))
		}
		var err error
		switch {
		case depth > 0:
			s.log.Info("fork", "depth", depth, "tip", s.cfg.Chain.Tip())
			err = s.cfg.Chain.Fork(depth, depth+1)
		case s.cfg.WallClock:
			err = s.cfg.Chain.ExtendAt(s.cfg.Chain.SlotAt(time.Now()))
		default:
			err = s.cfg.Chain.Extend(1)
		}
		if err != nil {
			return err
		}
	}
}

// forkDepth chooses a depth from 1 to most: half of all forks are of depth 1,
// a quarter of 2, and so on, but one in twenty is as likely of any depth.
func forkDepth(r *rand.Rand, most int) int {
	if most < 1 {
		return 0
	}
	if r.Float64() < 0.05 {
		return 1 + r.IntN(most)
	}
	d := 1
	for d < most && r.IntN(2) == 0 {
		d++
	}
	return d
}
