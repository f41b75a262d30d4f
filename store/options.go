package store

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/ourotail/ourotail/chain"
)

// Options says which store to open and how.
type Options struct {
	// Dir is the data directory. The database is in its folder "db", the lock in
	// its file "lock". Both are made if they are not there.
	Dir string

	// Magic, K and Archive must be what the store was made with; an empty
	// directory is made for them. K is the security parameter in blocks.
	Magic   uint32
	K       chain.Height
	Archive bool // keep spent outputs

	// Existing opens only a store that is there, with whatever magic, k and
	// retention it has.
	Existing bool

	// Memory is what the store may use of anonymous memory, in bytes, about:
	// DefaultMemory if 0, at least MinMemory. Pages of the database that the
	// kernel keeps mapped come on top and go when others need the room.
	Memory int64

	// Terms emits the sources under which an output is to be found: its address,
	// stake credential and assets. It must give the same for the same output for
	// ever. Without it there are no indexes.
	Terms func(o *chain.Output, emit func(chain.Source)) error

	// Logger gets what is worth telling; nil discards it.
	Logger *slog.Logger

	// For tests: no directory at all, no syncing, memtables smaller than any knob
	// gives, and a function that is called before every transaction.
	inMemory bool
	noSync   bool
	memTable int64
	hook     func(step string) error
}

// Bounds of Options.Memory.
const (
	DefaultMemory = 256 << 20
	MinMemory     = 64 << 20
)

// badgerOptions derives everything from the one knob.
//
// Values stay in the tree: the threshold for the value log lies above everything
// we write, so that the value log stays empty and never needs collecting.
// SyncWrites rather than DB.Sync after a commit, because Sync reaches only the
// newest write-ahead file: a transaction in the one before, not yet flushed to a
// table, would be lost in a power cut although a later one is not.
func badgerOptions(o Options, dir string) badger.Options {
	table := o.memTable
	if table == 0 {
		table = min(max(o.Memory/16, 8<<20), 64<<20)
	}
	vlog := int64(16 << 20)
	if table < 1<<20 {
		vlog = 1 << 20
	}
	return badger.DefaultOptions(dir).
		WithInMemory(o.inMemory).
		WithLogger(badgerLog{o.Logger}).
		WithSyncWrites(!o.inMemory && !o.noSync).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMemTableSize(table).
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithValueLogFileSize(vlog).
		WithValueThreshold(min(1<<20, table*15/100))
}

// badgerLog passes Badger's log on. Its information is noise to everybody but us.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) text(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

func (l badgerLog) Errorf(f string, a ...any) { l.log.Error("badger", "message", l.text(f, a)) }

func (l badgerLog) Warningf(f string, a ...any) { l.log.Warn("badger", "message", l.text(f, a)) }

func (badgerLog) Infof(string, ...any) {}

func (badgerLog) Debugf(string, ...any) {}
