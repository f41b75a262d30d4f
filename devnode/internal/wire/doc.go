// Package wire writes and skims CBOR (RFC 8949) for devnode: appending single
// heads, so that a generated block can have any legal shape, and stepping over
// items without decoding them.
package wire
