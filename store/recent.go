package store

import "github.com/ourotail/ourotail/chain"

// recent holds the newest outputs written, as they are in the database, and
// forgets them when they are spent, undone or old: spends are young, and asking
// Badger costs some fifty times as much. What is in it is unspent at the head;
// what is not may be anything.
//
// It has two generations: once the young one is full the old one is dropped, and
// takes its place. One goroutine uses it.
type recent struct {
	young, old refTable
	half       int // what one of them may take, in bytes, but for a chunk
}

// recentMax is the longest value that is kept: longer ones are rare, and read
// once.
const recentMax = 16 << 10

func newRecent(size int) *recent { return &recent{half: size / 2} }

// get returns an output's value, valid until the next apply; nil if it is not
// here.
func (r *recent) get(ref chain.TxIn) []byte {
	if v := r.young.get(ref); v != nil {
		return v
	}
	return r.old.get(ref)
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
			r.remove(chain.TxInFromKey(o.key[1:]))
		}
	}
}

func (r *recent) remove(ref chain.TxIn) {
	if !r.young.remove(ref) {
		r.old.remove(ref)
	}
}

func (r *recent) put(ref chain.TxIn, value []byte) {
	r.remove(ref) // a block that comes back after a fork makes the same output
	if len(value) > recentMax {
		return
	}
	if r.young.size() > r.half {
		r.young, r.old = r.old, r.young
		r.young.clear()
	}
	r.young.put(ref, len(value), func(b []byte) []byte { return append(b, value...) })
}
