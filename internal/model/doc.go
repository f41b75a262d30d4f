// Package model plays a whole application against a plain list of blocks: the
// real store, resolver, loop and hub, and subscriptions of every kind, before a
// node that is a list. Everything happens in virtual time and in one process, so
// that hours of silence cost nothing, and every choice comes from one seed, so
// that a run can be had again.
//
// # A run
//
// One goroutine, the driver, takes a step, lets some virtual time pass, waits
// until nothing else can move, and looks: the store's set must be the forge's at
// the head it reports, Run must not have returned without a reason, whatever a
// reader was given must fit on what it was given before. Steps make the chain
// grow and fork, take the node away, silence it, set it back, let it lie; kill
// the follower at a named step of its own, fail its disk, restart it; subscribe,
// read, cancel. Now and then everything is settled: the node is honest and
// there, a bounded time passes, and then everything must be exact: the head is
// the node's tip, every reader has every event of every block up to where it
// stands, in order, once, and what they come to is the forge's set there; health
// says so.
//
// # A kill
//
// A kill is a copy of the data directory made by the goroutine that is about to
// take a named step, at that step. What happens in the old process afterwards is
// not looked at. The next process opens the copy; readers go on behind the last
// event they took.
package model
