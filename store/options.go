package store

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// Options says which store to open and how.
type Options struct {
	// Dir is the data directory. The database is in its folder "db", the lock in
	// its file "lock". Both are made if they are not there.
	Dir string

	// Magic and K must be what the store was made with; an empty directory is made
	// for them, and for Archive. K is the security parameter in blocks. A store that
	// is an archive stays one, unless Compact gives up what it keeps of spent outputs;
	// one that is not cannot become one.
	Magic   uint32
	K       chain.Height
	Archive bool // keep spent outputs
	Compact bool

	// Existing opens only a store that is there, with whatever magic, k and
	// retention it has.
	Existing bool

	// Resync gives up the store that is in the directory and makes a new one, once
	// the directory is held. A kill leaves the old one or none. It fails, with
	// nothing touched, on files that are not a store's (ErrNotOurs) and on another
	// network's store (ErrNetwork).
	Resync bool

	// Memory is what the store may use of anonymous memory, in bytes, about:
	// DefaultMemory if 0, at least MinMemory. Pages of the database that the
	// kernel keeps mapped come on top and go when others need the room.
	Memory int64

	// Terms emits the sources under which an output is to be found: its address,
	// stake credential and assets. It must give the same for the same output for
	// ever. Without it there are no indexes.
	Terms func(o *chain.Output, emit func(chain.Source)) error

	// Room, if set, is asked before every write that somebody wants; its error
	// stands for it, and nothing was touched. See Reserve.
	Room func() error

	// Logger gets what is worth telling; nil discards it.
	Logger *slog.Logger

	// For tests: no syncing, memtables smaller than any knob gives, and a function
	// that is called before every transaction.
	noSync   bool
	memTable int64
	hook     func(step string) error

	noCompact bool // tables are merged on demand only

	events *badgerEvents // set by Open
}

// Bounds of Options.Memory.
const (
	DefaultMemory = 256 << 20
	MinMemory     = 64 << 20
)

// recentSize is what the newest outputs may take, in bytes.
func recentSize(o Options) int {
	if o.memTable != 0 {
		return int(o.memTable) / 16
	}
	return int(o.Memory / 16)
}

// badgerOptions derives everything from the one knob.
//
// Values stay in the tree: the threshold for the value log lies above everything
// we write, so that the value log stays empty and never needs collecting.
//
// No SyncWrites: we sync the write-ahead files ourselves, see wal.
//
// Memory is memtables (1.3 times their size each, two to four alive) and the
// buffers of table builders. Badger pools up to eight of those and has some more
// in use while it compacts; each begins with twice the base table size and grows by
// doublings to what the largest table it ever built took, which is a memtable
// turned into a table. So memtables are a sixteenth part of the whole, and
// tables half of that. What the garbage collector leaves lying on top is the
// process' own setting.
//
// No compression, hence no block cache: blocks are read from the mapped tables.
// Their checksums are verified at each read, which costs less than can be
// measured beside the rest.
func badgerOptions(o Options, dir string) badger.Options {
	table := o.memTable
	if table == 0 {
		table = 2 << 20
		for table < 64<<20 && table*32 <= o.Memory {
			table *= 2
		}
	}
	vlog := int64(16 << 20)
	if table < 1<<20 {
		vlog = 1 << 20
	}
	b := badger.DefaultOptions(dir).
		WithLogger(badgerLog{o.Logger, o.events}).
		WithSyncWrites(false).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithMemTableSize(table).
		WithNumMemtables(2).
		WithBaseTableSize(table / 2).
		WithBaseLevelSize(table * 5).
		WithNumLevelZeroTables(8).
		WithNumCompactors(2).
		WithCompactL0OnClose(false).
		WithValueLogFileSize(vlog).
		WithValueThreshold(min(1<<20, table*15/100))
	if o.noCompact {
		b = b.WithNumCompactors(0)
	}
	b.TableSizeMultiplier = 1
	return b
}

// Reserve is how much room, in bytes, the store may need on the disk at once, from
// one write to the next: its files are written through memory maps, where a full
// disk is a fault that no program survives. Of memtables of size M, two wait to
// become tables while a third is filled, each with its log of up to 1.15 M, and
// meanwhile one compaction takes all of level 0, 15 tables before writers wait,
// and what lies below it in the base level, 5 M and one table. What was gathered is
// written twice at most. The blocks of a commit come on top of a file of them.
func (o Options) Reserve() int64 {
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	o.Memory = max(o.Memory, MinMemory)
	b := badgerOptions(o, o.Dir)
	m := b.MemTableSize
	logs := 3 * (m + m*15/100)
	flushes := 2 * m
	compaction := int64(b.NumLevelZeroTablesStall)*m + b.BaseLevelSize + b.BaseTableSize
	gathered := 2 * o.Memory / gatherPart
	return logs + flushes + compaction + gathered + 2*segment.DefaultMax
}

// badgerLog passes Badger's log on. Its information is noise to everybody but us.
type badgerLog struct {
	log    *slog.Logger
	events *badgerEvents // may be nil
}

func (l badgerLog) text(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

// Errorf implements badger.Logger.
func (l badgerLog) Errorf(f string, a ...any) {
	l.log.Error("badger", "message", l.text(f, a))
	if l.events != nil {
		l.events.error(f, a)
	}
}

// Warningf implements badger.Logger.
func (l badgerLog) Warningf(f string, a ...any) {
	l.log.Warn("badger", "message", l.text(f, a))
	if l.events != nil {
		l.events.error(f, a)
	}
}

// Infof implements badger.Logger.
func (badgerLog) Infof(string, ...any) {}

// Debugf implements badger.Logger.
func (l badgerLog) Debugf(f string, a ...any) {
	if l.events != nil {
		l.events.debug(f, a)
	}
}
