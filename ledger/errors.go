package ledger

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/chain"
)

// Causes of an Error.
var (
	ErrNotABlock    = errors.New("not a block (want [era tag, block])")
	ErrEra          = errors.New("no era has this tag")
	ErrTruncated    = errors.New("the bytes end inside an item")
	ErrTrailing     = errors.New("bytes follow the end of the block")
	ErrMalformed    = errors.New("not well-formed CBOR")
	ErrUnexpected   = errors.New("an item of another type or length is expected here")
	ErrBodyHash     = errors.New("the body is not the one that the header names")
	ErrBodySize     = errors.New("the body is not of the size that the header names")
	ErrCount        = errors.New("two parts of the block differ in the number of transactions")
	ErrIndex        = errors.New("a transaction index is not below the number of transactions")
	ErrMissing      = errors.New("a required field is missing")
	ErrDuplicate    = errors.New("a map key or set member is repeated")
	ErrZeroQuantity = errors.New("an asset quantity is zero, or a policy has no assets")
	ErrAmount       = errors.New("a number is out of range")
)

// Error tells what is wrong with a block, and as much about where as was known
// when it was found. Cause is one of the package's sentinels.
type Error struct {
	Link   chain.Link // zero values where the block was not read that far; Point.Hash is set once the header was
	Tx     int        // the transaction's index in the block, or -1
	TxID   chain.TxID // zero if it was not known yet
	Offset int        // in the raw bytes that were given
	Cause  error
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if !e.Link.Point.IsOrigin() {
		b.WriteString(e.Link.Era.String())
		b.WriteString(" block ")
		b.WriteString(e.Link.Point.String())
		b.WriteString(" (height ")
		b.WriteString(strconv.FormatInt(int64(e.Link.Height), 10))
		b.WriteString("): ")
	}
	if e.Tx >= 0 {
		b.WriteString("transaction ")
		b.WriteString(strconv.Itoa(e.Tx))
		if !e.TxID.IsZero() {
			b.WriteString(" (")
			b.WriteString(e.TxID.String())
			b.WriteString(")")
		}
		b.WriteString(": ")
	}
	b.WriteString("at byte ")
	b.WriteString(strconv.Itoa(e.Offset))
	b.WriteString(": ")
	b.WriteString(e.Cause.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
