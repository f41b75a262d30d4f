package devnode

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Whatever a client proposes, there is an answer or an error.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte{0x82, 0, 0xa1, 0x19, 0x80, 0x10, 0x82, 2, 0xf4})
	f.Add([]byte{0x82, 0, 0xa2, 0x19, 0x80, 0x10, 2, 0x19, 0x80, 0x17, 0x82, 2, 0xf5})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseProposals(b)
		if err != nil {
			return
		}
		reply, version, ok := negotiate(p, []uint16{16, 20, 23}, 2)
		if end, err := wire.Skip(reply, 0); err != nil || end != len(reply) {
			t.Errorf("answer %x", reply)
		}
		if ok != (version != 0) || ok && reply[1] != handshakeAccept {
			t.Errorf("version %d, %v, answer %x", version, ok, reply)
		}
	})
}

// A stream gives the messages of its bytes however they are cut, and its
// points are parsed or refused.
func FuzzChainSyncMessages(f *testing.F) {
	point := chain.Point{Slot: 7, Hash: chain.Hash{1}}
	find := AppendPoint(wire.Array(wire.Uint(wire.Array(nil, 2), tagFindIntersect), 1), point)
	f.Add(append(append([]byte{0x81, 0}, find...), 0x81, 0), byte(3))
	f.Add([]byte{0x82, 4, 0x9f, 0x80, 0xff}, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, cut byte) {
		s := newStream(nil)
		var got []byte
		failed := false
		take := func() {
			for {
				msg, ok, err := s.try()
				if err != nil {
					if !errors.Is(err, ErrProtocol) {
						t.Fatal(err)
					}
					failed = true
					return
				}
				if !ok {
					return
				}
				got = append(got, msg...)
				if len(msg) > 2 && msg[0] == 0x82 && msg[1] == tagFindIntersect {
					if points, err := parsePoints(msg, 2); err == nil {
						again := wire.Array(nil, len(points))
						for _, p := range points {
							again = AppendPoint(again, p)
						}
						if back, err := parsePoints(again, 0); err != nil || len(back) != len(points) {
							t.Fatalf("%v: %v, %v", points, back, err)
						}
					}
				}
			}
		}
		for rest := b; len(rest) > 0 && !failed; {
			n := min(int(cut)+1, len(rest))
			if err := s.fill(bytes.NewReader(rest[:n]), n); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			take()
		}
		if !bytes.HasPrefix(b, got) {
			t.Errorf("messages %x out of %x", got, b)
		}
	})
}

// A parent is exchanged in any block, and rubbish is an error.
func FuzzWithParent(f *testing.F) {
	f.Add([]byte{0x82, 1, 0x83, 0x85, 1, 0x41, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if out, err := withParent(b, chain.Hash{1}); err == nil && len(out) != len(b) {
			t.Errorf("%x became %x", b, out)
		}
	})
}

// Whatever is asked, the query is read or refused, and so are its references.
func FuzzStateQuery(f *testing.F) {
	f.Add([]byte{0x81, 3})
	f.Add([]byte{0x82, 0, 0x82, 2, 0x81, 1})
	f.Add(append(append([]byte{0x82, 0, 0x82, 0, 0x82, 6, 0x82, 15, 0xd9, 1, 2, 0x9f, 0x82, 0x58, 32}, make([]byte, 32)...), 0, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		path, rest, err := queryPath(b)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Fatal(err)
			}
			return
		}
		if len(path) == 0 || len(path) > 4 {
			t.Fatalf("path %v", path)
		}
		for _, era := range []chain.Era{chain.Babbage, chain.Conway} {
			refs, err := parseTxIns(rest, era)
			if err != nil && !errors.Is(err, ErrProtocol) {
				t.Fatal(err)
			}
			if len(refs)*34 > len(rest) {
				t.Errorf("%d references out of %d bytes", len(refs), len(rest))
			}
		}
	})
}

// Whatever is submitted, or asked about the mempool, is read or refused.
func FuzzTxMessages(f *testing.F) {
	f.Add([]byte{0x82, 6, 0xd8, 24, 0x47, 0x84, 0xa1, 0, 0x80, 0xa0, 0xf5, 0xf6})
	f.Add(append([]byte{0x82, 6, 0x58, 32}, make([]byte, 32)...))
	f.Add(append([]byte{0x58, 32}, make([]byte, 32)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		era, tx, err := parseTx(b, 0)
		switch {
		case err != nil && !errors.Is(err, ErrProtocol):
			t.Fatal(err)
		case err == nil && (era <= chain.Byron || era > chain.Dijkstra || len(tx) > len(b)):
			t.Errorf("%v %x", era, tx)
		}
		if _, err := parseTxID(b, 0); err != nil && !errors.Is(err, ErrProtocol) {
			t.Fatal(err)
		}
	})
}
