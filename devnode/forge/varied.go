package forge

import (
	"slices"

	"github.com/ourotail/ourotail/chain"
)

// assetKind is a policy with the names minted under it.
type assetKind struct {
	policy chain.Hash28
	names  [][]byte
}

// makeWallet decides the addresses and assets that come up again and again.
func (f *Forge) makeWallet(g *rnd) {
	magic := f.opts.Magic
	kinds := []byte{addrBaseKK, addrBaseKK, addrBaseKK, addrBaseSK, addrBaseKS, addrBaseSS,
		addrEnterprise, addrEnterprise, addrEntScript, addrPointerK, addrPointerS}
	for range 3 {
		for _, k := range kinds {
			f.wallet = append(f.wallet, g.address(k, 0))
		}
		f.wallet = append(f.wallet, byronAddress(g.hash28(), byronPubKey, &magic, nil))
	}
	for i := range 10 {
		k := assetKind{policy: g.hash28()}
		k.names = append(k.names, []byte("coin"), g.bytes(g.between(1, 32)))
		switch i % 5 {
		case 0:
			k.names = append(k.names, []byte{})
		case 1:
			k.names = append(k.names, g.bytes(32), []byte("a\x00b\xff\xfe"))
		case 2:
			for j := range 12 {
				k.names = append(k.names, []byte{'n', byte('a' + j)})
			}
		}
		f.assets = append(f.assets, k)
	}
}

// transactions fills the block.
func (m *maker) transactions() {
	if m.f.opts.Shape == MainnetLike {
		m.mainnetTransactions()
		return
	}
	g := m.g
	count := 0
	switch p := g.Float64(); {
	case p < 0.25: // empty
	case p < 0.97:
		count = g.between(1, 5)
	default: // a burst
		count = g.between(20, 45)
	}
	for range count {
		d := m.orphan()
		if d == nil {
			d = m.variedTx()
		}
		if d == nil {
			break
		}
		m.apply(d)
	}
}

// variedTx makes one transaction, or none if the live set is too poor.
func (m *maker) variedTx() *draft {
	g, era := m.g, m.n.Era
	d := &draft{style: m.style()}
	var p purse
	m.pickInputs(d, &p, g.between(1, 4))
	if p.coin < 3*ada {
		return nil
	}
	if era == chain.Byron {
		d.fee = uint64(g.between(160_000, 200_000))
		m.shareOut(d, p, m.outputCount())
		m.encodeByronTx(d)
		return d
	}
	d.fee = uint64(g.between(160_000, 400_000))
	if era == chain.Shelley || g.chance(0.5) {
		d.ttl = uint64(m.n.Point.Slot) + uint64(g.between(1, 7200)) // mandatory in Shelley
	}
	if era >= chain.Allegra && g.chance(0.3) {
		d.from = uint64(m.n.Point.Slot) / 2
	}
	m.certificates(d, &p)
	if era >= chain.Mary && g.chance(0.35) {
		m.mintAndBurn(d, &p)
	}
	if g.chance(0.3) {
		m.metadata(d)
	}
	scripts := era >= chain.Alonzo && g.chance(0.35)
	if scripts {
		m.runScripts(d)
	}
	if era >= chain.Babbage && g.chance(0.3) {
		m.referenceInputs(d)
	}
	m.shareOut(d, p, m.outputCount())
	m.encodeBody(d)
	m.encodeWitnesses(d, scripts)
	return d
}

func (m *maker) style() style {
	g, era := m.g, m.n.Era
	s := style{mapOutputs: g.chance(0.5)}
	s.tagSets = era >= chain.Conway && g.chance(0.5)
	if !m.f.opts.Plain {
		s.indefIns = g.chance(0.1)
		s.indefOuts = g.chance(0.1)
		s.indefBody = g.chance(0.05)
		s.wide = g.chance(0.1)
	}
	s.shuffle = g.chance(0.2)
	return s
}

func (m *maker) outputCount() int {
	if m.g.chance(0.02) {
		return m.g.between(30, 80)
	}
	return m.g.between(1, 4)
}

// usable tells whether an output may be spent in the block's era.
func (m *maker) usable(o *Output) bool {
	if o.ordered || o.Lovelace == 0 && o.Height == chain.OriginHeight {
		return false // empty genesis outputs stay for ever
	}
	if m.n.Era == chain.Byron {
		return true
	}
	return !o.avvm || m.n.Era == chain.Shelley
}

