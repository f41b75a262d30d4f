// Package ourotail follows a Cardano node over its local socket, keeps the set
// of unspent outputs with every spend resolved, and serves subscriptions to what
// happens: outputs created and spent, transactions, blocks, rollbacks.
//
// Open wires the parts together; Follower.Run drives them; subscriptions and
// reads may come from any goroutine meanwhile. OpenDir reads a data directory
// that nobody is following into.
package ourotail
