package devnode

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// Versions of the node-to-client protocol that current nodes speak
// (cardano-diffusion, NodeToClientVersion): 16 came with Conway, 23 is the
// newest. On the wire bit 15 is set.
const (
	FirstVersion = 16
	LastVersion  = 23
	versionBit   = 1 << 15
)

// maxHandshake is the largest handshake message (network-spec, handshake).
const maxHandshake = 5760

// Message tags of the handshake and reasons of a refusal (handshake CDDL).
const (
	handshakePropose = 0
	handshakeAccept  = 1
	handshakeRefuse  = 2
	handshakeQuery   = 3

	refuseMismatch = 0
	refuseDecode   = 1
	refuseRefused  = 2
)

// ErrProtocol is wrapped when a client breaks a protocol's rules.
var ErrProtocol = errors.New("client broke the protocol")

// proposal is one version that a client offers, its data undecoded.
type proposal struct {
	version uint64
	data    []byte
}

// parseProposals reads [0, {version => data}]. As the node's codec it wants a
// definite map with ascending keys.
func parseProposals(b []byte) ([]proposal, error) {
	n, off, err := wire.ReadArray(b, 0)
	if err != nil {
		return nil, err
	}
	tag, off, err := wire.ReadUint(b, off)
	if err != nil {
		return nil, err
	}
	if n != 2 || tag != handshakePropose {
		return nil, fmt.Errorf("%w: handshake message %d of %d items is no proposal", ErrProtocol, tag, n)
	}
	m, err := wire.Read(b, off)
	if err != nil {
		return nil, err
	}
	if m.Major != wire.MajorMap || m.Indef || m.Arg > uint64(len(b)) {
		return nil, fmt.Errorf("%w: proposed versions are not a definite map", ErrProtocol)
	}
	off = m.Next
	var out []proposal
	for range m.Arg {
		v, next, err := wire.ReadUint(b, off)
		if err != nil {
			return nil, err
		}
		end, err := wire.Skip(b, next)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 && v <= out[len(out)-1].version {
			return nil, fmt.Errorf("%w: unordered version %d", ErrProtocol, v)
		}
		out = append(out, proposal{version: v, data: b[next:end]})
		off = end
	}
	return out, nil
}

// parseVersionData reads [network magic, query].
func parseVersionData(b []byte) (magic uint32, query bool, err error) {
	n, off, err := wire.ReadArray(b, 0)
	if err != nil {
		return 0, false, err
	}
	if n != 2 {
		return 0, false, fmt.Errorf("%w: version data of %d items", ErrProtocol, n)
	}
	m, off, err := wire.ReadUint(b, off)
	if err != nil {
		return 0, false, err
	}
	if m > 1<<32-1 || off >= len(b) || b[off] != wire.True && b[off] != wire.False {
		return 0, false, fmt.Errorf("%w: version data out of range", ErrProtocol)
	}
	return uint32(m), b[off] == wire.True, nil
}

// negotiate answers a proposal: the reply, and whether the connection goes on
// with the returned version.
func negotiate(proposals []proposal, versions []uint16, magic uint32) (reply []byte, version uint16, ok bool) {
	var best *proposal
	for i, p := range proposals {
		for _, v := range versions {
			if p.version == uint64(v)|versionBit {
				best = &proposals[i]
			}
		}
	}
	if best == nil {
		reply = wire.Array(nil, 2)
		reply = wire.Uint(reply, handshakeRefuse)
		reply = wire.Array(reply, 2)
		reply = wire.Uint(reply, refuseMismatch)
		reply = wire.Array(reply, len(versions))
		for _, v := range versions {
			reply = wire.Uint(reply, uint64(v)|versionBit)
		}
		return reply, 0, false
	}
	theirs, query, err := parseVersionData(best.data)
	switch {
	case err != nil:
		return refusal(refuseDecode, best.version, "unknown encoding: "+err.Error()), 0, false
	case theirs != magic:
		return refusal(refuseRefused, best.version,
			"version data mismatch: "+showVersionData(magic, false)+" /= "+showVersionData(theirs, query)), 0, false
	case query:
		reply = wire.Array(nil, 2)
		reply = wire.Uint(reply, handshakeQuery)
		reply = wire.Map(reply, len(versions))
		for _, v := range versions {
			reply = wire.Uint(reply, uint64(v)|versionBit)
			reply = appendVersionData(reply, magic)
		}
		return reply, 0, false
	}
	reply = wire.Array(nil, 3)
	reply = wire.Uint(reply, handshakeAccept)
	reply = wire.Uint(reply, best.version)
	return appendVersionData(reply, magic), uint16(best.version &^ versionBit), true
}

func appendVersionData(b []byte, magic uint32) []byte {
	b = wire.Array(b, 2)
	b = wire.Uint(b, uint64(magic))
	return append(b, wire.False)
}

func refusal(reason, version uint64, text string) []byte {
	b := wire.Array(nil, 2)
	b = wire.Uint(b, handshakeRefuse)
	b = wire.Array(b, 3)
	b = wire.Uint(b, reason)
	b = wire.Uint(b, version)
	return wire.Text(b, text)
}

// showVersionData is how the node's refusal prints what it compared.
func showVersionData(magic uint32, query bool) string {
	q := "False"
	if query {
		q = "True"
	}
	return fmt.Sprintf("NodeToClientVersionData {networkMagic = NetworkMagic {unNetworkMagic = %d}, query = %s}", magic, q)
}
