// Package devnode is a node-to-client server on a Unix socket, for demos,
// tests and fork drills. It serves the chain of an ImmutableDB folder or one
// that package forge generates, lets that chain grow and fork, and misbehaves
// on request, down to the bytes of a segment.
//
// It also answers local state queries, as far as ourotail and its users need
// them: the point, height, epoch and era of a ledger state, the system start, the
// calendar of eras, protocol parameters, and unspent outputs by reference. They
// come from the ledger of a generated chain; the blocks of a folder have none
// behind them, and a client that asks for such things is dropped.
//
// A generated chain takes transactions: a client's submission is checked against
// the ledger (signatures and scripts are not), waits in the mempool, where a
// transaction monitor sees it, and is in the next block.
//
// A Chain is what is served; a Server serves it; Serve does both until its
// context ends. The protocol facts are those of ouroboros-network's
// network-spec (mux, handshake, chain-sync, local-state-query) and of
// ouroboros-consensus' servers.
package devnode
