package ourotail

import (
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/internal/disk"
)

// Grade is how a follower is, in one word.
type Grade string

// The grades, best first.
const (
	Healthy   Grade = "ok"       // connected, and as far as the node
	Degraded  Grade = "degraded" // working on it: synchronising, or waiting for a node that is
	Unhealthy Grade = "failing"  // somebody should look
)

// Health is everything that a monitor asks of a follower, in one place. Fields
// are only ever added.
type Health struct {
	Grade     Grade    `json:"grade"`
	Reasons   []string `json:"reasons,omitempty"` // why it is not ok
	Connected bool     `json:"connected"`
	// LagBlocks is how far the head lies below the node's tip, LagSlots how many
	// slots have begun since the head's; -1 if not known.
	LagBlocks int64 `json:"lag_blocks"`
	LagSlots  int64 `json:"lag_slots"`
	// QuietSeconds is how long the node has said nothing. A quiet chain is
	// healthy: after a while the node is asked over a second connection.
	QuietSeconds float64 `json:"quiet_seconds"`
	Probe        string  `json:"probe,omitempty"` // what it answered last
	// HeldBackSeconds is how long a slow reader has held following back
	// (Config.Brake). Of the node's tip nothing is known meanwhile.
	HeldBackSeconds float64 `json:"held_back_seconds,omitempty"`
	LastError       string  `json:"last_error,omitempty"`
	Undecodable     string  `json:"undecodable,omitempty"` // where the bytes of a block are that does not decode
	DiskFree        uint64  `json:"disk_free_bytes"`
}

// lagAllowed is how many blocks behind the node's tip is still called ok,
// heldAllowed how long a reader may hold following back, and diskLow below how many
// free bytes somebody should look.
const (
	lagAllowed  = 5
	heldAllowed = 5 * time.Second
	diskLow     = 1 << 30
)

// Health describes the follower now.
func (f *Follower) Health() Health { return f.healthAt(time.Now()) }

func (f *Follower) healthAt(clock time.Time) Health {
	now := f.Progress()
	h := Health{Grade: Healthy, LagBlocks: -1, LagSlots: -1, Probe: f.watch.answer()}
	worse := func(g Grade, format string, args ...any) {
		if g == Unhealthy || h.Grade == Healthy {
			h.Grade = g
		}
		h.Reasons = append(h.Reasons, fmt.Sprintf(format, args...))
	}
	behind := func() {
		worse(Degraded, "the node is behind us, at height %d: it is still synchronising", now.Tip.Height)
	}
	switch now.Phase {
	case follow.Following, follow.Syncing, follow.RollingBack:
		h.Connected = true
	case follow.NodeBehind:
		behind()
	case follow.Starting, follow.Connecting:
		switch {
		case errors.Is(now.LastError, follow.ErrBehind): // it is asked again
			behind()
		case now.Failures == 0:
			worse(Degraded, "%s", now.Phase)
		default:
			worse(Unhealthy, "not connected, %d attempts failed", now.Failures)
		}
	default:
		worse(Unhealthy, "%s", now.Phase)
	}
	if !now.TipSeen.IsZero() {
		h.LagBlocks = int64(max(now.Tip.Height-now.Head.Height, 0))
		h.QuietSeconds = clock.Sub(now.TipSeen).Seconds()
		if h.Connected && h.LagBlocks > lagAllowed {
			worse(Degraded, "%d blocks behind the node", h.LagBlocks)
		}
	}
	if !now.Braked.IsZero() {
		held := clock.Sub(now.Braked)
		if h.HeldBackSeconds = held.Seconds(); held > heldAllowed {
			worse(Degraded, "held back by a reader for %s", held.Round(time.Second))
		}
	}
	if slot, ok := f.slotNow(clock); ok {
		h.LagSlots = max(int64(slot)-int64(now.Head.Point.Slot), 0)
	}
	if err := f.watch.failure(now.TipSeen); err != nil {
		worse(Unhealthy, "%v", err)
	}
	if now.LastError != nil {
		h.LastError = now.LastError.Error()
		var bad *follow.UndecodableError
		if errors.As(now.LastError, &bad) {
			h.Undecodable = bad.Saved
			worse(Unhealthy, "%v", bad)
		}
	}
	if err := f.store.Err(); err != nil { // nothing is written any more
		h.LastError = err.Error()
		worse(Unhealthy, "%v", err)
	}
	if free, err := disk.Free(f.path); err == nil {
		h.DiskFree = free
		if free < diskLow {
			worse(Unhealthy, "only %s free on the disk of %s", humanize.IBytes(free), f.path)
		}
	}
	return h
}
