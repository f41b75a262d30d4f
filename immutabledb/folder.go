package immutabledb

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/chain"
)

// Options say what a folder should hold. All are required.
type Options struct {
	// ChunkSlots is how many slots a chunk spans: on every network the length of a
	// Byron epoch, 10k of the Byron genesis.
	ChunkSlots uint64
	// K is the security parameter, in blocks.
	K chain.Height
	// Link reads a block's place in its chain. It is asked for single blocks.
	Link func(raw []byte) (chain.Link, error)
}

// Folder is a node's ImmutableDB, opened for reading. It is used by one
// goroutine at a time and holds nothing open.
type Folder struct {
	dir         string
	opts        Options
	first, last int // numbers of the chunks that were listed
	scratch     []byte
}

// Open lists a folder and checks that it may hold this network's chain. Errors
// are *Error: ErrMissing, ErrRead, ErrEmpty, ErrDamaged for a gap between chunks,
// ErrNotOurs for chunks of another network's length.
func Open(dir string, opts Options) (*Folder, error) {
	f := &Folder{dir: dir, opts: opts}
	if err := f.list(); err != nil {
		return nil, err
	}
	if f.last > f.first { // the first chunk is complete
		st, err := os.Stat(f.path(f.first, "primary"))
		if err != nil {
			return nil, f.unreadable(name(f.first, "primary"), err)
		}
		if n := PrimarySlots(st.Size()); n != 0 && n != opts.ChunkSlots {
			if err := f.spoilt(f.first); err != nil {
				return nil, err
			}
			return nil, &Error{Dir: dir, Offset: -1, Kind: ErrNotOurs, Hint: hintNotOurs,
				Cause: fmt.Errorf("a chunk has %d slots, on this network it would have %d", n, opts.ChunkSlots)}
		}
	}
	return f, nil
}

// spoilt tells a complete chunk whose primary index has another length because
// something happened to it from one of another network: then all have that length,
// and what is in it makes sense.
func (f *Folder) spoilt(chunk int) error {
	raw, err := os.ReadFile(f.path(chunk, "primary"))
	if err != nil {
		return f.unreadable(name(chunk, "primary"), err)
	}
	if _, err := ParsePrimary(raw); err != nil {
		return f.damaged(chunk, "primary", -1, "%w", err)
	}
	if chunk+1 == f.last {
		return nil
	}
	st, err := os.Stat(f.path(chunk+1, "primary"))
	if err != nil {
		return f.unreadable(name(chunk+1, "primary"), err)
	}
	if st.Size() != int64(len(raw)) {
		return f.damaged(chunk, "primary", -1, "it has %d bytes, the next one %d", len(raw), st.Size())
	}
	return nil
}

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.dir }

func name(chunk int, kind string) string { return fmt.Sprintf("%05d.%s", chunk, kind) }

func (f *Folder) path(chunk int, kind string) string { return filepath.Join(f.dir, name(chunk, kind)) }

