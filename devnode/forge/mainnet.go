package forge

import (
	"slices"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// The size of a mainnet-like block, on average.
const (
	mainnetTxs     = 19
	mainnetInputs  = 45
	mainnetOutputs = 52
)

// ages are how old, in blocks, spent outputs are: the share of all spends
// below each age. The rest falls anywhere in the live set.
var ages = []struct {
	below chain.Height
	share float64
}{{10, 0.49}, {100, 0.76}, {1000, 0.87}, {10000, 0.97}}

// mainnetTransactions fills a block like those of mainnet.
func (m *maker) mainnetTransactions() {
	g := m.g
	count := g.between(mainnetTxs-11, mainnetTxs+11)
	for range count {
		d := m.orphan()
		if d == nil {
			d = m.mainnetTx()
		}
		if d == nil {
			return
		}
		m.apply(d)
	}
}

// byAge picks a live output so that ages come out as in the table; nil if
// there is none.
func (m *maker) byAge() *Output {
	g, l := m.g, &m.f.live
	p := g.Float64()
	from := chain.Height(0)
	for _, a := range ages {
		if p < a.share {
			for range 12 {
				age := from + chain.Height(g.Int64N(int64(a.below-from)))
				if list := l.at(m.n.Height - age); len(list) > 0 && age <= m.n.Height {
					return list[g.IntN(len(list))]
				}
			}
			break
		}
		from = a.below
	}
	if len(l.all) == 0 {
		return nil
	}
	return l.all[g.IntN(len(l.all))]
}

// spread returns a count with the given mean: mostly 1 or 2, seldom many.
func (g *rnd) spread(mean float64) int {
	n := 1
	for n < 60 && g.chance(1-1/mean) {
		n++
	}
	return n
}

// mainnetTx makes one transaction, or none if nothing is left to spend.
func (m *maker) mainnetTx() *draft {
	g := m.g
	d := &draft{style: style{tagSets: g.chance(0.5), mapOutputs: g.chance(0.5)}}
	var p purse
	want := g.spread(float64(mainnetInputs) / mainnetTxs)
	for range 200 {
		if len(d.inputs) >= want && p.coin >= 8*ada {
			break
		}
		o := m.byAge()
		if o == nil {
			return nil
		}
		if o.Lovelace == 0 || o.ordered || slices.Contains(d.inputs, o) || !p.take(o) {
			continue
		}
		d.inputs = append(d.inputs, o)
	}
	if p.coin < 3*ada {
		return nil
	}
	d.fee = uint64(g.between(165_000, 900_000))
	d.ttl = uint64(m.n.Point.Slot) + uint64(g.between(100, 7200))
	if g.chance(0.12) {
		m.mintSome(d, &p)
	}
	if len(p.order) > 14 {
		m.burnMost(d, &p)
	}
	if g.chance(0.25) {
		d.labels = []uint64{[]uint64{674, 721, 1 << 33}[g.IntN(3)]}
		d.aux = wire.Uint(wire.Map(nil, 1), d.labels[0])
		d.aux = wire.Bytes(wire.Array(d.aux, 1), g.bytes(64))
	}
	scripts := g.chance(0.4)
	if scripts {
		m.mainnetScripts(d)
	}
	m.mainnetOutputs(d, p, g.spread(float64(mainnetOutputs)/mainnetTxs))
	m.encodeBody(d)
	m.mainnetWitnesses(d, scripts)
	return d
}

// mintSome mints one to three kinds of asset.
func (m *maker) mintSome(d *draft, p *purse) {
	g := m.g
	policy := m.f.assets[g.IntN(len(m.f.assets))].policy
	policy[27] ^= byte(g.IntN(64)) // many policies
	for i := range g.between(1, 3) {
		k := assetKey{policy, string([]byte{'t', 'o', 'k', 'e', 'n', byte('0' + i), byte(g.IntN(8))})}
		n := 1 + g.Uint64N(1<<(1+g.IntN(40)))
		if p.assets[k]+n < n || slices.ContainsFunc(d.mint, func(x chain.Minted) bool { return string(x.Name) == k.name }) {
			continue
		}
		p.put(k, n)
		d.mint = append(d.mint, chain.Minted{Policy: policy, Name: []byte(k.name), Quantity: int64(n)})
	}
	sortMint(d.mint)
}

// burnMost burns all but a few kinds of asset, so that outputs do not gather
// ever more of them.
func (m *maker) burnMost(d *draft, p *purse) {
	minted := map[assetKey]bool{}
	for _, x := range d.mint {
		minted[assetKey{x.Policy, string(x.Name)}] = true
	}
	for _, k := range p.order[6:] {
		n := min(p.assets[k], 1<<62)
		if n == 0 || minted[k] {
			continue
		}
		p.assets[k] -= n
		d.mint = append(d.mint, chain.Minted{Policy: k.policy, Name: []byte(k.name), Quantity: -int64(n)})
	}
	sortMint(d.mint)
}

func sortMint(mint []chain.Minted) {
	slices.SortFunc(mint, func(a, b chain.Minted) int {
		return compareAssets(chain.Asset{Policy: a.Policy, Name: a.Name}, chain.Asset{Policy: b.Policy, Name: b.Name})
	})
}

// mainnetScripts adds collateral, reference inputs and what else a script
// transaction has; about one in a hundred fails.
func (m *maker) mainnetScripts(d *draft) {
	g := m.g
	for range 30 {
		o := m.byAge()
		if o == nil || o.script || o.avvm || o.ordered || o.Lovelace < 5*ada || len(o.Assets) > 0 || o.Address[0] == byronAddressByte {
			continue
		}
		d.collateral = []*Output{o}
		break
	}
	if d.collateral == nil {
		return
	}
	forfeit := uint64(g.between(1, 4) * ada)
	d.ret = m.mainnetOutput(d.collateral[0].Lovelace - forfeit)
	d.ret.DatumKind = chain.NoDatum
	d.totalColl = forfeit
	d.invalid = g.chance(0.01)
	d.extra = append(d.extra, field{keyScriptData, wire.Bytes(nil, g.bytes(32))})
	h := g.hash28()
	d.extra = append(d.extra, field{keySigners, wire.Bytes(wire.Array(nil, 1), h[:])})
	for range g.between(1, 3) {
		o := m.f.live.all[g.IntN(len(m.f.live.all))]
		if !slices.Contains(d.inputs, o) && !slices.Contains(d.refs, o) && o != d.collateral[0] {
			d.refs = append(d.refs, o)
		}
	}
}

// mainnetOutputs shares out what the purse holds.
func (m *maker) mainnetOutputs(d *draft, p purse, n int) {
	g := m.g
	coin := p.coin - d.fee
	n = max(1, min(n, int(coin/(2*ada))))
	for i := range n {
		part := coin
		if left := uint64(n - i); left > 1 {
			part = 1*ada + g.Uint64N(2*(coin/left)-2*ada+1)
			part = min(part, coin-(left-1)*ada)
		}
		coin -= part
		d.outs = append(d.outs, m.mainnetOutput(part))
	}
	home := d.outs[g.IntN(n)] // most assets stay together
	for _, k := range p.order {
		q := p.assets[k]
		if q == 0 {
			continue
		}
		to := home
		if g.chance(0.3) {
			to = d.outs[g.IntN(n)]
			if q > 1 && to != home && g.chance(0.3) {
				part := 1 + g.Uint64N(q-1)
				q -= part
				home.Assets = append(home.Assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: part})
			}
		}
		to.Assets = append(to.Assets, chain.Asset{Policy: k.policy, Name: []byte(k.name), Quantity: q})
	}
	for _, o := range d.outs {
		o.Assets = normalise(o.Assets)
	}
}

