package ledger

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// ErrNotATx is wrapped by TxID for bytes that are no transaction.
var ErrNotATx = errors.New("not a transaction")

// TxID returns the id of a transaction that stands by itself, not in a block:
// the blake2b-256 of its body, the first item of the array that it is in every
// era (cardano-ledger, Tx of each era). It checks that the whole is one
// well-formed array; nothing else. Errors wrap ErrNotATx.
func TxID(tx []byte) (chain.TxID, error) {
	c := cursor{b: tx}
	major, _, n := c.head()
	start := c.i
	switch {
	case c.err != nil:
		return chain.TxID{}, fmt.Errorf("%w: %w", ErrNotATx, c.err)
	case major != majorArray:
		return chain.TxID{}, fmt.Errorf("%w: CBOR major type %d, want an array [body, witnesses, ...]", ErrNotATx, major)
	case tx[0]&0x1f != infoIndefinite && (n < 2 || n > 4):
		return chain.TxID{}, fmt.Errorf("%w: an array of %d items, want [body, witnesses, ...]", ErrNotATx, n)
	}
	c.skip()
	end := c.i
	whole := cursor{b: tx}
	whole.skip()
	switch {
	case c.err != nil:
		return chain.TxID{}, fmt.Errorf("%w: body: %w", ErrNotATx, c.err)
	case whole.err != nil:
		return chain.TxID{}, fmt.Errorf("%w: %w", ErrNotATx, whole.err)
	case whole.i != len(tx):
		return chain.TxID{}, fmt.Errorf("%w: %d bytes follow it", ErrNotATx, len(tx)-whole.i)
	case start == end || tx[start]>>5 != majorMap && tx[start]>>5 != majorArray:
		return chain.TxID{}, fmt.Errorf("%w: its first item is no body", ErrNotATx)
	}
	return blake2b.Sum256(tx[start:end]), nil
}
