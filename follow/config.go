package follow

import (
	"context"
	"log/slog"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/resolve"
)

// Conn is one connection to a node, past its handshake. Closing it, or the end
// of a context, makes the other methods return.
type Conn interface {
	// Intersect asks for the first of the points, newest first, that is on the
	// node's chain; ok is false if none is. No points is a question for the tip.
	Intersect(ctx context.Context, points []chain.Point) (found chain.Point, ok bool, tip chain.Tip, err error)
	// Next waits for at least one message.
	Next(ctx context.Context) (chain.Messages, error)
	Close() error
}

// Store keeps the set of unspent outputs, the journal and the points. Commit
// and Rollback are durable when they return.
type Store interface {
	resolve.Source
	// Head returns the newest committed block; at origin its height is
	// chain.OriginHeight.
	Head() chain.Link
	// Highest is the greatest height ever committed.
	Highest() chain.Height
	// Floor is the oldest point that Rollback can reach.
	Floor() chain.At
	// Links returns the newest n blocks or more, oldest first, and whether
	// nothing but origin lies below them.
	Links(n int) (links []chain.Link, whole bool, err error)
	// LinkAt returns our block at a position.
	LinkAt(p chain.Position) (chain.Link, bool, error)
	// Live returns those of the references that are in the set.
	Live(refs []chain.TxIn) ([]chain.TxIn, error)
	Commit(blocks []*chain.Effects) error
	// Append is Commit for one block that somebody waits for: the store puts off what
	// can be put off. Tidy does that.
	Append(block *chain.Effects) error
	Tidy() error
	// Gather is Commit for blocks without a record that nobody waits for: the store
	// may keep them in memory, and Head below them, until it flushes by itself, or
	// is told to, or commits or rolls back.
	Gather(blocks []*chain.Effects) error
	Flush() error
	// Rollback makes the point the head. A crash in the middle leaves a valid
	// chain between the two.
	Rollback(ctx context.Context, to chain.Point) error
}

// Hub fans blocks out. The buffer methods are called under the publish lock,
// the functions they return after it.
type Hub interface {
	BufferBlock(b *chain.AppliedBlock) (flush func(), err error)
	// Pass is BufferBlock without contents. It does nothing and returns false where
	// they are needed: somebody is subscribed.
	Pass(at chain.At, txs []chain.TxEffects) (ok bool, flush func(), err error)
	BufferRollback(to chain.At) (flush func(), err error)
	// Skip moves a hub that has no subscribers to a point without showing it
	// the blocks below.
	Skip(tip chain.At)
	Subscribers() int
	FailAll(cause error)
}

// Stop says when Run is done by itself. The zero Stop is at height 0; Never
// follows for ever.
type Stop struct {
	// Until is the height of the last main block to commit; chain.OriginHeight for
	// no limit.
	Until chain.Height
	// AtTip ends once the node has no more blocks.
	AtTip bool
}

// Never ends only with its context.
var Never = Stop{Until: chain.OriginHeight}

// Config says what to follow, and how.
type Config struct {
	Dial  func(ctx context.Context) (Conn, error)
	Store Store
	Hub   Hub
	// K is the security parameter, in blocks.
	K chain.Height
	// ByronEpochSlots is the length of a Byron epoch in slots, ten times the
	// Byron genesis' k; zero for 21,600.
	ByronEpochSlots uint64
	// AVVM are the genesis outputs that the ledger removes at the Allegra
	// boundary if they are unspent then (contract 1.7), sorted.
	AVVM []chain.TxIn
	// MaxBlocks and MaxBytes bound the open batch, in blocks and in bytes of raw
	// blocks; zero for the defaults.
	MaxBlocks int
	MaxBytes  int
	// Brake, if set, is called between batches with no lock held; following
	// goes on when it returns. An owner of a slow reader waits here.
	Brake func(ctx context.Context) error
	// Near, if set, is called with no lock held whenever blocks within K of the
	// node's tip have been committed.
	Near func()
	// Quarantine, if set, keeps the bytes of a block that does not decode and
	// returns where.
	Quarantine func(raw []byte) (where string, err error)
	// Retry is called with the error of a session and says how long to wait, or
	// that the error is final. Nil for NewRetry.
	Retry  func(err error, failures int) (wait time.Duration, retry bool)
	Logger *slog.Logger
	// Step, if set, is told the name of each step that a kill may come before, by
	// tests: "commit", "committed" (on disk, not in the hub), "buffered" (in the hub,
	// no reader has it), "published", and for a roll backward "rollback", "rollback
	// buffered", "rolled back", "rollback published".
	Step func(name string)
}

// Batches hold at most this much by default. Each commit is synced to disk: with
// small blocks the number bounds how often, with large ones the bytes do. A working
// set that stays in the processor's cache saves more than fewer commits would: a
// fifth of a first sync's CPU, against 4 MiB here and 8 in the connection's queue.
const (
	DefaultMaxBlocks = 4000
	DefaultMaxBytes  = 1 << 20
	// watchedMaxBlocks bounds batches while somebody is subscribed: a whole batch
	// is buffered in mailboxes before anybody can read it.
	watchedMaxBlocks = 64
)
