package segment

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/ourotail/ourotail/internal/disk"
)

// Batch collects byte strings that are to be written together.
type Batch struct {
	files  *Files
	parts  []part
	number uint32 // of the file that the next one will be in; 0 if that is not known yet
	offset int64
}

type part struct {
	place Place
	bytes []byte
}

// Batch starts a batch. Only the newest one can be written.
func (f *Files) Batch() Batch { return Batch{files: f} }

// Add takes a byte string, which must stay as it is until Write, and returns where
// it will be.
func (b *Batch) Add(bytes []byte) (Place, error) {
	p := Of(bytes)
	if p.Size == 0 {
		return Place{}, nil
	}
	if b.number == 0 {
		b.number, b.offset = b.files.current, b.files.size
		if !b.files.grows {
			b.offset = b.files.max
		}
	}
	if b.offset >= b.files.max {
		b.number, b.offset = b.number+1, 0
	}
	if b.offset+int64(len(bytes)) > math.MaxUint32 {
		return p, fmt.Errorf("%d bytes are more than a file of blocks can hold", len(bytes))
	}
	p.File, p.Offset = b.number, uint32(b.offset)
	b.offset += int64(len(bytes))
	b.parts = append(b.parts, part{p, bytes})
	return p, nil
}

// Len returns how many byte strings were added; Cut forgets those from the n-th on.
func (b *Batch) Len() int { return len(b.parts) }

// Cut is described at Len.
func (b *Batch) Cut(n int) {
	if n == len(b.parts) {
		return
	}
	first := b.parts[n].place
	b.number, b.offset = first.File, int64(first.Offset)
	clear(b.parts[n:])
	b.parts = b.parts[:n]
}

// Reset forgets what was added.
func (b *Batch) Reset() {
	clear(b.parts)
	*b = Batch{files: b.files, parts: b.parts[:0]}
}

// Write writes what was added. When it returns nil it is on disk, if the files are
// synced; the places are to be given to Keep then.
func (b *Batch) Write() error {
	f := b.files
	for i, part := range b.parts {
		if i == 0 && !f.grows || part.place.File != f.current {
			if err := f.begin(); err != nil {
				return fmt.Errorf("begin a file of blocks: %w", err)
			}
		}
		if _, err := f.View().files[f.current].WriteAt(part.bytes, int64(part.place.Offset)); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(f.dir, Name(f.current)), err)
		}
		f.size = part.place.end()
		last := i+1 == len(b.parts) || b.parts[i+1].place.File != f.current
		if !f.sync || !last {
			continue
		}
		if err := disk.Sync(f.View().files[f.current]); err != nil {
			return fmt.Errorf("sync %s: %w", filepath.Join(f.dir, Name(f.current)), err)
		}
	}
	return nil
}