// list finds the first and the last chunk.
func (f *Folder) list() error {
	files, err := os.ReadDir(f.dir)
	if err != nil {
		return f.unreadable("", err)
	}
	var numbers []int
	for _, e := range files {
		if text, ok := strings.CutSuffix(e.Name(), ".chunk"); ok {
			if n, err := strconv.Atoi(text); err == nil && n >= 0 && e.Name() == name(n, "chunk") {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) == 0 {
		return f.empty()
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != numbers[0]+i {
			return f.damaged(numbers[0]+i, "chunk", -1, "it is not there, and later ones are")
		}
	}
	f.first, f.last = numbers[0], numbers[len(numbers)-1]
	return nil
}

// index is what the three files of a chunk say of its blocks.
type index struct {
	chunk    int
	sealed   bool             // there is a next chunk: nothing more comes
	entries  []SecondaryEntry // all that were read; n of them are accounted for
	n        int
	size     int64 // of the chunk
	boundary bool  // the first block is a boundary block
}

// end is where the i-th block ends in the chunk. For the last block of a chunk
// that is not sealed that is a guess: another may have been begun.
func (x *index) end(i int) int64 {
	if i+1 < len(x.entries) {
		return int64(x.entries[i+1].Offset)
	}
	return x.size
}

// maxBlock bounds a block's size: a wrong index must not make us allocate
// without limit. The largest blocks ever are boundary blocks of 648 kB.
const maxBlock = 64 << 20

// load reads the indexes of a chunk that was listed.
func (f *Folder) load(chunk int) (*index, error) {
	x := &index{chunk: chunk, sealed: chunk < f.last}
	raw, err := f.read(x, "primary")
	if err != nil {
		return nil, err
	}
	var primary Primary
	if len(raw) > 0 || x.sealed {
		if primary, err = ParsePrimary(raw); err != nil {
			return nil, f.damaged(chunk, "primary", -1, "%w", err)
		}
	}
	if raw, err = f.read(x, "secondary"); err != nil {
		return nil, err
	}
	entries, torn := ParseSecondary(raw)
	st, err := os.Stat(f.path(chunk, "chunk"))
	if err != nil {
		return nil, f.unreadable(name(chunk, "chunk"), err)
	}
	x.entries, x.size, x.boundary = entries, st.Size(), primary.HasBoundary()
	x.n = min(primary.Entries(), len(entries))
	if x.sealed {
		switch {
		case torn != nil:
			return nil, f.damaged(chunk, "secondary", int64(len(raw)), "%w", torn)
		case uint64(len(primary)) != f.opts.ChunkSlots+2:
			return nil, f.damaged(chunk, "primary", -1, "it is of %d slots, a complete one is of %d", max(len(primary)-2, 0), f.opts.ChunkSlots)
		case primary.Entries() != len(entries):
			return nil, f.damaged(chunk, "secondary", -1, "it has %d blocks, the primary index %d", len(entries), primary.Entries())
		case len(entries) == 0 && x.size > 0:
			return nil, f.damaged(chunk, "chunk", 0, "it has %d bytes and the index no block", x.size)
		}
	} else {
		for x.n > 0 && int64(entries[x.n-1].Offset) >= x.size {
			x.n-- // a machine that lost power kept the index and not the block
		}
	}
	return x, f.plausible(x, primary)
}

// plausible checks the entries against each other and the primary index.
func (f *Folder) plausible(x *index, primary Primary) error {
	begin := uint64(x.chunk) * f.opts.ChunkSlots
	for i := range x.n {
		e := &x.entries[i]
		at := int64(i) * SecondarySize
		if i == 0 && e.Offset != 0 {
			return f.damaged(x.chunk, "secondary", at, "the first block begins at %d in the chunk", e.Offset)
		}
		if end := x.end(i); e.Offset > maxInt || end <= int64(e.Offset) || end > x.size && x.sealed || end-int64(e.Offset) > maxBlock {
			return f.damaged(x.chunk, "secondary", at, "a block from %d to %d in a chunk of %d bytes", e.Offset, end, x.size)
		}
		relative := uint64(0)
		if i > 0 || !x.boundary {
			relative = e.SlotOrEpoch - begin + 1 // beyond the primary index if the slot lies below
		} else if e.SlotOrEpoch != uint64(x.chunk) {
			return f.damaged(x.chunk, "secondary", at, "the boundary block of epoch %d", e.SlotOrEpoch)
		}
		if relative >= uint64(len(primary)-1) ||
			primary[relative] != uint32(i*SecondarySize) || primary[relative+1] != uint32((i+1)*SecondarySize) {
			return f.damaged(x.chunk, "secondary", at, "a block of slot %d: the primary index has it elsewhere", e.SlotOrEpoch)
		}
	}
	return nil
}

const maxInt = 1<<63 - 1

// read reads an index file. Where a chunk is being written it may not be there
// yet.
func (f *Folder) read(x *index, kind string) ([]byte, error) {
	b, err := os.ReadFile(f.path(x.chunk, kind))
	if os.IsNotExist(err) {
		if !x.sealed {
			return nil, nil
		}
		return nil, f.damaged(x.chunk, kind, -1, "it is not there")
	}
	if err != nil {
		return nil, f.unreadable(name(x.chunk, kind), err)
	}
	return b, nil
}

// point is where the i-th block lies in its chain. A boundary block has the first
// slot of its epoch, which is the chunk's.
func (f *Folder) point(x *index, i int) chain.Point {
	e := &x.entries[i]
	if i == 0 && x.boundary {
		return chain.Point{Slot: chain.Slot(uint64(x.chunk) * f.opts.ChunkSlots), Hash: e.Hash}
	}
	return chain.Point{Slot: chain.Slot(e.SlotOrEpoch), Hash: e.Hash}
}

// find looks for a point of the chain. It returns the chunk's index and the
// block's place in it.
func (f *Folder) find(p chain.Point) (x *index, i int, ok bool, err error) {
	n := uint64(p.Slot) / f.opts.ChunkSlots
	if n < uint64(f.first) || n > uint64(f.last) {
		return nil, 0, false, nil
	}
	if x, err = f.load(int(n)); err != nil {
		return nil, 0, false, err
	}
	for i := range x.n {
		if x.entries[i].Hash == p.Hash && f.point(x, i) == p {
			return x, i, true, nil
		}
	}
	return nil, 0, false, nil
}
