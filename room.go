package ourotail

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/ourotail/ourotail/chain"
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

// reserve is the room that the database may need at once: its log files are
// sparse and written through memory maps, where a full disk is a fault that no
// program survives. Two memtables' logs, a batch and one compaction.
func reserve(memory int64) uint64 {
	if memory <= 0 {
		memory = store.DefaultMemory
	}
	return uint64(max(memory/2, 64<<20))
}

// checkRoom refuses to write where the reserve is gone.
func checkRoom(dir string, memory int64) error {
	// A file system that does not tell cannot be watched.
	if free, err := diskFree(dir); err == nil && free < reserve(memory) {
		return &DiskError{Dir: dir, Free: free, Want: reserve(memory)}
	}
	return nil
}

// roomyStore is the store as follow sees it: before each commit there must be
// room for it.
type roomyStore struct {
	*store.Store
	dir    string
	memory int64
}

func (s roomyStore) Gather(blocks []*chain.Effects) error {
	if err := checkRoom(s.dir, s.memory); err != nil {
		return err
	}
	return s.Store.Gather(blocks)
}

func (s roomyStore) Commit(blocks []*chain.Effects) error {
	if err := checkRoom(s.dir, s.memory); err != nil {
		return err
	}
	return s.Store.Commit(blocks)
}
