package immutable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/immutabledb"
)

// ErrEmpty is returned by Open for a folder that holds no block.
var ErrEmpty = errors.New("no block of an ImmutableDB in this folder")

// ErrCorrupt is wrapped by errors about blocks whose bytes are not what the
// index or the next block says they are.
var ErrCorrupt = errors.New("corrupt ImmutableDB")

// Options say how to read a folder. The zero value reads all of it.
type Options struct {
	// Logger receives the warnings; nil discards them. The same warnings are
	// returned by DB.Warnings.
	Logger *slog.Logger
	// UntilChunk and UntilHeight end the chain early; nil means no limit. Both
	// bounds are inclusive.
	UntilChunk  *int
	UntilHeight *chain.Height
	// CheckCRC reads every block on opening and ends the chain before the first
	// one whose checksum, header hash or parent is wrong.
	CheckCRC bool
	// ByronEpochSlots is 10k of the Byron genesis. Zero takes the chunk size,
	// which is the same number in every node's configuration, from the primary
	// indexes, or 21,600 where there is none.
	ByronEpochSlots uint64
}

// Entry is where one block lies and what its header says.
type Entry struct {
	Point    chain.Point
	Offset   uint64 // in the chunk
	Size     uint32
	CRC      uint32 // as the secondary index says; 0 if that was missing
	Chunk    int32
	Boundary bool
	indexed  bool // CRC is known
}

// DB is the index of a folder. Its methods are safe for concurrent use.
type DB struct {
	dir        string
	opts       Options
	epochSlots uint64

	mu       sync.RWMutex
	entries  []Entry
	bounds   []int // indexes of the boundary blocks
	base     chain.Height
	warnings []string
	ended    bool // a limit or a fault ended the chain: Refresh finds nothing more
}

// Open reads the indexes of a folder. It fails if the folder cannot be read or
// holds no usable block; lesser faults are warnings and, where the chain
// cannot go on past them, end it.
func Open(dir string, opts Options) (*DB, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	db := &DB{dir: dir, opts: opts, epochSlots: opts.ByronEpochSlots}
	chunks, err := db.chunks()
	if err != nil {
		return nil, err
	}
	if db.epochSlots == 0 {
		db.epochSlots = db.findEpochSlots(chunks)
	}
	if len(chunks) > 0 && chunks[0] != 0 {
		db.warn("the folder does not begin with chunk 0", "chunk", chunks[0])
	}
	if err := db.load(chunks); err != nil {
		return nil, err
	}
	if len(db.entries) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrEmpty)
	}
	return db, nil
}

// chunks lists the chunk numbers of the folder in order.
func (db *DB) chunks() ([]int, error) {
	files, err := os.ReadDir(db.dir)
	if err != nil {
		return nil, fmt.Errorf("ImmutableDB folder: %w", err)
	}
	var out []int
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".chunk")
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (db *DB) path(chunk int, kind string) string {
	return filepath.Join(db.dir, fmt.Sprintf("%05d.%s", chunk, kind))
}

// findEpochSlots takes the chunk size from the largest primary index: that of
// the chunk being written is shorter.
func (db *DB) findEpochSlots(chunks []int) uint64 {
	var most uint64
	for _, n := range chunks[:min(len(chunks), 8)] {
		if st, err := os.Stat(db.path(n, "primary")); err == nil {
			most = max(most, immutabledb.PrimarySlots(st.Size()))
		}
	}
	if most == 0 {
		return 21600
	}
	return most
}

func (db *DB) warn(msg string, args ...any) {
	db.opts.Logger.Warn(msg, append([]any{"dir", db.dir}, args...)...)
	var b strings.Builder
	b.WriteString(msg)
	for i := 0; i+1 < len(args); i += 2 {
		fmt.Fprintf(&b, " %v=%v", args[i], args[i+1])
	}
	db.warnings = append(db.warnings, b.String())
}

// Warnings returns what was wrong with the folder, in the order it was met.
func (db *DB) Warnings() []string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return slices.Clone(db.warnings)
}

// Len returns the number of blocks, boundary blocks included.
func (db *DB) Len() int {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return len(db.entries)
}

// Entry returns the i-th block's entry; i is less than Len.
func (db *DB) Entry(i int) Entry {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.entries[i]
}

// Height returns the i-th block's height: a boundary block repeats that of the
// block below it.
func (db *DB) Height(i int) chain.Height {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.heightLocked(i)
}

func (db *DB) heightLocked(i int) chain.Height {
	n, at := slices.BinarySearch(db.bounds, i)
	if at {
		n++
	}
	if len(db.bounds) > 0 && db.bounds[0] == 0 {
		n-- // the first block does not repeat a height, whatever it is
	}
	return db.base + chain.Height(i-n)
}

// Find returns the index of the block at the point.
func (db *DB) Find(p chain.Point) (int, bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	i, _ := slices.BinarySearchFunc(db.entries, p.Slot, func(e Entry, s chain.Slot) int {
		switch {
		case e.Point.Slot < s:
			return -1
		case e.Point.Slot > s:
			return 1
		}
		return 0
	})
	for ; i < len(db.entries) && db.entries[i].Point.Slot == p.Slot; i++ {
		if db.entries[i].Point.Hash == p.Hash {
			return i, true
		}
	}
	return 0, false
}

// ByronEpochSlots returns the number of slots by which Byron epochs are counted.
func (db *DB) ByronEpochSlots() uint64 { return db.epochSlots }

// Refresh looks for blocks that were appended since Open or the last Refresh
// and returns how many it found.
func (db *DB) Refresh(ctx context.Context) (int, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.ended {
		return 0, ctx.Err()
	}
	chunks, err := db.chunks()
	if err != nil {
		return 0, err
	}
	before := len(db.entries)
	last := int(db.entries[before-1].Chunk)
	i, _ := slices.BinarySearch(chunks, last)
	err = db.load(chunks[i:])
	return len(db.entries) - before, err
}

// IsNotExist tells whether the error means that the folder is not there.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
