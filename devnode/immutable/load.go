package immutable

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
	"github.com/ourotail/ourotail/immutabledb"
)

// load appends the blocks of the chunks. The first chunk may be one that was
// loaded in part: what is known of it is kept.
func (db *DB) load(chunks []int) error {
	for i, n := range chunks {
		if db.opts.UntilChunk != nil && n > *db.opts.UntilChunk {
			db.ended = true
			return nil
		}
		if i > 0 && n != chunks[i-1]+1 {
			db.warn("a chunk is missing: the chain ends before it", "chunk", chunks[i-1]+1)
			db.ended = true
			return nil
		}
		last := i == len(chunks)-1
		if err := db.loadChunk(n, last); err != nil {
			return err
		}
		if db.ended {
			return nil
		}
	}
	return nil
}

// end stops the chain with a warning.
func (db *DB) end(msg string, args ...any) {
	db.warn(msg, args...)
	db.ended = true
}

// loadChunk appends the blocks of one chunk; in the last chunk of a folder an
// incomplete block is the node still writing, elsewhere the end of the chain.
func (db *DB) loadChunk(n int, last bool) error {
	f, err := os.Open(db.path(n, "chunk"))
	if err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	c := &chunkLoad{db: db, file: f, number: n, size: uint64(st.Size()), last: last}
	if k := len(db.entries); k > 0 && int(db.entries[k-1].Chunk) == n {
		c.from = db.entries[k-1].Offset + uint64(db.entries[k-1].Size)
	}
	if c.from >= c.size {
		return nil
	}
	return c.run()
}

// chunkLoad is the state of loading one chunk.
type chunkLoad struct {
	db     *DB
	file   *os.File
	number int
	size   uint64
	last   bool
	from   uint64 // offset behind the last block that is known
	buf    []byte
}

func (c *chunkLoad) run() error {
	entries := c.secondary()
	for i, e := range entries {
		end := c.size
		if i+1 < len(entries) {
			end = entries[i+1].Offset
		}
		if e.Offset < c.from {
			continue
		}
		if !c.plausible(e, end) {
			break
		}
		checked := i+1 == len(entries) || c.db.opts.CheckCRC || e.Offset == 0
		if checked {
			size, h, err := c.block(c.from)
			switch {
			case errors.Is(err, wire.ErrMalformed):
				return c.broken(err)
			case err != nil:
				return err
			case h.Point.Hash != e.Hash:
				c.db.warn("the secondary index names another block: walking the chunk instead",
					"chunk", c.number, "offset", e.Offset)
				return c.walk()
			case i+1 < len(entries) && size != end-e.Offset:
				c.db.warn("a block does not fill its place in the index: walking the chunk instead",
					"chunk", c.number, "offset", e.Offset)
				return c.walk()
			}
			if !c.add(h, size, e.CRC, true) {
				return nil
			}
			continue
		}
		h := Header{Link: chain.Link{Point: chain.Point{Slot: chain.Slot(e.SlotOrEpoch), Hash: e.Hash}}}
		if !c.add(h, end-e.Offset, e.CRC, true) {
			return nil
		}
	}
	return c.walk()
}

// secondary reads the secondary index, if there is a usable one.
func (c *chunkLoad) secondary() []immutabledb.SecondaryEntry {
	b, err := os.ReadFile(c.db.path(c.number, "secondary"))
	if err != nil {
		c.db.warn("no secondary index: walking the chunk", "chunk", c.number, "error", err)
		return nil
	}
	entries, err := immutabledb.ParseSecondary(b)
	if err != nil && !c.last {
		c.db.warn("secondary index cut short", "chunk", c.number, "error", err)
	}
	if _, err := os.Stat(c.db.path(c.number, "primary")); err != nil {
		c.db.warn("no primary index", "chunk", c.number, "error", err)
	}
	keep := len(entries)
	for keep > 0 && entries[keep-1].Offset >= c.size {
		keep--
	}
	if keep < len(entries) {
		c.db.warn("the secondary index is longer than its chunk", "chunk", c.number,
			"entries", len(entries), "usable", keep)
	}
	return entries[:keep]
}

