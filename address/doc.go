// Package address reads Cardano addresses of every kind and keeps them as the
// bytes they are: nothing here normalises, crops or re-encodes an address.
//
// The header byte of a Shelley address holds the kind in its high nibble and
// the network id in its low one (CIP-19; ledger CDDL, rule "address"); a Byron
// address is the CBOR array [24(payload), crc32] and so begins with 0x82. What
// the chain carries is not always tidy: before Babbage the ledger accepted
// bytes after the end of an address and pointers whose numbers do not fit 64
// bits. Such addresses answer as far as they can be understood.
//
// The accessors take the raw bytes, never write to them, never keep them, and
// do not allocate.
package address
