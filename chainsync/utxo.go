package chainsync

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

// breakByte ends an item of indefinite length (RFC 8949 section 3.2). The ledger
// writes maps of more than 23 pairs so.
const breakByte = 0xff

// parseUTxO reads the answer to a query for outputs into out. It is a list of
// one, a map from [transaction id, index] to an output; or of two, which says
// that the query is for another era than the ledger's: then the error wraps
// ErrEra. Nothing may come that was not asked for, or twice.
func parseUTxO(b []byte, asked map[chain.TxIn]struct{}, out map[chain.TxIn][]byte) error {
	d := decoder{b: b}
	if err := d.ifCurrent(); err != nil {
		return err
	}
	d.utxo(asked, out)
	if d.err == nil && d.off != len(b) {
		d.fail("%d bytes after the answer", len(b)-d.off)
	}
	return whole(d.err)
}

// ifCurrent reads the head of an answer to a query for an era, behind which the
// answer itself comes.
func (d *decoder) ifCurrent() error {
	switch n := d.array("answer"); {
	case d.err != nil, n == 1:
	case n == 2:
		ours, theirs := d.eraName(), d.eraName()
		if d.err == nil && d.off == len(d.b) {
			return fmt.Errorf("%w: it is in %s, the query was for %s", ErrEra, theirs, ours)
		}
		if d.err == nil {
			d.fail("%d bytes after the answer", len(d.b)-d.off)
		}
	default:
		d.fail("an answer of %d items", n)
	}
	return whole(d.err)
}

// eraName reads [number, name].
func (d *decoder) eraName() string {
	if n := d.array("era"); d.err == nil && n != 2 {
		d.fail("an era of %d items", n)
	}
	d.uint("era")
	return string(d.string(majorText, "era", 100))
}

func (d *decoder) utxo(asked map[chain.TxIn]struct{}, out map[chain.TxIn][]byte) {
	d.each(majorMap, "outputs", func() {
		ref := d.txIn()
		size := 0
		if d.err == nil {
			var err error
			if size, err = ledger.ItemSize(d.b[d.off:]); err != nil {
				d.fail("output %s: %s", ref, err)
			}
		}
		if d.err != nil {
			return
		}
		if _, ok := asked[ref]; !ok {
			d.fail("output %s, which was not asked for", ref)
			return
		}
		if _, twice := out[ref]; twice {
			d.fail("output %s twice", ref)
			return
		}
		out[ref] = bytes.Clone(d.b[d.off : d.off+size])
		d.off += size
	})
}

// txIn reads [transaction id, index].
func (d *decoder) txIn() (ref chain.TxIn) {
	if n := d.array("reference"); d.err == nil && n != 2 {
		d.fail("a reference of %d items", n)
	}
	id := d.string(majorBytes, "transaction id", len(ref.ID))
	if d.err == nil && len(id) != len(ref.ID) {
		d.fail("a transaction id of %d bytes", len(id))
	}
	copy(ref.ID[:], id)
	index := d.uint("index")
	if d.err == nil && index > 1<<32-1 {
		d.fail("index %d", index)
	}
	ref.Index = uint32(index)
	return ref
}

// whole is an error about a message that is complete: it cannot be short.
func whole(err error) error {
	if errors.Is(err, errShort) {
		return fmt.Errorf("%w: it ends inside an item", ErrMalformed)
	}
	return err
}
