package ourotail

import "time"

// WatchEvery makes silence noticed sooner than a person could wait for. Call it
// before Run.
func (f *Follower) WatchEvery(quiet, frozen time.Duration) {
	f.watch.quiet, f.watch.frozen = quiet, frozen
}
