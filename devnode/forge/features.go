package forge

import (
	"slices"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// deepDatum is how deep the one deeply nested datum of a chain goes.
const deepDatum = 5000

// datum gives an output a datum, by hash or inline, or none.
func (m *maker) datum(o *Output) {
	g := m.g
	p := g.Float64()
	if o.script {
		p /= 3
	}
	switch {
	case m.n.Era >= chain.Babbage && p < 0.12:
		o.DatumKind, o.inline = chain.InlineDatum, m.plutusData(3)
		if !m.f.opts.Plain && g.chance(0.003) {
			o.inline = slices.Repeat([]byte{0x81}, deepDatum)
			o.inline = wire.Uint(o.inline, uint64(g.IntN(1000)))
		}
		o.DatumHash = blake2b.Sum256(o.inline)
	case m.n.Era >= chain.Alonzo && p < 0.25:
		o.DatumKind, o.DatumHash = chain.HashedDatum, g.hash()
	}
}

// plutusData makes some data of at most the given depth.
func (m *maker) plutusData(depth int) []byte {
	g := m.g
	var b []byte
	switch kind := g.IntN(6); {
	case depth == 0 || kind < 2:
		return wire.Int(nil, g.Int64()>>g.IntN(64))
	case kind == 2:
		s := g.bytes(g.between(0, 100))
		if len(s) > 64 { // strings of more than 64 bytes come in pieces
			return wire.ChunkedBytes(nil, s, 64)
		}
		return wire.Bytes(nil, s)
	case kind == 3:
		b = append(b, wire.IndefArray)
		for range g.IntN(3) {
			b = append(b, m.plutusData(depth-1)...)
		}
		return append(b, wire.Break)
	case kind == 4:
		n := g.IntN(3)
		b = wire.Map(b, n)
		for range n {
			b = append(b, m.plutusData(0)...)
			b = append(b, m.plutusData(depth-1)...)
		}
		return b
	}
	b = wire.Tag(b, 121+uint64(g.IntN(7))) // a constructor
	b = append(b, wire.IndefArray)
	for range g.IntN(4) {
		b = append(b, m.plutusData(depth-1)...)
	}
	return append(b, wire.Break)
}

// nativeScript makes a script of keys and times.
func (m *maker) nativeScript() []byte {
	g := m.g
	key := g.hash28()
	b := wire.Uint(wire.Array(nil, 2), 1) // all of
	b = wire.Array(b, 2)
	b = wire.Bytes(wire.Uint(wire.Array(b, 2), 0), key[:])
	b = wire.Uint(wire.Array(b, 2), 4)
	return wire.Uint(b, uint64(g.IntN(1000)))
}

// scriptHash is the blake2b-224 of the language and the script.
func scriptHash(language byte, script []byte) chain.Hash28 {
	return hash28(append([]byte{language}, script...))
}

// referenceScript puts a script into an output.
func (m *maker) referenceScript(o *Output) {
	g := m.g
	language := byte(g.IntN(3))
	if m.n.Era >= chain.Conway {
		language = byte(g.IntN(4))
	}
	o.HasScript = true
	o.ref = wire.Uint(wire.Array(nil, 2), uint64(language))
	if language == 0 {
		s := m.nativeScript()
		o.ref = append(o.ref, s...)
		o.Script = scriptHash(0, s)
		return
	}
	s := m.plutusScript()
	o.ref = wire.Bytes(o.ref, s)
	o.Script = scriptHash(language, s)
}

// plutusScript is the always true script, flat in a byte string, with filler.
func (m *maker) plutusScript() []byte {
	return wire.Bytes(nil, append([]byte{0x46, 0x01, 0x00, 0x00, 0x22, 0x20, 0x01}, m.g.bytes(m.g.IntN(200))...))
}

// Numbers of certificates (shelley.cddl, conway.cddl).
const (
	certRegister   = 0
	certDelegate   = 2
	certPool       = 3
	certRegDeposit = 7
	certVote       = 9
	certRegDRep    = 16
)

// certificates adds certificates, withdrawals and, in Conway, a proposal.
func (m *maker) certificates(d *draft, p *purse) {
	g, era := m.g, m.n.Era
	credential := func(b []byte) []byte {
		h := g.hash28()
		return wire.Bytes(wire.Uint(wire.Array(b, 2), uint64(g.IntN(2))), h[:])
	}
	if g.chance(0.2) && d.afford(p, 2*ada) {
		c := wire.Uint(wire.Array(nil, 2), certRegister)
		if era >= chain.Dijkstra { // the form without a deposit is gone
			d.certs = append(d.certs, wire.Uint(credential(wire.Uint(wire.Array(nil, 3), certRegDeposit)), 2*ada))
		} else {
			d.certs = append(d.certs, credential(c))
		}
		d.deposits += 2 * ada
		pool := g.hash28()
		c = wire.Uint(wire.Array(nil, 3), certDelegate)
		d.certs = append(d.certs, wire.Bytes(credential(c), pool[:]))
	}
	if g.chance(0.02) && d.afford(p, 500*ada) {
		d.certs = append(d.certs, m.poolCertificate())
		d.deposits += 500 * ada
	}
	if era >= chain.Conway && g.chance(0.1) && d.afford(p, 502*ada) {
		c := wire.Uint(wire.Array(nil, 3), certRegDeposit)
		d.certs = append(d.certs, wire.Uint(credential(c), 2*ada))
		c = wire.Uint(wire.Array(nil, 3), certVote)
		d.certs = append(d.certs, wire.Uint(wire.Array(credential(c), 1), 2)) // abstain always
		c = wire.Uint(wire.Array(nil, 4), certRegDRep)
		d.certs = append(d.certs, append(wire.Uint(credential(c), 500*ada), wire.Null))
		d.deposits += 502 * ada
	}
	if g.chance(0.08) {
		// Stake-only addresses stand here; no output can have one.
		kind := []byte{addrRewardK, addrRewardS}[g.IntN(2)]
		account := append([]byte{kind << 4}, g.bytes(28)...)
		d.withdrawal = append(d.withdrawal, withdrawal{account, uint64(g.between(0, 50*ada))})
	}
	if era >= chain.Conway && g.chance(0.05) && d.afford(p, 1*ada) {
		d.extra = append(d.extra, field{keyDonation, wire.Uint(nil, 1*ada)})
		d.deposits += 1 * ada
	}
	if era >= chain.Conway {
		m.governance(d, p)
	}
}

// governance adds a proposal, and a vote on an earlier one (conway.cddl).
func (m *maker) governance(d *draft, p *purse) {
	g := m.g
	hash := g.hash()
	anchor := wire.Bytes(wire.Text(wire.Array(nil, 2), "https://proposal.example"), hash[:])
	if g.chance(0.05) && d.afford(p, 100_000*ada) {
		b := wire.Array(nil, 1)
		b = wire.Uint(wire.Array(b, 4), 100_000*ada)
		b = wire.Bytes(b, append([]byte{addrRewardK << 4}, g.bytes(28)...))
		b = wire.Uint(wire.Array(b, 1), 6) // for information
		d.extra = append(d.extra, field{keyProposals, append(b, anchor...)})
		d.deposits += 100_000 * ada
	}
	if g.chance(0.05) {
		voter, id := g.hash28(), g.hash()
		b := wire.Map(nil, 1)
		b = wire.Bytes(wire.Uint(wire.Array(b, 2), 2), voter[:]) // a DRep by key
		b = wire.Map(b, 1)
		b = wire.Uint(wire.Bytes(wire.Array(b, 2), id[:]), 0)
		b = wire.Uint(wire.Array(b, 2), uint64(g.IntN(3)))
		d.extra = append(d.extra, field{keyVotes, append(b, anchor...)})
	}
}

// afford tells whether the inputs leave a few ada for outputs after another
// deposit.
func (d *draft) afford(p *purse, deposit uint64) bool {
	return p.coin > d.fee+d.deposits+deposit+2*ada
}

// poolCertificate registers a pool with a relay and metadata.
func (m *maker) poolCertificate() []byte {
	g := m.g
	operator, owner := g.hash28(), g.hash28()
	vrf := g.hash()
	c := wire.Uint(wire.Array(nil, 10), certPool)
	c = wire.Bytes(c, operator[:])
	c = wire.Bytes(c, vrf[:])
	c = wire.Uint(c, 1000*ada)
	c = wire.Uint(c, 340*ada)
	c = wire.Uint(wire.Uint(wire.Array(wire.Tag(c, 30), 2), 1), 20)
	c = wire.Bytes(c, append([]byte{addrRewardK << 4}, owner[:]...))
	c = wire.Bytes(wire.Array(c, 1), owner[:])
	c = wire.Array(c, 1)
	c = wire.Uint(wire.Array(c, 3), 1) // a relay with one name
	c = wire.Uint(c, 3001)
	c = wire.Text(c, "relay.example")
	c = wire.Text(wire.Array(c, 2), "https://pool.example")
	hash := g.hash()
	return wire.Bytes(c, hash[:])
}

// mintAndBurn mints new assets, and burns some of what the inputs hold.
func (m *maker) mintAndBurn(d *draft, p *purse) {
	g := m.g
	changes := map[assetKey]int64{}
	for range g.between(1, 3) {
		k := m.f.assets[g.IntN(len(m.f.assets))]
		key := assetKey{k.policy, string(k.names[g.IntN(len(k.names))])}
		n := int64(1 + g.Uint64N(1<<(1+g.IntN(62))))
		if p.assets[key]+uint64(n) < p.assets[key] || changes[key] != 0 {
			continue
		}
		p.put(key, uint64(n))
		changes[key] = n
	}
	if len(p.order) > 0 && g.chance(0.5) {
		key := p.order[g.IntN(len(p.order))]
		if held := min(p.assets[key], 1<<62); held > 0 && changes[key] == 0 {
			n := held
			if g.chance(0.5) {
				n = 1 + g.Uint64N(held)
			}
			p.assets[key] -= n
			changes[key] = -int64(n)
		}
	}
	for k, n := range changes {
		d.mint = append(d.mint, chain.Minted{Policy: k.policy, Name: []byte(k.name), Quantity: n})
	}
	slices.SortFunc(d.mint, func(a, b chain.Minted) int {
		return compareAssets(chain.Asset{Policy: a.Policy, Name: a.Name}, chain.Asset{Policy: b.Policy, Name: b.Name})
	})
}

// runScripts gives the transaction collateral and, now and then, a failed
// script: then it spends that and makes only the return.
func (m *maker) runScripts(d *draft) {
	g, era := m.g, m.n.Era
	var sum purse
	n := g.between(1, 3)
	for range 40 {
		if len(d.collateral) >= n {
			break
		}
		o := m.f.live.all[g.IntN(len(m.f.live.all))]
		if len(m.made) > 0 && g.chance(0.2) {
			o = m.made[g.IntN(len(m.made))]
		}
		if o.script || o.avvm || o.ordered || o.Lovelace < 2*ada || slices.Contains(d.collateral, o) {
			continue
		}
		if era < chain.Babbage && len(o.Assets) > 0 {
			continue // before there was a return only ada could be collateral
		}
		if !sum.take(o) {
			continue
		}
		d.collateral = append(d.collateral, o)
	}
	if len(d.collateral) == 0 {
		return
	}
	d.extra = append(d.extra, field{keyScriptData, wire.Bytes(nil, g.bytes(32))})
	if era >= chain.Babbage && (len(sum.order) > 0 || g.chance(0.6)) {
		forfeit := 1 + g.Uint64N(sum.coin-1*ada)
		o := m.output(sum.coin - forfeit)
		for _, k := range sum.order {
			o.Assets = append(o.Assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: sum.assets[k]})
		}
		o.Assets = normalise(o.Assets)
		m.quirks(o, d.style)
		d.ret = o
		if g.chance(0.7) {
			d.totalColl = forfeit
		}
	}
	d.invalid = g.chance(0.4)
	if g.chance(0.3) {
		h := g.hash28()
		d.extra = append(d.extra, field{keySigners, wire.Bytes(wire.Array(nil, 1), h[:])})
	}
	if g.chance(0.3) {
		d.extra = append(d.extra, field{keyNetwork, wire.Uint(nil, 0)})
	}
}

// referenceInputs looks at outputs without spending them.
func (m *maker) referenceInputs(d *draft) {
	g := m.g
	for range g.between(1, 3) {
		o := m.f.live.all[g.IntN(len(m.f.live.all))]
		if !slices.Contains(d.inputs, o) && !slices.Contains(d.refs, o) && !slices.Contains(d.collateral, o) {
			d.refs = append(d.refs, o)
		}
	}
}
