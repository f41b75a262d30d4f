package follow

import (
	"sync"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// Phase is what the follower is doing.
type Phase string

// The phases.
const (
	Starting     Phase = "starting"
	Connecting   Phase = "connecting"
	Syncing      Phase = "syncing"      // far from the node's tip
	Following    Phase = "following"    // at the node's tip, or a few blocks away
	NodeBehind   Phase = "node behind"  // the node is still catching up with us
	Disconnected Phase = "disconnected" // waiting before the next attempt
	RollingBack  Phase = "rolling back" // undoing blocks
	Stopped      Phase = "stopped"      // Run has returned
)

// Status is a picture of a follower.
type Status struct {
	Phase     Phase
	Head      chain.Link // newest committed block
	Newest    chain.Link // newest block taken: far from the tip it may not be on disk yet
	Tip       chain.Tip  // the node's, as last heard
	TipSeen   time.Time  // when it was heard
	Braked    time.Time  // since when Config.Brake has held following back, and the node is not listened to; zero while it does not
	LastBlock time.Time  // when a block was last committed
	LastError error      // of the last session that failed; nil once blocks come again
	Failures  int        // sessions that failed in a row
	Blocks    int64      // blocks committed by this process
	Bytes     int64      // their raw size
	Txs       int64
	Rollbacks int64
}

type status struct {
	mu  sync.Mutex
	now Status
}

func (s *status) get() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *status) update(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}
