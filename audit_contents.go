package ourotail

import (
	"bytes"
	"strings"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger/canon"
)

// contents is the canonical text of an output's five fields.
func contents(o *chain.TxOut) string { return string(canon.AppendContent(nil, o)) }

// contentFields names the fields of the canonical text.
var contentFields = [...]string{"address", "lovelace", "assets", "datum", "script"}

// differing names the fields in which an output of ours, made in an era, is
// another than the node's.
func differing(ours, node *chain.TxOut, made chain.Era) (fields []string) {
	mine, theirs := strings.Fields(contents(ours)), strings.Fields(contents(node))
	for i, name := range contentFields {
		if mine[i] != theirs[i] && (i > 0 || !cropped(ours.Address, node.Address, made)) {
			fields = append(fields, name)
		}
	}
	return fields
}

// cropped tells whether the node's address is ours without the bytes that follow
// the end of it. Until Babbage such bytes were let pass and forgotten
// (cardano-ledger Address.hs, fromCborBackwardsBothAddr); we keep them.
func cropped(ours, node []byte, made chain.Era) bool {
	if made == chain.Byron || made >= chain.Babbage || !bytes.HasPrefix(ours, node) {
		return false
	}
	return len(node) == addressSize(ours)
}

// addressSize is how many of the bytes are the address itself: a header, a
// payment credential, and by its kind a stake credential or a pointer of three
// numbers, seven bits a byte (CIP-19). It is 0 for other kinds.
func addressSize(a []byte) int {
	const payment = 1 + address.HashSize
	switch address.KindOf(a) {
	case address.Base:
		return payment + address.HashSize
	case address.Enterprise:
		return payment
	case address.Pointer:
		n := payment
		for numbers := 0; numbers < 3 && n < len(a); n++ {
			if a[n] < 0x80 {
				numbers++
			}
		}
		return n
	}
	return 0
}
