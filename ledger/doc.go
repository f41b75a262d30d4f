// Package ledger turns the raw bytes of a block into what the block does.
//
// The input is the storage form [era tag, block] (consensus CDDL, block.cddl),
// byte for byte what a node's chain-sync carries inside tag 24. Block.Walk
// reads it once, structurally: it notes where things stand, hashes what has an
// identity, and steps over everything else without understanding it. Original
// bytes are never re-encoded, so identifiers are right however a transaction
// was encoded, and a datum nested ten thousand deep is just a span.
//
// Walk accepts what the ledger accepts. Where the ledger's own decoder has
// rules that change with the era (repeated map keys, zero quantities, repeated
// set members: cardano-ledger-binary Decoder.hs, Mary/Value.hs) it follows
// them; where a part is not needed for what a block does to the set of unspent
// outputs it only has to be well-formed CBOR. Header hash, body hash and body
// size (Byron: the body proof) are checked, signatures and the ledger's rules
// are not: the node has done that.
package ledger
