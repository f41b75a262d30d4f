// Package rollback keeps the last points of our chain in memory and answers
// what following and rolling back ask of them: which block is the head, which
// points to offer a node, whether a point is ours, what a cut would remove.
//
// It holds links only, never contents, and does no I/O. A Points is used from
// one goroutine.
package rollback
