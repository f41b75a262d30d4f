// Package immutable reads and writes the folder in which a node keeps the
// settled part of its chain, the ImmutableDB (ouroboros-consensus,
// Storage/ImmutableDB): per stretch of slots a .chunk of blocks in storage
// form end to end, a .secondary of 56-byte entries and a .primary of offsets
// into the latter.
//
// The reader needs neither index to be whole, or even there: what they fail
// to say it learns by walking the blocks, and says so in a warning. It never
// writes into the folder and may look at it while a node appends to it.
package immutable
