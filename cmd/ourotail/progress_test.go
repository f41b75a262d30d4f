package main

import (
	"testing"
	"time"

	"github.com/ourotail/ourotail/follow"
)

// TestALogIsQuietWhereNothingHappens: a node that is away for a night, or a follower
// at its tip, is told of once and every ten minutes; a long sync at every tick.
func TestALogIsQuietWhereNothingHappens(t *testing.T) {
	now := time.Unix(0, 0)
	r := &reporter{when: now}
	lines := func(of time.Duration, phases ...follow.Phase) (n int) {
		for i := range int(of / (10 * time.Second)) {
			now = now.Add(10 * time.Second)
			if p := phases[i%len(phases)]; r.due(p, now) {
				r.said, r.when = p, now
				n++
			}
		}
		return n
	}
	if n := lines(time.Minute, follow.Syncing); n != 6 {
		t.Errorf("a minute of syncing: %d lines", n)
	}
	if n := lines(time.Hour, follow.Following); n != 6 {
		t.Errorf("an hour at the tip: %d lines", n)
	}
	if n := lines(time.Hour, follow.Disconnected, follow.Connecting); n < 6 || n > 8 {
		t.Errorf("an hour without a node: %d lines", n)
	}
	if n := lines(10*time.Second, follow.Following); n != 1 {
		t.Errorf("the node is back: %d lines", n)
	}
}
