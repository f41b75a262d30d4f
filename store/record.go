package store

import (
	"encoding/binary"

	"github.com/ourotail/ourotail/chain"
)

// record is the journal's view of a block: enough to undo it (both lists of
// references), to say what it did, and to find its bytes. The contents of what
// it spent and made are under keyOutput for as long as the record lives.
type record struct {
	link    chain.Link
	rawSize int
	chunks  int // of rawChunk bytes under keyRaw, the last one shorter
	made    uint64
	used    uint64 // lovelace of what it made and spent
	txs     []chain.TxEffects
	spent   []chain.TxIn
	created []chain.TxIn
}

// rawChunk keeps each value small enough to stay out of the value log and, in a
// redo log, within a part.
const rawChunk = 256 << 10

func chunksOf(size, chunk int) int { return (size + chunk - 1) / chunk }

func recordSize(e *chain.Effects) int {
	return linkMax + 4*10 + len(e.Txs)*(32+1+2*5) + len(e.Spent)*chain.TxInSize + len(e.Created)*5
}

func appendRecord(b []byte, e *chain.Effects, chunks int, made, used uint64) []byte {
	b = appendLink(b, e.Link)
	b = binary.AppendUvarint(b, uint64(len(e.Raw)))
	b = binary.AppendUvarint(b, uint64(chunks))
	b = binary.AppendUvarint(b, made)
	b = binary.AppendUvarint(b, used)
	b = binary.AppendUvarint(b, uint64(len(e.Txs)))
	for i, tx := range e.Txs {
		spent, created := e.Tx(i)
		b = append(b, tx.ID[:]...)
		b = appendBool(b, tx.Valid)
		b = binary.AppendUvarint(b, uint64(len(spent)))
		for j := range spent {
			b = spent[j].Ref.AppendKey(b)
		}
		b = binary.AppendUvarint(b, uint64(len(created)))
		for j := range created {
			b = binary.AppendUvarint(b, uint64(created[j].Ref.Index))
		}
	}
	return b
}

// recordLink reads only the link of a record.
func recordLink(b []byte) (chain.Link, error) {
	r := reader{b: b}
	l := r.link()
	if r.bad {
		return originLink(), r.end("a journal record")
	}
	return l, nil
}

// decode replaces the record by what b holds, reusing its lists.
func (rec *record) decode(b []byte) error {
	r := reader{b: b}
	rec.txs, rec.spent, rec.created = rec.txs[:0], rec.spent[:0], rec.created[:0]
	rec.link = r.link()
	rec.rawSize = int(r.below(1 << 40))
	rec.chunks = int(r.below(1 << 16))
	rec.made = r.uvarint()
	rec.used = r.uvarint()
	for n := r.count(32 + 1 + 2); n > 0 && !r.bad; n-- {
		tx := chain.TxEffects{ID: r.hash(), Valid: r.bool()}
		for m := r.count(chain.TxInSize); m > 0; m-- {
			rec.spent = append(rec.spent, r.ref())
		}
		for m := r.count(1); m > 0; m-- {
			rec.created = append(rec.created, chain.TxIn{ID: tx.ID, Index: uint32(r.below(1 << 32))})
		}
		tx.Spent, tx.Created = len(rec.spent), len(rec.created)
		rec.txs = append(rec.txs, tx)
	}
	return r.end("a journal record")
}
