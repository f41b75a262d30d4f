// Package chainsync speaks node-to-client with a cardano-node over its Unix
// socket: handshake, intersection, and the chain as messages in order.
//
// # One connection, two readers of it
//
// The handshake and the small mini-protocols (state query, transaction monitor
// and submission) are gouroboros'. Chain-sync is our own, because it carries
// all the weight: one goroutine reads the socket in large slabs, takes the
// segments of chain-sync apart in place, and passes all others on, unchanged,
// to gouroboros' muxer, which never learns that somebody else lives on the
// connection.
//
//	socket -> reader (slab) -> segments -> chain-sync: messages -> queue -> Next
//	                                    -> others:     inbox -> gouroboros' muxer
//
// Acquire asks the node for its ledger at a point (unspent outputs, protocol
// parameters, the calendar of eras), Mempool for what waits to get into a block,
// and Submit hands in a transaction: over gouroboros' protocol machinery, with
// answers kept as bytes and read here.
//
// # Who brakes
//
// The protocol is pull-based: the node sends one answer per request. Requests
// slide: far from the tip up to Config.MaxInFlight are outstanding, at the tip
// one. When the queue between the reader and Next holds Config.QueueBytes,
// nothing more is requested; reading goes on. So a slow caller costs bounded
// memory and never makes the node wait for us to read, which it punishes by
// dropping the client after 30 s.
//
// # Silence
//
// A quiet chain is not a dead node: once the node said "await", it may be
// silent for ever. A node that owes an answer (in the handshake, to an
// intersection, to a request it has not acknowledged) and sends nothing for a
// while is given up with ErrSilent. A node that froze after it said "await"
// cannot be told from a quiet chain on the same connection: Probe asks on
// another.
//
// Protocol facts are from the Ouroboros network specification (multiplexer,
// handshake, chain-sync), the CDDL of ouroboros-network, and the consensus
// layer's blockfetch CDDL for the block's wrapper.
package chainsync
