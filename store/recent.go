package store

import "github.com/ourotail/ourotail/chain"

// recent holds the newest outputs written, as they are in the database, and
// forgets them when they are spent, undone or old: spends are young, and asking
// Badger costs some fifty times as much. What is in it is unspent at the head;
// what is not may be anything.
//
// It is a ring: values lie in buf in the order they were written, queue says
// where, and the oldest make room. One goroutine uses it.
type recent struct {
	buf   []byte
	index map[chain.TxIn]uint32 // place in queue
	queue []recentValue         // a ring, too
	first uint32                // oldest in queue
	count uint32
	next  int // where the next value goes in buf
}

type recentValue struct {
	ref     chain.TxIn
	at, end int
}

// recentMean is about what an output takes; it sizes the queue.
const recentMean = 128

func newRecent(size int) *recent {
	return &recent{
		buf:   make([]byte, size),
		index: map[chain.TxIn]uint32{},
		queue: make([]recentValue, max(size/recentMean, 1)),
	}
}

// get returns an output's value, valid until the next apply; nil if it is not
// here.
func (r *recent) get(ref chain.TxIn) []byte {
	i, ok := r.index[ref]
	if !ok {
		return nil
	}
	v := &r.queue[i]
	return r.buf[v.at:v.end:v.end]
}

// apply takes over writes that are on disk: new outputs come in, those removed
// or marked as spent go.
func (r *recent) apply(ops []op) {
	for i := range ops {
		o := &ops[i]
		switch kind := o.key[0]; {
		case kind == keyOutput && !o.del:
			r.put(chain.TxInFromKey(o.key[1:]), o.val)
		case kind == keyOutput, kind == keyMark && !o.del:
			delete(r.index, chain.TxInFromKey(o.key[1:]))
		}
	}
}

func (r *recent) put(ref chain.TxIn, value []byte) {
	delete(r.index, ref) // a block that comes back after a fork makes the same output
	if len(value) > len(r.buf)/2 {
		return
	}
	if r.next+len(value) > len(r.buf) {
		r.dropUntil(r.next, len(r.buf)) // the rest of the ring is left empty
		r.next = 0
	}
	r.dropUntil(r.next, r.next+len(value))
	if r.count == uint32(len(r.queue)) {
		r.drop()
	}
	i := (r.first + r.count) % uint32(len(r.queue))
	copy(r.buf[r.next:], value)
	r.queue[i] = recentValue{ref: ref, at: r.next, end: r.next + len(value)}
	r.index[ref] = i
	r.count++
	r.next += len(value)
}

// dropUntil drops the oldest values for as long as they reach into a stretch of
// buf that is about to be used.
func (r *recent) dropUntil(from, to int) {
	for r.count > 0 {
		if v := &r.queue[r.first]; v.at >= to || v.end <= from {
			return
		}
		r.drop()
	}
}

func (r *recent) drop() {
	ref := r.queue[r.first].ref
	if i, ok := r.index[ref]; ok && i == r.first {
		delete(r.index, ref)
	}
	r.first = (r.first + 1) % uint32(len(r.queue))
	r.count--
}
