// Package devnode is a node-to-client server on a Unix socket, for demos,
// tests and fork drills. It serves the chain of an ImmutableDB folder or one
// that package forge generates, lets that chain grow and fork, and misbehaves
// on request, down to the bytes of a segment.
//
// A Chain is what is served; a Server serves it; Serve does both until its
// context ends. The protocol facts are those of ouroboros-network's
// network-spec (mux, handshake, chain-sync) and of ouroboros-consensus'
// chain-sync server.
package devnode
