package ourotail

import (
	"context"
	"errors"
	"time"

	"github.com/ourotail/ourotail/internal/disk"
)

// scrubEvery is how often a follower reads all of its tables, whose blocks could
// have been damaged since they were written: a few megabytes a second at most, on
// a large store.
const scrubEvery = time.Hour

// scrub verifies the store now and then until ctx ends, or until it is damaged.
func (f *Follower) scrub(ctx context.Context) error {
	tick := time.NewTicker(scrubEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		began := time.Now()
		err := f.store.Verify(ctx)
		if err != nil {
			if errors.Is(err, ctx.Err()) {
				return nil
			}
			return err
		}
		use := f.store.DiskUse()
		f.cfg.Logger.Info("verified the tables", "tables", use.Tables, "bytes", use.TableBytes, "took", time.Since(began).Round(time.Millisecond))
	}
}

// watchStore returns what became known of the store behind our back, damage for
// instance: there may be no block for long, at which following would meet it.
func (f *Follower) watchStore(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-f.store.Failed():
		return f.store.Err()
	}
}

// DiskStatus is what a data directory takes of its disk.
type DiskStatus struct {
	Tables     int    `json:"tables"`
	TableBytes int64  `json:"table_bytes"`
	StaleBytes int64  `json:"stale_bytes"` // of those, known to be dropped by the next merge
	Unmerged   int    `json:"unmerged_tables"`
	LogBytes   int64  `json:"log_bytes"`
	FreeBytes  uint64 `json:"free_bytes"`
	Reserve    uint64 `json:"reserve_bytes"` // a follower stops below it; 0 if none runs
}

func (d *Dir) disk() *DiskStatus {
	u := d.store.DiskUse()
	free, err := disk.Free(d.path)
	if err != nil {
		free = 0 // a file system that does not tell
	}
	return &DiskStatus{Tables: u.Tables, TableBytes: u.TableBytes, StaleBytes: u.StaleBytes, Unmerged: u.UnmergedL0, LogBytes: u.LogBytes, FreeBytes: free}
}
