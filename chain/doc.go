// Package chain is the vocabulary of ourotail: slots, heights, hashes, points,
// transaction outputs, and what a block does to the set of unspent outputs.
//
// Everything here is a value; nothing does I/O and nothing imports another
// package of this module. Byte slices inside these values alias a buffer that
// the value's producer documents; readers never write to them.
package chain
