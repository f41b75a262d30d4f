package devnode

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Message tags of local-tx-submission (local-tx-submission CDDL).
const (
	tagSubmitTx   = 0
	tagAcceptTx   = 1
	tagRejectTx   = 2
	tagSubmitDone = 3
)

// txSubmission is the server's side of one client's local-tx-submission.
type txSubmission struct {
	c  *conn
	in *stream
}

func (s *txSubmission) run() error { return s.in.serve(s.handle) }

func (s *txSubmission) handle(msg []byte) (done bool, err error) {
	tag, n, off, err := readTag(msg, "submission")
	switch {
	case err != nil:
		return false, err
	case tag == tagSubmitDone && n == 1:
		return true, nil
	case tag != tagSubmitTx || n != 2:
		return false, fmt.Errorf("%w: submission message %d of %d items", ErrProtocol, tag, n)
	}
	era, tx, err := parseTx(msg, off)
	if err != nil {
		return false, err
	}
	reply := wire.Uint(wire.Array(nil, 1), tagAcceptTx)
	if reason := s.submit(era, tx); reason != nil {
		reply = append(wire.Uint(wire.Array(nil, 2), tagRejectTx), reason...)
	}
	return false, s.c.send(ProtocolTxSubmission, reply, nil)
}

// submit returns the reason of a rejection, nil if there is none.
func (s *txSubmission) submit(era chain.Era, tx []byte) []byte {
	if say := s.c.srv.behaviour().OnSubmit; say != nil {
		if reason := say(era, tx); reason != nil {
			return reason
		}
	}
	c := s.c.srv.cfg.Chain
	id, no := c.Submit(era, tx)
	if no == nil {
		s.c.srv.log.Info("transaction submitted", "client", s.c.id, "tx", id.String(), "bytes", len(tx))
		return nil
	}
	s.c.srv.log.Info("transaction rejected", "client", s.c.id, "tx", id.String(), "reason", no.Error())
	now := c.LedgerEra()
	if now == 0 {
		now = era
	}
	return AppendRefusal(nil, now, no)
}

// parseTx reads a transaction of an era, [era, #6.24(bytes)] (consensus:
// SerialiseNodeToClient of GenTx). One of Byron has another form and is not
// taken.
func parseTx(b []byte, off int) (chain.Era, []byte, error) {
	bad := func(err error) (chain.Era, []byte, error) {
		return 0, nil, fmt.Errorf("%w: submitted transaction: %w", ErrProtocol, err)
	}
	n, off, err := wire.ReadArray(b, off)
	if err != nil {
		return bad(err)
	}
	era, off, err := wire.ReadUint(b, off)
	if err != nil {
		return bad(err)
	}
	tag, err := wire.Read(b, off)
	if err != nil {
		return bad(err)
	}
	if n != 2 || era == 0 || era >= uint64(len(eraNames)) || tag.Major != wire.MajorTag || tag.Arg != 24 {
		return bad(fmt.Errorf("%d items, era %d, major type %d", n, era, tag.Major))
	}
	tx, end, err := wire.ReadBytes(b, tag.Next)
	if err != nil {
		return bad(err)
	}
	if end != len(b) {
		return bad(fmt.Errorf("%d bytes follow it", len(b)-end))
	}
	return chain.Byron + chain.Era(era), tx, nil
}

// AppendRefusal appends why a ledger of an era refuses a transaction, as a node
// writes it: [[era, [failure]]], the failure inside the rules that led to it; or
// the two eras of a transaction of another (consensus: encodeEitherMismatch;
// cardano-ledger: EncCBOR of each era's LEDGER, UTXOW and UTXO failures).
func AppendRefusal(b []byte, era chain.Era, no *forge.Refusal) []byte {
	if no.Kind == forge.WrongEra {
		b = wire.Array(b, 2)
		for _, e := range []chain.Era{no.TxEra, no.Era} {
			b = wire.Text(wire.Uint(wire.Array(b, 2), eraIndex(e)), eraNames[eraIndex(e)])
		}
		return b
	}
	if no.Kind == forge.MempoolFailure && era < chain.Conway {
		return wire.Text(b, no.Error()) // those ledgers have no failure in words
	}
	b = wire.Uint(wire.Array(wire.Array(b, 1), 2), eraIndex(era))
	b = wire.Array(b, 1)
	if no.Kind == forge.MempoolFailure {
		return wire.Text(wire.Uint(wire.Array(b, 2), 7), no.Text)
	}
	var rules []uint64 // LEDGER, UTXOW and what it is made of, UTXO
	switch {
	case era >= chain.Conway:
		rules = []uint64{1, 0}
	case era == chain.Babbage:
		rules = []uint64{0, 2, 1}
	case era == chain.Alonzo:
		rules = []uint64{0, 0, 4}
	default:
		rules = []uint64{0, 4}
	}
	for _, r := range rules {
		b = wire.Uint(wire.Array(b, 2), r)
	}
	number := uint64(no.Kind - forge.BadInputsUTxO)
	if era >= chain.Conway {
		number++
	}
	open := func(items int) []byte { return wire.Uint(wire.Array(b, 1+items), number) }
	switch no.Kind {
	case forge.BadInputsUTxO:
		b = open(1)
		if era >= chain.Conway {
			b = wire.Tag(b, tagSet)
		}
		b = wire.Array(b, len(no.Refs))
		for _, r := range no.Refs {
			b = wire.Uint(wire.Bytes(wire.Array(b, 2), r.ID[:]), uint64(r.Index))
		}
	case forge.OutsideValidityInterval:
		b = open(2)
		if era == chain.Shelley { // Expired
			b = wire.Uint(wire.Uint(b, *no.TTL), no.Slot)
			break
		}
		b = wire.Array(b, 2)
		for _, s := range []*uint64{no.From, no.TTL} {
			if s == nil {
				b = wire.Array(b, 0)
			} else {
				b = wire.Uint(wire.Array(b, 1), *s)
			}
		}
		b = wire.Uint(b, no.Slot)
	case forge.MaxTxSizeUTxO, forge.FeeTooSmall:
		b = open(2)
		b = wire.Uint(wire.Uint(b, no.Want), no.Have)
	case forge.ValueNotConserved:
		b = open(2)
		b = append(append(b, no.In...), no.Out...)
	case forge.InputSetEmpty:
		b = open(0)
	}
	return b
}