// pickInputs picks about n outputs to spend, more if they are poor, and adds
// them up.
func (m *maker) pickInputs(d *draft, p *purse, n int) {
	g := m.g
	for range 60 {
		if len(d.inputs) >= n && p.coin >= 6*ada {
			break
		}
		var o *Output
		switch {
		case len(m.made) > 0 && g.chance(0.3): // a chain of spends inside the block
			o = m.made[g.IntN(len(m.made))]
		case len(m.n.avvm) > 0 && m.n.Era <= chain.Shelley && g.chance(0.15):
			// A third of the vouchers is never redeemed.
			o = m.n.avvm[g.IntN(len(m.n.avvm))]
			if o.Address[len(o.Address)-1]%3 == 0 {
				continue
			}
		case len(m.f.live.all) > 0:
			o = m.f.live.all[g.IntN(len(m.f.live.all))]
			if o.avvm {
				continue
			}
		default:
			return
		}
		if !m.usable(o) || slices.Contains(d.inputs, o) || !p.take(o) {
			continue
		}
		d.inputs = append(d.inputs, o)
	}
	// A repeated input counts once. Byron's inputs are a list, where a repeat
	// is refused; since Shelley they are a set.
	if m.n.Era > chain.Byron && m.n.Era < chain.Conway && !m.f.opts.Plain && len(d.inputs) > 0 && g.chance(0.03) {
		d.inputs = append(d.inputs, d.inputs[0])
	}
}

// shareOut makes up to n outputs of what the purse holds, less the fee and
// deposits.
func (m *maker) shareOut(d *draft, p purse, n int) {
	g := m.g
	for _, w := range d.withdrawal {
		p.coin += w.amount
	}
	coin := p.coin - d.fee - d.deposits
	n = max(1, min(n, int(coin/(2*ada))))
	for i := range n {
		part := coin
		if left := uint64(n - i); left > 1 {
			// Random shares, of which each leaves enough for the rest.
			part = 1*ada + g.Uint64N(2*(coin/left)-2*ada+1)
			part = min(part, coin-(left-1)*ada)
		}
		coin -= part
		d.outs = append(d.outs, m.output(part))
	}
	if m.n.Era >= chain.Mary {
		for _, k := range p.order {
			q := p.assets[k]
			if q == 0 {
				continue
			}
			a := d.outs[g.IntN(len(d.outs))]
			if q > 1 && g.chance(0.4) {
				part := 1 + g.Uint64N(q-1)
				b := d.outs[g.IntN(len(d.outs))]
				if b != a {
					b.Assets = append(b.Assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: part})
					q -= part
				}
			}
			a.Assets = append(a.Assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: q})
		}
		for _, o := range d.outs {
			o.Assets = normalise(o.Assets)
			m.quirks(o, d.style)
		}
	}
}

// quirks decides how an output's value is written.
func (m *maker) quirks(o *Output, s style) {
	g := m.g
	o.quirk.wide = s.wide
	if m.f.opts.Plain {
		return
	}
	o.quirk.indef = g.chance(0.1)
	o.quirk.emptyOuter = g.chance(0.05)
	if m.n.Era >= chain.Conway {
		return
	}
	o.quirk.zero = g.chance(0.05)
	o.quirk.emptyInner = g.chance(0.05)
	if len(o.Assets) > 0 {
		o.quirk.repeat = g.chance(0.1)
		o.quirk.repeatAll = g.chance(0.1)
	}
}

// output makes an output of so much to some address.
func (m *maker) output(lovelace uint64) *Output {
	g, era := m.g, m.n.Era
	o := &Output{Lovelace: lovelace}
	magic := m.f.opts.Magic
	switch {
	case era == chain.Byron:
		var path []byte
		if g.chance(0.3) {
			path = g.bytes(g.between(20, 40))
		}
		o.Address = byronAddress(g.hash28(), byronPubKey, &magic, path)
		if g.chance(0.3) {
			o.Address = m.f.wallet[11+12*g.IntN(3)]
		}
		return o
	case g.chance(0.5):
		o.Address = m.f.wallet[g.IntN(len(m.f.wallet))]
	case g.chance(0.05):
		o.Address = byronAddress(g.hash28(), byronPubKey, &magic, nil)
	default:
		kinds := []byte{addrBaseKK, addrBaseKK, addrBaseKK, addrBaseSK, addrBaseKS, addrBaseSS,
			addrEnterprise, addrEntScript, addrPointerK, addrPointerS}
		o.Address = g.address(kinds[g.IntN(len(kinds))], 0)
	}
	kind := o.Address[0] >> 4
	pointer := kind == addrPointerK || kind == addrPointerS
	if pointer && era >= chain.Conway { // no longer made in Conway
		o.Address = g.address(addrEnterprise, 0)
	}
	if pointer && era < chain.Babbage && !m.f.opts.Plain && g.chance(0.2) {
		// A pointer with superfluous leading groups and trailing bytes, as the
		// ledger let pass before Babbage.
		o.Address = append(slices.Clone(o.Address[:29]), 0x80, 0x80, 5, 6, 7)
		o.Address = append(o.Address, g.bytes(g.between(0, 20))...)
	}
	o.script = scriptAddress(o.Address)
	m.datum(o)
	if era >= chain.Babbage && g.chance(0.08) {
		m.referenceScript(o)
	}
	return o
}
