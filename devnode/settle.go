package devnode

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// ErrNotAtOrigin is returned by SettleInto for a chain that has blocks.
var ErrNotAtOrigin = errors.New("the chain has blocks already")

// SettleInto lets a generated chain keep only its newest blocks in memory, at
// least k and at most about twice that: older ones move to a new ImmutableDB
// folder, as in a node, and can no longer be undone. Close the chain
// afterwards.
func (c *Chain) SettleInto(dir string) error {
	if c.gen == nil {
		return ErrNotGenerated
	}
	w, err := immutable.Create(dir, c.gen.forge.ByronEpochSlots())
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lenLocked() > 0 || len(c.followers) > 0 {
		return ErrNotAtOrigin
	}
	c.base, c.settled, c.keep = w.DB(), w, c.gen.forge.Options().K
	return nil
}

// Close moves what is left to the folder of SettleInto and closes it. The
// chain can still be served, but no longer grow. Without SettleInto it does
// nothing.
func (c *Chain) Close() error {
	if c.gen == nil {
		return nil
	}
	c.gen.mu.Lock()
	defer c.gen.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled == nil {
		return nil
	}
	err := c.settleLocked(len(c.blocks))
	err = errors.Join(err, c.settled.Close())
	c.settled, c.gen.closed = nil, true
	return err
}

// settleLocked moves the n oldest blocks in memory to the folder.
func (c *Chain) settleLocked(n int) error {
	for _, b := range c.blocks[:n] {
		if err := c.settled.Append(b.Raw); err != nil {
			return fmt.Errorf("settle %v: %w", b.At(), err)
		}
	}
	if err := c.settled.Flush(); err != nil {
		return err
	}
	c.blocks = append([]Block(nil), c.blocks[n:]...)
	c.baseLen = c.base.Len()
	return nil
}

// Names of what GenerateDir writes.
const (
	ImmutableDir = "immutable"   // the chain
	ConfigFile   = "config.json" // beside it, with the genesis files it names
	BlocksFile   = "blocks.txt"  // a line for each block that is no boundary block
	DigestsFile  = "digests.txt" // what must come out at the end
)

// GenerateDir makes a chain of n blocks in a folder: the ImmutableDB, the
// node's configuration that belongs to it, and what a follower must find: a
// line for each block, and digests of all effect lines and of the unspent
// outputs at the end. progress, if not nil, is called after each block.
func GenerateDir(ctx context.Context, dir string, opts forge.Options, n int, progress func(done int, tip chain.At)) (err error) {
	opts.Lean = true
	f, err := forge.New(opts)
	if err != nil {
		return err
	}
	w, err := immutable.Create(filepath.Join(dir, ImmutableDir), f.ByronEpochSlots())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := f.Genesis().WriteConfig(dir); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, BlocksFile))
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	lines := bufio.NewWriter(out)
	all := sha256.New()
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := f.Next()
		if err != nil {
			return err
		}
		if err := w.Append(b.Raw); err != nil {
			return err
		}
		if i%1000 == 999 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if !b.Boundary {
			if err := blockLine(lines, all, f.Oracle(), b); err != nil {
				return err
			}
		}
		if progress != nil {
			progress(i+1, b.At())
		}
	}
	if err := lines.Flush(); err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	set, err := f.Oracle().Lines(f.Head().Point.Hash)
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, l := range set {
		h.Write([]byte(l))
		h.Write([]byte{'\n'})
	}
	digests := fmt.Sprintf("point %v\nheight %d\nutxos %d\neffects %x\nset %x\n",
		f.Head().Point, f.Head().Height, len(set), all.Sum(nil), h.Sum(nil))
	if err := os.WriteFile(filepath.Join(dir, DigestsFile), []byte(digests), 0o644); err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	return nil
}

// blockLine writes a BLOCK line of the canonical text: the block, what it did,
// the state behind it, and digests of effect lines.
func blockLine(out io.Writer, all hash.Hash, o *forge.Oracle, b forge.Block) error {
	e, err := o.Effects(b.Point.Hash)
	if err != nil {
		return err
	}
	s, err := o.Summary(b.Point.Hash)
	if err != nil {
		return err
	}
	var created, spent int
	var in, made uint64
	for _, r := range e.Removed {
		spent++
		in += r.Lovelace
	}
	for _, tx := range e.Txs {
		spent, created = spent+len(tx.Spent), created+len(tx.Created)
		for _, r := range tx.Spent {
			in += r.Lovelace
		}
		for _, r := range tx.Created {
			made += r.Lovelace
		}
	}
	text := strings.Join(e.EffectLines(), "\n")
	if text != "" {
		text += "\n"
	}
	if _, err := io.WriteString(all, text); err != nil {
		return err
	}
	own := sha256.Sum256([]byte(text))
	_, err = fmt.Fprintf(out, "%d %d %v %v %d %d %d %d %d %d %d %x %x %x\n", b.Height, b.Point.Slot, b.Point.Hash, b.Era,
		len(e.Txs), created, spent, made, in, s.Count, s.Lovelace, s.Accumulator, own[:8], all.Sum(nil)[:8])
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	return nil
}
