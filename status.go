package ourotail

import (
	"context"
	"strconv"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// Status tells how a data directory and its follower are doing, in the shape
// that programs read. Fields are only ever added.
type Status struct {
	Network   string      `json:"network,omitempty"` // name, if it is a public one
	Magic     uint32      `json:"network_magic"`
	K         int64       `json:"security_parameter"`
	Retention string      `json:"retention"` // pruned or archive
	Head      chain.Point `json:"head"`      // newest committed block
	Height    int64       `json:"height"`    // of the head; -1 at origin
	Slot      uint64      `json:"slot"`
	Era       string      `json:"era,omitempty"`
	Tip       *Tip        `json:"tip"` // the node's; null if no follower is running
	Highest   int64       `json:"highest_height"`
	Floor     chain.Point `json:"floor"` // oldest point that can be rolled back to
	UTxOs     int64       `json:"utxo_count"`
	Lovelace  string      `json:"lovelace"`
	Index     IndexStatus `json:"index"`

	Running   bool    `json:"running"`         // a follower holds the directory
	Phase     string  `json:"phase,omitempty"` // what it does
	LastError string  `json:"last_error,omitempty"`
	LastBlock *string `json:"last_block_time,omitempty"` // when a block was last committed, RFC 3339

	Health *Health `json:"health,omitempty"` // of a running follower

	Disk *DiskStatus `json:"disk,omitempty"`

	Digest *DigestStatus `json:"digest,omitempty"`
}

// Tip is a node's newest point.
type Tip struct {
	Point  chain.Point `json:"point"`
	Height int64       `json:"height"`
}

// IndexStatus tells how far the indexes are.
type IndexStatus struct {
	Built bool    `json:"built"`
	Done  float64 `json:"done"` // 0 to 1
}

// DigestStatus is what a full scan found.
type DigestStatus struct {
	Accumulator string `json:"accumulator"`
	UTxOs       int64  `json:"utxo_count"`
	Lovelace    string `json:"lovelace"`
}

// Status describes the directory; with digest the whole set is read.
func (d *Dir) Status(ctx context.Context, digest bool) (Status, error) {
	st := d.store.State()
	s := Status{
		Network: ledger.NetworkName(st.Magic), Magic: st.Magic, K: int64(st.K), Retention: retention(st),
		Head: st.Head.Point, Height: int64(st.Head.Height), Slot: uint64(st.Head.Point.Slot),
		Highest: int64(st.Highest), Floor: st.Floor.Point,
		UTxOs: st.UTxOs, Lovelace: strconv.FormatUint(st.Lovelace, 10),
		Index: IndexStatus{Built: st.Index.Built, Done: st.Index.Done},
	}
	if !st.Head.Point.IsOrigin() {
		s.Era = st.Head.Era.String()
	}
	s.Disk = d.disk()
	if !digest {
		return s, nil
	}
	v := d.View()
	defer v.Close()
	found, err := v.Digest(ctx)
	if err != nil {
		return s, err
	}
	s.Digest = &DigestStatus{Accumulator: found.Accumulator, UTxOs: found.UTxOs, Lovelace: strconv.FormatUint(found.Lovelace, 10)}
	return s, nil
}

func retention(st store.State) string {
	if st.Archive {
		return "archive"
	}
	return "pruned"
}

// Status describes the directory and the follower.
func (f *Follower) Status(ctx context.Context, digest bool) (Status, error) {
	s, err := f.dir.Status(ctx, digest)
	now := f.Progress()
	s.Running, s.Phase = true, string(now.Phase)
	h := f.Health()
	s.Health = &h
	s.Disk.Reserve = f.room.want
	if !now.TipSeen.IsZero() && (!now.Tip.IsOrigin() || now.Tip.Height == chain.OriginHeight) { // else only a height is known
		s.Tip = &Tip{Point: now.Tip.Point, Height: int64(now.Tip.Height)}
	}
	if now.LastError != nil {
		s.LastError = now.LastError.Error()
	}
	if !now.LastBlock.IsZero() {
		at := now.LastBlock.UTC().Format(time.RFC3339)
		s.LastBlock = &at
	}
	return s, err
}
