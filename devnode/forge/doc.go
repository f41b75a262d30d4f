// Package forge makes blocks: a chain of valid linked blocks of every era from
// a seed, and beside it a plain ledger in memory, the Oracle, that knows the
// unspent outputs after any block of the tree and what each block did.
//
// Everything that a follower checks or computes is right: parent, height, slot,
// body hash and size, Byron proofs, transaction ids, validity flags, balances.
// Signatures, VRF proofs and operational certificates are random bytes of the
// right length, and no script is ever run.
//
// The oracle works from what the forge meant to write, not from the bytes it
// wrote, and shares no code with the packages it is there to test.
package forge
