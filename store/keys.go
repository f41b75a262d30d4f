package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// The first byte of every key. Capital letters are single records and the redo
// log; c, s, b, t are the indexes (see index.go), and C, S, B, T are kept free
// for the same over the spent outputs of an archive.
const (
	keyMeta   = 'M' // what the store was made for
	keyHead   = 'H' // the newest committed block, counts, floor
	keyRedo   = 'W' // redo log of an oversized commit
	keyOutput = 'u' // reference -> output
	keyMark   = 'x' // reference -> spender, while the spend can be undone
	keyGone   = 'a' // reference -> spender and output, in an archive
	keyRecord = 'j' // position -> what the block did
	keyPoints = 'p' // position of the first -> consecutive links
	keyOrphan = 'o' // header hash -> what an undone block did
)

var (
	metaKey = []byte{keyMeta}
	headKey = []byte{keyHead}
)

const (
	refKeySize      = 1 + chain.TxInSize
	positionSize    = 9
	positionKeySize = 1 + positionSize
)

func appendRefKey(b []byte, kind byte, r chain.TxIn) []byte { return r.AppendKey(append(b, kind)) }

// appendPosition appends the 9 bytes under which positions sort as Compare
// orders them: the height with its sign bit flipped, so that origin comes first,
// then 0 for a main block and 1 for the boundary block at the same height.
func appendPosition(b []byte, p chain.Position) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(p.Height)^1<<63)
	if p.Boundary {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendPositionKey(b []byte, kind byte, p chain.Position) []byte {
	return appendPosition(append(b, kind), p)
}

func appendOrphanKey(b []byte, h chain.Hash) []byte { return append(append(b, keyOrphan), h[:]...) }

// redo log keys: parts are numbered, the seal stands behind them all.
func appendRedoKey(b []byte, part uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, keyRedo), part)
}

const (
	redoSeal  = ^uint32(0)
	flushSeal = redoSeal - 1
)

// positionFromKey reads the position behind a key's first byte.
func positionFromKey(key []byte) (p chain.Position, err error) {
	if len(key) < positionKeySize || key[9] > 1 {
		return p, fmt.Errorf("%w: key %x has no position", ErrDamaged, key)
	}
	p.Height = chain.Height(binary.BigEndian.Uint64(key[1:]) ^ 1<<63)
	p.Boundary = key[9] == 1
	return p, nil
}