// mainnetOutput makes an output: mostly base addresses, some of scripts with a
// datum.
func (m *maker) mainnetOutput(lovelace uint64) *Output {
	g := m.g
	o := &Output{Lovelace: lovelace}
	switch p := g.Float64(); {
	case p < 0.3:
		o.Address = m.f.wallet[g.IntN(9)] // busy addresses
	case p < 0.75:
		o.Address = g.address(addrBaseKK, 0)
	case p < 0.85:
		o.Address = g.address(addrEnterprise, 0)
	case p < 0.95:
		o.Address = g.address(addrBaseSK, 0)
	default:
		o.Address = g.address(addrEntScript, 0)
	}
	o.script = scriptAddress(o.Address)
	if !o.script {
		return o
	}
	if g.chance(0.7) {
		d := wire.Array(wire.Tag(nil, 121), 3)
		d = wire.Bytes(d, g.bytes(28))
		d = wire.Bytes(d, g.bytes(g.between(1, 64)))
		d = wire.Uint(d, g.Uint64()>>g.IntN(64))
		o.DatumKind, o.inline, o.DatumHash = chain.InlineDatum, d, blake2b.Sum256(d)
	} else {
		o.DatumKind, o.DatumHash = chain.HashedDatum, g.hash()
	}
	return o
}

// mainnetWitnesses writes keys and, with scripts, redeemers and now and then
// the script itself.
func (m *maker) mainnetWitnesses(d *draft, scripts bool) {
	g := m.g
	list := func(b []byte, n int) []byte {
		if d.style.tagSets {
			b = wire.Tag(b, 258)
		}
		return wire.Array(b, n)
	}
	scripts = scripts && d.collateral != nil
	whole := scripts && g.chance(0.42)
	n := 1
	if scripts {
		n++
	}
	if whole {
		n++
	}
	keys := g.between(1, 2)
	b := make([]byte, 0, 512)
	b = list(wire.Uint(wire.Map(b, n), witKeys), keys)
	sized := func(n int) { b = g.random(wire.Head(b, wire.MajorBytes, uint64(n)), n) }
	for range keys {
		b = wire.Array(b, 2)
		sized(32)
		sized(64)
	}
	if scripts {
		n := g.between(1, 3)
		b = wire.Map(wire.Uint(b, witRedeemers), n)
		for i := range n {
			b = append(wire.Array(b, 2), 0, byte(i))
			b = wire.Array(b, 2)
			b = wire.Array(wire.Tag(b, 121), 2)
			sized(32)
			sized(g.between(1, 64))
			b = wire.Array(b, 2)
			b = wire.Uint(b, uint64(g.IntN(14_000_000)))
			b = wire.Uint(b, g.Uint64N(10_000_000_000))
		}
	}
	if whole {
		s := g.bytes(g.between(500, 9700))
		b = wire.Bytes(list(wire.Uint(b, witPlutusV2), 1), s)
		d.scripts = append(d.scripts, scriptHash(2, s))
	}
	d.wits = b
}
