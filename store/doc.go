// Package store keeps the set of unspent outputs, the journal that can undo the
// newest blocks, and the head, in one Badger database.
//
// Its promise is one sentence: whatever instant the process dies at, what Open
// finds is the state behind some block of the chain, a prefix of what was
// committed, never less than what Commit had returned for.
//
// One goroutine writes (Outputs, Commit, Rollback); any number read through
// snapshots. What is on disk is described in ARCHITECTURE.md, section 3; this
// package is the only one that imports Badger.
package store
