package model

import (
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
)

// List is an honest node for tests that need no more: a forged chain that grows
// and forks, served from memory. It belongs to one synctest bubble.
type List struct {
	Forge *forge.Forge
	n     *node
}

// NewList returns a node without a block.
func NewList(f *forge.Forge) *List {
	return &List{Forge: f, n: newNode(1, chain.Height(f.Options().K), nil)}
}

// Hooks let a follower follow it.
func (l *List) Hooks() Hooks { return Hooks{Dial: l.n.dial, Tip: l.n.tip} }

// Replace takes the newest n blocks back, boundary blocks counted, and makes m
// others, in one step.
func (l *List) Replace(n, m int) error {
	if err := l.Forge.Rewind(n); err != nil {
		return err
	}
	blocks := append([]forge.Block(nil), l.n.blocks[:len(l.n.blocks)-n]...)
	for range m {
		b, err := l.Forge.Next()
		if err != nil {
			return err
		}
		blocks = append(blocks, b)
	}
	l.n.turn(blocks, -1)
	return nil
}

// Blocks returns the chain.
func (l *List) Blocks() []forge.Block { return l.n.blocks }

// Tip returns its newest block.
func (l *List) Tip() chain.Tip { return l.n.Tip() }

// HangUp ends every connection.
func (l *List) HangUp() { l.n.hangUp() }
