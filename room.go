package ourotail

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/ourotail/ourotail/internal/disk"
	"github.com/ourotail/ourotail/store"
)

// DiskError says that a disk has too little room to go on safely. Nothing was
// written; freeing space and starting again is all that is needed.
type DiskError struct {
	Dir        string
	Free, Want uint64 // bytes
}

// Error implements error.
func (e *DiskError) Error() string {
	return fmt.Sprintf("the disk of %s has %s free, ourotail stops below %s: free some space and start again; nothing is lost",
		e.Dir, humanize.IBytes(e.Free), humanize.IBytes(e.Want))
}

// room is what is asked of the disk before every write: the store's reserve, and
// what a batch of blocks may take on top until it is asked again.
type room struct {
	dir  string
	want uint64
}

// batchRoom is more than a batch of blocks takes besides memtables.
const batchRoom = 32 << 20

func newRoom(o store.Options) room { return room{o.Dir, uint64(o.Reserve() + batchRoom)} }

// check refuses to write where the reserve is gone.
func (r room) check() error {
	// A file system that does not tell cannot be watched.
	if free, err := disk.Free(r.dir); err == nil && free < r.want {
		return &DiskError{Dir: r.dir, Free: free, Want: r.want}
	}
	return nil
}
