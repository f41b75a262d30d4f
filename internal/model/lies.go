package model

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
)

// lie is what a node says once that no honest node says.
type lie uint8

const (
	lieSkip      lie = iota // a block left out
	lieRepeat               // a block twice
	lieSwap                 // two blocks in the wrong order
	lieForeign              // a block of another chain
	lieParent               // a block whose header names another parent
	lieTruncated            // a block that ends early
	lieBody                 // a block with a flipped bit in its body
	lieOrigin               // back to origin, unasked
	lieUnknown              // back to a point that never was
	lieDeep                 // back further than the security parameter allows
	lieBackForth            // back and forth again on the same blocks: rare, but no lie
	lieKind                 // a message of no kind
	lieMalformed            // bytes that are no message
	lieHangUp               // the connection ends
	lieEnd
)

var lieNames = [...]string{"skip", "repeat", "swap", "foreign", "parent", "truncated", "body", "origin", "unknown", "deep", "back and forth", "kind", "malformed", "hang up"}

func (l lie) String() string { return lieNames[l] }

// lieLocked tells the next lie, if there is one that can be told here.
func (c *conn) lieLocked(tip chain.Tip) (list []chain.Message, told bool) {
	n := c.n
	if len(n.lies) == 0 || c.at == 0 {
		return nil, false
	}
	if n.lenLocked()-c.at > 20 && c.rnd.IntN(30) > 0 {
		return nil, false // somewhere on the way
	}
	l := n.lies[0]
	next := n.blocks[c.at]
	forward := func(raw []byte) chain.Message { return chain.Message{Raw: raw, Tip: tip} }
	backward := func(p chain.Point) chain.Message {
		return chain.Message{Kind: chain.RollBackward, Point: p, Tip: tip}
	}
	goBack := func(to int) {
		c.at = to
		p := chain.Point{}
		if to > 0 {
			p = n.blocks[to-1].Point
		}
		list = append(list, backward(p))
	}
	switch l {
	case lieSkip, lieSwap:
		if c.at+1 >= n.lenLocked() {
			return nil, false
		}
		list = append(list, forward(n.blocks[c.at+1].Raw))
		if l == lieSwap {
			list = append(list, forward(next.Raw))
		}
		c.at += 2
	case lieRepeat:
		list = append(list, forward(n.blocks[c.at-1].Raw))
	case lieForeign:
		list = append(list, forward(n.foreign))
	case lieParent:
		raw := slices.Clone(next.Raw)
		i := bytes.Index(raw, next.Parent[:])
		if i < 0 {
			return nil, false
		}
		raw[i] ^= 1
		list = append(list, forward(raw))
		c.at++
	case lieTruncated:
		raw := next.Raw[:len(next.Raw)-1-c.rnd.IntN(len(next.Raw)/2)]
		n.spoilt = append(n.spoilt, raw)
		list = append(list, forward(raw))
		c.at++
	case lieBody:
		if next.Era == chain.Byron { // whose proofs of what is not about outputs nobody checks
			return nil, false
		}
		raw := slices.Clone(next.Raw)
		// Nobody can tell a changed signature in the header: another hash is another
		// block, on trust. The header ends within the first 1,500 bytes.
		at := len(raw) - 1 - c.rnd.IntN(2)
		if len(raw) > 2000 {
			at = 1500 + c.rnd.IntN(len(raw)-1500)
		}
		raw[at] ^= 0x15
		n.spoilt = append(n.spoilt, raw)
		list = append(list, forward(raw))
		c.at++
	case lieOrigin:
		goBack(0)
	case lieUnknown:
		list = append(list, backward(chain.Point{Slot: next.Point.Slot, Hash: chain.Hash{0xbd, byte(c.rnd.Uint32())}}))
	case lieDeep:
		to := c.rnd.IntN(c.at)
		goBack(to)
		n.deep = chain.OriginHeight
		if to > 0 {
			n.deep = n.blocks[to-1].Height
		}
	case lieBackForth:
		// As deep as an honest node may go: it has changed its mind twice.
		to := c.at
		for to > 1 && n.blocks[to-1].Height > n.highest-1-chain.Height(c.rnd.Int64N(int64(n.k))) {
			to--
		}
		goBack(to)
	case lieKind:
		list = append(list, chain.Message{Kind: 9, Tip: tip})
	case lieMalformed:
		c.end = chainsync.ErrMalformed
	case lieHangUp:
		c.end = chainsync.ErrDisconnected
	default:
		panic(fmt.Sprintf("lie %d", l))
	}
	n.lies = n.lies[1:]
	n.told[l]++
	return list, true
}
