package immutable

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Cursor reads blocks, best in order: it reads ahead in pieces of a megabyte.
// It is not safe for concurrent use; a DB may have many. Close it.
type Cursor struct {
	db    *DB
	file  *os.File
	chunk int32
	slab  []byte
	start uint64 // offset of the slab in the chunk
	Check bool   // compare each block with its checksum
}

// readAhead is how much of a chunk is read at once.
const readAhead = 1 << 20

// Cursor returns a new cursor.
func (db *DB) Cursor() *Cursor { return &Cursor{db: db, chunk: -1} }

// Block returns the bytes of the i-th block in storage form. They are valid
// until the next call. Errors wrap ErrCorrupt if the bytes are not there or,
// with Check, not right.
func (c *Cursor) Block(i int) ([]byte, error) {
	e := c.db.Entry(i)
	if err := c.open(e.Chunk); err != nil {
		return nil, err
	}
	if e.Offset < c.start || e.Offset+uint64(e.Size) > c.start+uint64(len(c.slab)) {
		if err := c.fill(e); err != nil {
			return nil, err
		}
	}
	off := e.Offset - c.start
	b := c.slab[off : off+uint64(e.Size) : off+uint64(e.Size)]
	if c.Check && e.indexed && crc32.ChecksumIEEE(b) != e.CRC {
		return nil, fmt.Errorf("%w: block %v in chunk %05d has a wrong checksum", ErrCorrupt, e.Point, e.Chunk)
	}
	return b, nil
}

func (c *Cursor) open(chunk int32) error {
	if c.file != nil && c.chunk == chunk {
		return nil
	}
	if err := c.Close(); err != nil {
		return err
	}
	f, err := os.Open(c.db.path(int(chunk), "chunk"))
	if err != nil {
		return fmt.Errorf("ImmutableDB: %w", err)
	}
	c.file, c.chunk, c.slab = f, chunk, c.slab[:0]
	return nil
}

func (c *Cursor) fill(e Entry) error {
	want := max(readAhead, int(e.Size))
	if cap(c.slab) < want {
		c.slab = make([]byte, want)
	}
	c.slab, c.start = c.slab[:want], e.Offset
	n, err := c.file.ReadAt(c.slab, int64(e.Offset))
	c.slab = c.slab[:n]
	if n >= int(e.Size) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: block %v in chunk %05d is cut short", ErrCorrupt, e.Point, e.Chunk)
	}
	return fmt.Errorf("ImmutableDB chunk %05d: %w", e.Chunk, err)
}

// Close releases the file the cursor holds open; the cursor may be used again.
func (c *Cursor) Close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file, c.chunk = nil, -1
	return err
}