// plausible checks an entry against its neighbours without reading the block.
func (c *chunkLoad) plausible(e immutabledb.SecondaryEntry, end uint64) bool {
	if e.Offset == c.from && end > e.Offset && end <= c.size && end-e.Offset <= maxBlock {
		return true
	}
	c.db.warn("the secondary index does not match the chunk: walking the chunk instead",
		"chunk", c.number, "offset", e.Offset)
	return false
}

// maxBlock bounds a block's size: a wrong index must not make us allocate
// without limit. The largest blocks ever are boundary blocks of 648 kB.
const maxBlock = 64 << 20

// block reads the block at off far enough to know its size and header.
func (c *chunkLoad) block(off uint64) (uint64, Header, error) {
	for want := uint64(16 << 10); ; want *= 4 {
		want = min(want, c.size-off)
		if uint64(cap(c.buf)) < want {
			c.buf = make([]byte, want)
		}
		b := c.buf[:want]
		if n, err := c.file.ReadAt(b, int64(off)); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
			return 0, Header{}, fmt.Errorf("ImmutableDB chunk %05d: %w", c.number, err)
		}
		end, err := wire.Skip(b, 0)
		if errors.Is(err, wire.ErrShort) && off+want < c.size && want < maxBlock {
			continue
		}
		if err != nil {
			return 0, Header{}, err
		}
		c.buf = b
		h, err := ReadHeader(b[:end], c.db.epochSlots)
		return uint64(end), h, err
	}
}

// walk appends what follows the last known block by reading block after block.
func (c *chunkLoad) walk() error {
	for c.from < c.size {
		size, h, err := c.block(c.from)
		if errors.Is(err, wire.ErrMalformed) {
			return c.broken(err)
		}
		if err != nil {
			return err
		}
		if !c.add(h, size, 0, false) {
			return nil
		}
	}
	return nil
}

// broken handles bytes at c.from that are no block.
func (c *chunkLoad) broken(err error) error {
	if c.last {
		// A node may be writing just now: Refresh looks again.
		c.db.warn("the last chunk ends inside a block", "chunk", c.number, "offset", c.from, "error", err)
		return nil
	}
	c.db.end("a chunk is damaged: the chain ends before it", "chunk", c.number, "offset", c.from, "error", err)
	return nil
}

// add appends a block that begins at c.from. It returns false when the chain
// ends before it.
func (c *chunkLoad) add(h Header, size uint64, crc uint32, indexed bool) bool {
	db := c.db
	full := h.Size > 0 // the block was read, not only its entry
	k := len(db.entries)
	if full && k > 0 && h.Parent != db.entries[k-1].Point.Hash {
		db.end("a block does not follow the one below it: the chain ends before it",
			"chunk", c.number, "offset", c.from, "parent", h.Parent, "below", db.entries[k-1].Point)
		return false
	}
	if k == 0 {
		db.base = h.Height
	}
	if full && indexed && db.opts.CheckCRC && crc32.ChecksumIEEE(c.buf[:size]) != crc {
		db.end("a block has a wrong checksum: the chain ends before it", "chunk", c.number,
			"offset", c.from, "point", h.Point)
		return false
	}
	db.entries = append(db.entries, Entry{Point: h.Point, Offset: c.from, Size: uint32(size),
		CRC: crc, Chunk: int32(c.number), Boundary: h.Boundary, indexed: indexed})
	if h.Boundary {
		db.bounds = append(db.bounds, k)
	}
	height := db.heightLocked(k)
	if full && height != h.Height {
		db.warn("heights are not consecutive", "chunk", c.number, "point", h.Point, "height", h.Height, "counted", height)
	}
	if until := db.opts.UntilHeight; until != nil && height > *until {
		db.entries = db.entries[:k]
		if h.Boundary {
			db.bounds = db.bounds[:len(db.bounds)-1]
		}
		db.ended = true
		return false
	}
	c.from += size
	return true
}
