package ledger_test

import (
	"errors"
	"testing"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
)

// TestTxID: the id is the hash of the body's own bytes, however they are written.
func TestTxID(t *testing.T) {
	for _, body := range [][]byte{{0xa0}, {0xbf, 0, 1, 0xff}, {0x83, 0x80, 0x80, 0xa0}} {
		for _, tail := range [][]byte{{0xa0, 0xf5, 0xf6}, {0xa0, 0xf6}, {0x80}} {
			want := chain.TxID(blake2b.Sum256(body))
			for _, tx := range [][]byte{
				append(append([]byte{0x81 + byte(len(tail))}, body...), tail...),
				append(append(append([]byte{0x9f}, body...), tail...), 0xff),
			} {
				if got, err := ledger.TxID(tx); err != nil || got != want {
					t.Errorf("%x: %v, %v", tx, got, err)
				}
			}
		}
	}
	for name, tx := range map[string][]byte{"nothing": nil, "a map": {0xa0}, "empty": {0x80}, "open and empty": {0x9f, 0xff},
		"one item": {0x81, 0xa0}, "too many": {0x85, 0xa0, 0xa0, 0xf5, 0xf6, 0xf6}, "short": {0x84, 0xa0, 0xa0, 0xf5},
		"followed": {0x82, 0xa0, 0xa0, 0}, "no body": {0x82, 1, 2}, "cut": {0x84, 0xa1, 0}} {
		if id, err := ledger.TxID(tx); !errors.Is(err, ledger.ErrNotATx) {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}

func FuzzTxID(f *testing.F) {
	f.Add([]byte{0x84, 0xa0, 0xa0, 0xf5, 0xf6})
	f.Add([]byte{0x9f, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ledger.TxID(b); err != nil && !errors.Is(err, ledger.ErrNotATx) {
			t.Errorf("untyped: %v", err)
		}
	})
}
