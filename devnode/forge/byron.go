package forge

import (
	"math/bits"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

func blake(b []byte) chain.Hash { return blake2b.Sum256(b) }

// emptyByronList is an empty list as Byron's encoder writes it.
var emptyByronList = []byte{wire.IndefArray, wire.Break}

// encodeByronTx writes [inputs, outputs, attributes] and its witnesses.
func (m *maker) encodeByronTx(d *draft) {
	b := wire.Array(nil, 3)
	b = append(b, wire.IndefArray)
	for _, o := range d.inputs {
		b = wire.Uint(wire.Array(b, 2), 0)
		b = wire.Embedded(b, appendInput(nil, o.Ref, false))
	}
	b = append(b, wire.Break, wire.IndefArray)
	for _, o := range d.outs {
		b = appendOutput(b, o, chain.Byron, false, !m.f.opts.Lean)
	}
	b = append(b, wire.Break)
	d.body = wire.Map(b, 0)

	w := wire.Array(nil, len(d.inputs))
	for _, o := range d.inputs {
		kind, keySize := uint64(byronPubKey), 64
		if o.avvm {
			kind, keySize = byronRedeem, 32
		}
		w = wire.Uint(wire.Array(w, 2), kind)
		in := wire.Array(nil, 2)
		in = wire.Bytes(in, m.g.bytes(keySize))
		in = wire.Bytes(in, m.g.bytes(64))
		w = wire.Embedded(w, in)
	}
	d.wits = w
}

// merkleRoot is the root of Byron's tree over transactions: leaves are the
// hashes of 0 and the transaction, branches of 1 and both roots, split at the
// largest power of two below the number of leaves (cardano-ledger Byron:
// Merkle.hs).
func merkleRoot(txs [][]byte) chain.Hash {
	switch n := len(txs); n {
	case 0:
		return blake(nil)
	case 1:
		return blake(append([]byte{0}, txs[0]...))
	default:
		split := 1 << (bits.Len(uint(n-1)) - 1)
		l, r := merkleRoot(txs[:split]), merkleRoot(txs[split:])
		return blake(append(append([]byte{1}, l[:]...), r[:]...))
	}
}

// byronProof is [count, transaction root, hash of the witnesses].
func byronProof(txs, wits [][]byte) []byte {
	w := []byte{wire.IndefArray}
	for _, x := range wits {
		w = append(w, x...)
	}
	w = append(w, wire.Break)
	root, hash := merkleRoot(txs), blake(w)
	b := wire.Uint(wire.Array(nil, 3), uint64(len(txs)))
	b = wire.Bytes(b, root[:])
	return wire.Bytes(b, hash[:])
}

// ssc is the payload of the shared seed computation of an otherwise empty
// block: certificates, none.
var ssc = []byte{0x82, 3, 0xd9, 1, 2, 0x80}

// byronBlock writes a main block and fills in its hash.
func (m *maker) byronBlock() []byte {
	n, g := m.n, m.g
	body := wire.Array(nil, 4)
	body = append(body, wire.IndefArray)
	var txs, wits [][]byte
	for _, d := range m.txs {
		body = wire.Array(body, 2)
		body = append(append(body, d.body...), d.wits...)
		txs, wits = append(txs, d.body), append(wits, d.wits)
	}
	body = append(body, wire.Break)
	body = append(body, ssc...)
	body = append(body, emptyByronList...)
	update := append(wire.Array(wire.Array(nil, 2), 0), emptyByronList...)
	body = append(body, update...)
	extra := wire.Map(wire.Array(nil, 1), 0)

	h := wire.Array(nil, 5)
	h = wire.Uint(h, uint64(m.f.opts.Magic))
	h = wire.Bytes(h, n.Parent[:])
	h = wire.Array(h, 4)
	h = append(h, byronProof(txs, wits)...)
	h = wire.Uint(wire.Array(h, 2), 3) // proof of the payload: certificates
	h = appendHash(h, blake(wire.Array(nil, 0)))
	h = appendHash(h, blake(emptyByronList))
	h = appendHash(h, blake(update))
	h = wire.Array(h, 4)
	epochStart := m.f.cal.start(n.epoch)
	h = wire.Array(h, 2)
	h = wire.Uint(h, n.epoch)
	h = wire.Uint(h, uint64(n.Point.Slot-epochStart))
	h = wire.Bytes(h, g.bytes(64))
	h = wire.Uint(wire.Array(h, 1), uint64(n.Height))
	h = wire.Uint(wire.Array(h, 2), 2) // signed by a delegate
	h = wire.Array(h, 2)
	h = wire.Array(h, 4)
	h = wire.Uint(h, n.epoch)
	h = wire.Bytes(h, g.bytes(64))
	h = wire.Bytes(h, g.bytes(64))
	h = wire.Bytes(h, g.bytes(64))
	h = wire.Bytes(h, g.bytes(64))
	h = wire.Array(h, 4)
	h = wire.Array(h, 3)
	h = append(h, 0, 2, 0)
	h = wire.Text(wire.Array(h, 2), "ourotail")
	h = wire.Uint(h, 1)
	h = wire.Map(h, 0)
	h = appendHash(h, blake(extra))

	n.Point.Hash = blake(append([]byte{0x82, 1}, h...))
	raw := append([]byte{0x82, 1, 0x83}, h...)
	return append(append(raw, body...), extra...)
}

// boundaryBlock writes the block that begins a Byron epoch.
func (m *maker) boundaryBlock() []byte {
	n := m.n
	body := []byte{wire.IndefArray}
	for i := range byte(3) { // slot leaders by hash of their key
		leader := hash28([]byte{byte(n.epoch), i})
		body = wire.Bytes(body, leader[:])
	}
	body = append(body, wire.Break)
	h := wire.Array(nil, 5)
	h = wire.Uint(h, uint64(m.f.opts.Magic))
	h = wire.Bytes(h, n.Parent[:])
	h = appendHash(h, blake(body))
	h = wire.Array(h, 2)
	h = wire.Uint(h, n.epoch)
	h = wire.Uint(wire.Array(h, 1), uint64(n.Height))
	h = wire.Map(wire.Array(h, 1), 0)
	n.Point.Hash = blake(append([]byte{0x82, 0}, h...))
	raw := append([]byte{0x82, 0, 0x83}, h...)
	raw = append(raw, body...)
	return wire.Map(wire.Array(raw, 1), 0)
}

func appendHash(b []byte, h chain.Hash) []byte { return wire.Bytes(b, h[:]) }
