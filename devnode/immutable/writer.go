package immutable

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/immutabledb"
)

// ErrNotEmpty is returned by Create for a folder that holds chunks already.
var ErrNotEmpty = errors.New("the folder holds an ImmutableDB already")

// Writer appends blocks to a new folder, as a node would have written it. It
// is not safe for concurrent use.
type Writer struct {
	db      *DB
	slots   uint64
	chunk   int // being written; -1 before the first block
	file    *os.File
	buf     *bufio.Writer
	offset  uint64
	entries []Entry  // of the chunk
	second  []byte   // its secondary index
	written [2]int   // bytes of its secondary and primary index that are in their files
	pending []Entry  // written to buf and not yet flushed
	height  []Header // theirs, for the DB
}

// Create makes a folder, if need be, and returns a writer for it. A chunk
// spans byronEpochSlots slots: 10k, as on every network.
func Create(dir string, byronEpochSlots uint64) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("ImmutableDB: %w", err)
	}
	if m, err := filepath.Glob(filepath.Join(dir, "*.chunk")); err != nil || len(m) > 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	db := &DB{dir: dir, epochSlots: byronEpochSlots, ended: true}
	return &Writer{db: db, slots: byronEpochSlots, chunk: -1}, nil
}

// DB returns a view of what was flushed so far; it grows with each Flush.
func (w *Writer) DB() *DB { return w.db }

// Append writes one block in storage form. Errors wrap wire.ErrMalformed,
// ErrCorrupt if the block does not follow the one below it, or are those of
// the disk.
func (w *Writer) Append(raw []byte) error {
	h, err := ReadHeader(raw, w.slots)
	if err != nil {
		return err
	}
	if below, ok := w.last(); ok && (h.Parent != below.Hash || h.Point.Slot < below.Slot) {
		return fmt.Errorf("%w: %v does not follow %v", ErrCorrupt, h.Point, below)
	}
	for n := int(uint64(h.Point.Slot) / w.slots); w.chunk < n; {
		if err := w.finish(); err != nil {
			return err
		}
		if err := w.open(w.chunk + 1); err != nil {
			return err
		}
	}
	if _, err := w.buf.Write(raw); err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	e := Entry{Point: h.Point, Offset: w.offset, Size: uint32(len(raw)), CRC: crc32.ChecksumIEEE(raw),
		Chunk: int32(w.chunk), Boundary: h.Boundary, indexed: true}
	se := immutabledb.SecondaryEntry{Offset: e.Offset, HeaderOffset: uint16(h.Offset), HeaderSize: uint16(h.Size), CRC: e.CRC,
		Hash: e.Point.Hash, SlotOrEpoch: uint64(e.Point.Slot)}
	if h.Boundary {
		se.SlotOrEpoch = h.Epoch
	}
	w.second = se.Append(w.second)
	w.entries = append(w.entries, e)
	w.pending, w.height = append(w.pending, e), append(w.height, h)
	w.offset += uint64(len(raw))
	return nil
}

func (w *Writer) last() (chain.Point, bool) {
	if n := len(w.entries); n > 0 {
		return w.entries[n-1].Point, true
	}
	if n := len(w.pending); n > 0 {
		return w.pending[n-1].Point, true
	}
	if n := w.db.Len(); n > 0 {
		return w.db.Entry(n - 1).Point, true
	}
	return chain.Point{}, false
}

func (w *Writer) open(n int) error {
	f, err := os.OpenFile(w.db.path(n, "chunk"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	w.file, w.buf, w.chunk = f, bufio.NewWriterSize(f, 1<<20), n
	w.offset, w.entries, w.second, w.written = 0, w.entries[:0], w.second[:0], [2]int{}
	return nil
}

// finish completes the indexes of the chunk being written and closes it.
func (w *Writer) finish() error {
	if w.file == nil {
		return nil
	}
	first := chain.Slot(uint64(w.chunk) * w.slots)
	if err := w.index(appendPrimary(nil, w.entries, first, w.slots)); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	w.file = nil
	return nil
}

// index flushes the chunk and appends to its indexes, in the order in which a
// node does: whoever reads them the other way round never finds an entry without
// its block.
func (w *Writer) index(primary []byte) error {
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	for i, x := range []struct {
		kind  string
		bytes []byte
	}{{"secondary", w.second}, {"primary", primary}} {
		if err := appendFile(w.db.path(w.chunk, x.kind), x.bytes[w.written[i]:]); err != nil {
			return fmt.Errorf("ImmutableDB: %w", err)
		}
		w.written[i] = len(x.bytes)
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	for i, e := range w.pending {
		if len(w.db.entries) == 0 {
			w.db.base = w.height[i].Height
		}
		if e.Boundary {
			w.db.bounds = append(w.db.bounds, len(w.db.entries))
		}
		w.db.entries = append(w.db.entries, e)
	}
	w.pending, w.height = w.pending[:0], w.height[:0]
	return nil
}

func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Flush makes everything appended readable, by DB and by others: the last
// chunk's indexes then reach to its last block, as those of a running node do.
func (w *Writer) Flush() error {
	if w.file == nil {
		return nil
	}
	first := chain.Slot(uint64(w.chunk) * w.slots)
	upTo := uint64(0)
	if n := len(w.entries); n > 0 {
		upTo = relativeSlot(w.entries[n-1], first)
	}
	return w.index(appendPrimary(nil, w.entries, first, upTo))
}

// Close flushes and closes the folder.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	err := w.Flush()
	if cerr := w.file.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("ImmutableDB: %w", cerr))
	}
	w.file = nil
	return err
}

// appendPrimary appends the .primary file of a chunk of so many slots that
// starts at slot first and holds the entries.
func appendPrimary(b []byte, entries []Entry, first chain.Slot, slots uint64) []byte {
	b = append(b, immutabledb.PrimaryVersion)
	var next uint32
	i := 0
	b = binary.BigEndian.AppendUint32(b, 0)
	for rel := range slots + 1 {
		for i < len(entries) && relativeSlot(entries[i], first) == rel {
			next += immutabledb.SecondarySize
			i++
		}
		b = binary.BigEndian.AppendUint32(b, next)
	}
	return b
}

// relativeSlot is an entry's place in its chunk's .primary file.
func relativeSlot(e Entry, first chain.Slot) uint64 {
	if e.Boundary {
		return 0
	}
	return uint64(e.Point.Slot-first) + 1
}
