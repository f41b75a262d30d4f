package devnode_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

func TestHandshake(t *testing.T) {
	srv := devtest.Start(t, devnode.Config{Chain: devnode.NewChain(), Magic: 2})
	refused := func(version uint64, text string) []byte {
		b := wire.Uint(wire.Array(nil, 2), 2)
		b = wire.Uint(wire.Array(b, 3), 2)
		return wire.Text(wire.Uint(b, version), text)
	}
	var all []byte
	all = wire.Map(append(wire.Array(all, 2), 3), 8)
	for v := range uint64(8) {
		all = append(wire.Uint(wire.Array(wire.Uint(all, 0x8010+v), 2), 2), wire.False)
	}
	for name, c := range map[string]struct {
		propose []byte
		want    string // hex; empty: the connection is closed without an answer
		closed  bool   // after the answer
	}{
		"highest common version":  {propose(2, false, 9, 16, 19), "8301198013" + "8202f4", false},
		"the newest":              {propose(2, false, 16, 23, 24, 99), "8301198017" + "8202f4", false},
		"none in common":          {propose(2, false, 9, 15, 24), "820282008819801019801119801219801319801419801519801619" + "8017", true},
		"wrong magic":             {propose(1, false, 16, 23), hex.EncodeToString(refused(0x8017, "version data mismatch: NodeToClientVersionData {networkMagic = NetworkMagic {unNetworkMagic = 2}, query = False} /= NodeToClientVersionData {networkMagic = NetworkMagic {unNetworkMagic = 1}, query = False}")), true},
		"query":                   {propose(2, true, 16, 23), hex.EncodeToString(all), true},
		"data of another shape":   {[]byte{0x82, 0, 0xa1, 0x19, 0x80, 0x10, 0x02}, "8202830119801078", true},
		"descending versions":     {propose(2, false, 17, 16), "", true},
		"a repeated version":      {propose(2, false, 16, 16), "", true},
		"an indefinite map":       {append(append([]byte{0x82, 0, 0xbf}, propose(2, false, 16)[3:]...), 0xff), "", true},
		"not a proposal":          {[]byte{0x83, 1, 0x19, 0x80, 0x10, 0x80}, "", true},
		"rubbish":                 {[]byte{0xff, 0xff, 0xff}, "", true},
		"a magic beyond 32 bits":  {[]byte{0x82, 0, 0xa1, 0x19, 0x80, 0x10, 0x82, 0x1b, 0, 0, 0, 1, 0, 0, 0, 2, 0xf4}, "8202830119801078", true},
		"longer than 5,760 bytes": {append([]byte{0x82, 0, 0xa1, 0x19, 0x80, 0x10, 0x59, 0x17, 0x70}, make([]byte, 6000)...), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			cl := dial(t, srv.Socket())
			cl.send(devnode.ProtocolHandshake, c.propose)
			got, err := cl.read(devnode.ProtocolHandshake)
			if c.want == "" {
				if err == nil {
					t.Fatalf("answered %x", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(hex.EncodeToString(got), c.want) {
				t.Errorf("answer\n got %x\nwant %s", got, c.want)
			}
			if c.closed {
				if _, _, err := cl.segment(); !gone(err) {
					t.Errorf("still open: %v", err)
				}
			} else if r := cl.find(); r.kind != notFound {
				t.Errorf("chain-sync answers %+v", r)
			}
		})
	}
}

func TestHandshakeBehaviour(t *testing.T) {
	srv := devtest.Start(t, devnode.Config{Chain: devnode.NewChain(), Magic: 2})

	srv.Behave(devnode.Behaviour{Versions: []uint16{22, 23}})
	c := dial(t, srv.Socket())
	c.send(devnode.ProtocolHandshake, propose(2, false, 16, 21))
	if got := c.message(devnode.ProtocolHandshake); hex.EncodeToString(got) != "8202820082198016198017" {
		t.Errorf("only newer versions: %x", got)
	}

	magic := uint32(7)
	srv.Behave(devnode.Behaviour{Magic: &magic})
	c = dial(t, srv.Socket())
	c.send(devnode.ProtocolHandshake, propose(2, false, 16, 21))
	if got := c.message(devnode.ProtocolHandshake); !bytes.Contains(got, []byte("unNetworkMagic = 7}")) {
		t.Errorf("another network: %q", got)
	}

	srv.Behave(devnode.Behaviour{HandshakeSegments: []int{1, 2, 100}})
	c = dial(t, srv.Socket())
	c.send(devnode.ProtocolHandshake, propose(2, false, 16))
	c.message(devnode.ProtocolHandshake)
	if len(c.segments) != 3 || c.segments[0] != 1 || c.segments[1] != 2 {
		t.Errorf("segments %v", c.segments)
	}

	srv.Behave(devnode.Behaviour{Handshake: func([]byte) []byte { return []byte{0x1c} }})
	c = dial(t, srv.Socket())
	c.send(devnode.ProtocolHandshake, propose(2, false, 16))
	if _, err := c.read(devnode.ProtocolHandshake); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a spoilt answer: %v", err)
	}

	srv.Behave(devnode.Behaviour{MuteHandshake: true})
	srv.Disconnect()
	c = dial(t, srv.Socket())
	c.send(devnode.ProtocolHandshake, propose(2, false, 16))
	devtest.Eventually(t, "the client is there", func() bool { return srv.Clients() == 1 })
	srv.Disconnect()
	if b, err := c.read(devnode.ProtocolHandshake); !gone(err) {
		t.Errorf("a mute server said %x, %v", b, err)
	}
}
