// Package mailbox is where events wait for their reader: Delta, a queue that
// never drops, and Latest, one slot in which the newer value wins. It knows
// nothing of chains.
//
// Producers offer in two halves. The first (OfferBuffered, FailBuffered,
// CloseBuffered) may be called under the producer's own lock: nothing of it
// can be observed. The second (Flush) is called with no lock held: it makes
// what was buffered visible, wakes readers, runs the wake callback and tells
// the owner when the mailbox has died. Every mailbox is safe for concurrent
// use by any number of producers and readers. None starts a goroutine.
package mailbox
