// Package procs keeps a block at the tip from waiting behind background work.
package procs

import (
	"os"
	"runtime"
)

// enough is more than the goroutines that the database merges tables with at once.
const enough = 16

// Raise lets the kernel decide who runs, where there are few processors. To Go a
// goroutine that has just got its message is one among those that are ready, and each
// of these may go on for 10 ms; a block passes several goroutines, so that merging
// tables on two processors held it up for 100 ms. With a thread for each, the kernel
// prefers the one that slept. A program does this for itself, a library for nobody;
// and not where the variable that Go reads was set.
func Raise() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < enough {
		runtime.GOMAXPROCS(enough)
	}
}
