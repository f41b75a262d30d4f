package store

import (
	"encoding/binary"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// record is the journal's view of a block: enough to undo it (both lists of
// references), to say what it did, and to find its bytes. The contents of what
// it spent and made are under keyOutput for as long as the record lives.
type record struct {
	link    chain.Link
	raw     segment.Place // the block's bytes
	made    uint64
	used    uint64 // lovelace of what it made and spent
	txs     []chain.TxEffects
	spent   []chain.TxIn
	created []chain.TxIn
}

func recordSize(e *chain.Effects) int {
	return linkMax + placeMax + 3*10 + len(e.Txs)*(32+1+2*5) + len(e.Spent)*chain.TxInSize + len(e.Created)*5
}

func appendRecord(b []byte, e *chain.Effects, raw segment.Place, made, used uint64) []byte {
	b = appendLink(b, e.Link)
	b = appendPlace(b, raw)
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

// recordStart reads only the beginning of a record.
func recordStart(b []byte) (chain.Link, segment.Place, error) {
	r := reader{b: b}
	l, raw := r.link(), r.place()
	if r.bad {
		return originLink(), segment.Place{}, r.end("a journal record")
	}
	return l, raw, nil
}

// recordLink reads only the link of a record.
func recordLink(b []byte) (chain.Link, error) {
	l, _, err := recordStart(b)
	return l, err
}

const placeMax = 3*5 + 4

func appendPlace(b []byte, p segment.Place) []byte {
	b = binary.AppendUvarint(b, uint64(p.Size))
	if p.Size == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(p.File))
	b = binary.AppendUvarint(b, uint64(p.Offset))
	return binary.BigEndian.AppendUint32(b, p.Sum)
}

func (r *reader) place() (p segment.Place) {
	p.Size = uint32(r.below(1 << 32))
	if p.Size == 0 {
		return p
	}
	p.File, p.Offset = uint32(r.below(1<<32)), uint32(r.below(1<<32))
	if b := r.bytes(4); b != nil {
		p.Sum = binary.BigEndian.Uint32(b)
	}
	if p.File == 0 || r.bad {
		r.fail()
		return segment.Place{}
	}
	return p
}

// decode replaces the record by what b holds, reusing its lists.
func (rec *record) decode(b []byte) error {
	r := reader{b: b}
	rec.txs, rec.spent, rec.created = rec.txs[:0], rec.spent[:0], rec.created[:0]
	rec.link = r.link()
	rec.raw = r.place()
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
