// Package immutabledb reads the folder in which a node keeps the settled part
// of its chain, the ImmutableDB (ouroboros-consensus, Storage/ImmutableDB), as a
// source of blocks: per stretch of slots a .chunk of blocks in storage form end
// to end, a .secondary of 56-byte entries and a .primary of offsets into the
// latter. It reads only, while the node appends.
//
// # What can be trusted
//
// A node appends a block to the chunk, then to the secondary index, then to the
// primary; it completes all three before it makes the next chunk, and it never
// changes what is written. So the files are read the other way round: is there a
// next chunk, the primary, the secondary, the chunk. What the one that was read
// first accounts for is then in those read after it. With a next chunk the three
// must agree to the byte, and what does not is damage. Without one they end
// where the first of them ends, and a last block that is not all there, or does
// not have its checksum, is not there yet.
//
// Of each block these are checked: its checksum against the secondary index, the
// hash of its header against the index, its slot, and that it names the block
// below it as its parent.
//
// # The tip
//
// A message of a node names the node's tip, and a follower keeps undo data for
// the blocks that are less than k below it, k being the security parameter: no
// node rolls back further from any tip that it had. Files name no tip. Where the
// node could be asked for one, and it is not below the end of the files, that is
// the tip of all messages: the same blocks get undo data as over the socket. It
// grows old while files are read, but a tip that is too low only keeps more.
//
// Where it could not be asked, or is still on its way to the end of the files,
// the tip is put k above that end. A node moves a block to its ImmutableDB when k
// blocks lie above it, and never rolls back a block that is there: the folder is
// what its chain is anchored to. Its own tip was then at least at that height when
// the last block was moved, so the estimate is no higher than a tip the chain has
// had, and a roll backward from that tip ends at or above the end of the files.
// Nothing that the folder holds will be undone, and undo data for it would not be
// used. The same argument holds while the folder grows under the reader: with its
// end the least possible tip rises.
//
// Whose folder it is does not matter to this, only that it is of the same chain;
// the node, when it answers, is asked whether it knows the end of the files.
package immutabledb
