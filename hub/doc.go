// Package hub keeps track of who is subscribed to what and turns every block
// into the events of each subscription: the contract's sections 1 to 4.
//
// A provider hands it blocks and rollbacks. There is no worker goroutine:
// every operation runs on its caller's goroutine, guarded by one mutex. Events
// are buffered in mailboxes under the mutex and delivered after releasing it;
// ApplyBlock and RollbackTo are also offered in these two halves (BufferBlock,
// BufferRollback), so that a provider can buffer under a lock of its own.
// Nothing is delivered, read or called back under the hub's mutex.
//
// Matching a block costs what the block holds: subscriptions are found by the
// keys of their queries. Subscriptions of one depth that stand at one height
// form a group with one watermark, so that a quiet one costs nothing at all.
package hub
