package store

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/ourotail/ourotail/chain"
)

// refTable maps references to values, in little memory: values lie end to end in
// chunks, and a slot of the table is eight bytes. What is removed leaves its bytes
// behind until compact. The zero value is empty. One goroutine uses it.
type refTable struct {
	slots  []refSlot // open addressing, linear probing; the length is a power of two
	used   int
	live   int // bytes of the records that are in the table
	chunks [][]byte
	at     int // chunk in use
	seed   maphash.Seed
}

// refSlot is empty if at is 0. at is the record's chunk and its place there, plus
// one.
type refSlot struct{ tag, at uint32 }

// A record is the length of its value, the output's key in the database, and the
// value; it begins at a multiple of recordAlign.
const (
	tableChunk   = 1 << 20
	recordAlign  = 8
	recordHead   = 4 + refKeySize
	placeBits    = 18 // of at: enough for the places of two chunks
	tableMinSize = 1 << 10
)

func (t *refTable) record(at uint32) []byte {
	at--
	return t.chunks[at>>placeBits][int(at&(1<<placeBits-1))*recordAlign:]
}

func recordValue(rec []byte) []byte {
	n := recordHead + int(binary.LittleEndian.Uint32(rec))
	return rec[recordHead:n:n]
}

func recordRef(rec []byte) []byte { return rec[5:recordHead] }

// slot returns where a reference stands, or the empty slot where it would.
func (t *refTable) slot(key []byte) (i uint32, tag uint32, found bool) {
	h := maphash.Bytes(t.seed, key)
	tag = uint32(h >> 32)
	mask := uint32(len(t.slots) - 1)
	for i = uint32(h) & mask; t.slots[i].at != 0; i = (i + 1) & mask {
		if s := t.slots[i]; s.tag == tag && string(recordRef(t.record(s.at))) == string(key) {
			return i, tag, true
		}
	}
	return i, tag, false
}

// get returns a value, valid until the table is compacted or cleared; nil if it
// is not there.
func (t *refTable) get(ref chain.TxIn) []byte {
	if t.used == 0 {
		return nil
	}
	var key [chain.TxInSize]byte
	i, _, found := t.slot(ref.AppendKey(key[:0]))
	if !found {
		return nil
	}
	return recordValue(t.record(t.slots[i].at))
}

// put enters a value of at most size bytes, which fill appends to the slice it is
// given. A value that is there already is replaced.
func (t *refTable) put(ref chain.TxIn, size int, fill func(b []byte) []byte) {
	if t.used >= len(t.slots)*3/4 {
		t.grow()
	}
	b, at := t.take(recordHead + size)
	b = ref.AppendKey(append(b[:4], keyOutput))
	b = fill(b)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-recordHead))
	t.end(len(b))
	i, tag, found := t.slot(recordRef(b))
	if found {
		t.live -= recordHead + len(recordValue(t.record(t.slots[i].at)))
	} else {
		t.used++
	}
	t.slots[i] = refSlot{tag, at}
	t.live += len(b)
}

// take returns room for a record of at most n bytes, and where it is; end says
// how much was needed.
func (t *refTable) take(n int) (b []byte, at uint32) {
	for ; t.at < len(t.chunks); t.at++ {
		if c := t.chunks[t.at]; cap(c)-len(c) >= n && len(c) < recordAlign<<placeBits {
			return c[len(c) : len(c)+4 : len(c)+n], uint32(t.at)<<placeBits + uint32(len(c)/recordAlign) + 1
		}
	}
	t.chunks = append(t.chunks, make([]byte, 0, max(n, tableChunk)))
	return t.chunks[t.at][:4:n], uint32(t.at)<<placeBits + 1
}

func (t *refTable) end(n int) {
	c := t.chunks[t.at]
	t.chunks[t.at] = c[:min(len(c)+(n+recordAlign-1)&^(recordAlign-1), cap(c))]
}

// remove takes a reference out; false if it was not there.
func (t *refTable) remove(ref chain.TxIn) bool {
	if t.used == 0 {
		return false
	}
	var key [chain.TxInSize]byte
	i, _, found := t.slot(ref.AppendKey(key[:0]))
	if !found {
		return false
	}
	t.used--
	t.live -= recordHead + len(recordValue(t.record(t.slots[i].at)))
	mask := uint32(len(t.slots) - 1)
	for j := (i + 1) & mask; t.slots[j].at != 0; j = (j + 1) & mask {
		// What stands at j may move to i if i lies on its way from its first slot.
		home := uint32(maphash.Bytes(t.seed, recordRef(t.record(t.slots[j].at)))) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = refSlot{}
	return true
}

func (t *refTable) grow() {
	old := t.slots
	if old == nil {
		t.seed = maphash.MakeSeed()
	}
	t.slots = make([]refSlot, max(tableMinSize, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.at == 0 {
			continue
		}
		i := uint32(maphash.Bytes(t.seed, recordRef(t.record(s.at)))) & mask
		for t.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// size is the memory in use, in bytes, about.
func (t *refTable) size() int {
	n := len(t.slots) * 8
	for i := range min(t.at+1, len(t.chunks)) {
		n += cap(t.chunks[i])
	}
	return n
}

// compact moves what is in the table together.
func (t *refTable) compact() {
	old := *t
	t.chunks, t.at = nil, 0
	for i, s := range t.slots {
		if s.at == 0 {
			continue
		}
		rec := old.record(s.at)
		rec = rec[:recordHead+len(recordValue(rec))]
		b, at := t.take(len(rec))
		copy(b[:len(rec)], rec)
		t.end(len(rec))
		t.slots[i].at = at
	}
}

// clear empties the table and keeps its memory.
func (t *refTable) clear() {
	clear(t.slots)
	for i := range t.chunks {
		t.chunks[i] = t.chunks[i][:0]
	}
	t.used, t.live, t.at = 0, 0, 0
}

// each yields every record's key in the database, and value, until they change.
func (t *refTable) each(yield func(key, value []byte) bool) {
	for _, s := range t.slots {
		if s.at != 0 {
			rec := t.record(s.at)
			if !yield(rec[4:recordHead:recordHead], recordValue(rec)) {
				return
			}
		}
	}
}
