package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// world is the model: plain maps and lists that say what a store must hold. It
// also makes the blocks.
type world struct {
	k       chain.Height
	archive bool

	genesis []chain.Output
	blocks  []*chain.Effects // our chain, resolved, with their own bytes
	live    map[chain.TxIn]chain.Output
	base    int // index of the newest block that cannot be undone, -1 for none
	highest chain.Height
	orphans map[chain.Hash]*chain.Effects
	undone  []chain.Hash // in the order in which they were
	serial  uint64       // makes every hash new
}

func newWorld(k chain.Height, archive bool, genesis int) *world {
	w := &world{
		k: k, archive: archive, base: -1, highest: chain.OriginHeight,
		live: map[chain.TxIn]chain.Output{}, orphans: map[chain.Hash]*chain.Effects{},
	}
	for i := range genesis {
		o := w.output(chain.TxIn{ID: w.hash()}, chain.Link{Height: chain.OriginHeight, Era: chain.Byron}, 0, uint64(i))
		w.genesis = append(w.genesis, o)
		w.live[o.Ref] = o
	}
	return w
}

func (w *world) hash() chain.Hash {
	w.serial++
	return blake2b.Sum256(binary.BigEndian.AppendUint64(nil, w.serial))
}

// output makes an output whose bytes are its own description: see testTerms.
func (w *world) output(ref chain.TxIn, l chain.Link, tx uint32, r uint64) chain.Output {
	raw := binary.BigEndian.AppendUint64([]byte{byte(r), byte(r >> 8)}, w.serial)
	for n := r >> 16 % 50; n > 0; n-- {
		raw = append(raw, byte(n))
	}
	return chain.Output{
		Ref: ref, Height: l.Height, Slot: l.Point.Slot, TxIndex: tx, Era: l.Era,
		Lovelace: r%1_000_000_007 + 1, Raw: raw,
	}
}

// testTerms reads what output wrote: a few addresses of every kind, stake
// credentials and assets, so that sources are shared by many outputs.
func testTerms(o *chain.Output, emit func(chain.Source)) error {
	if len(o.Raw) < 2 {
		return fmt.Errorf("an output of %d bytes", len(o.Raw))
	}
	a, b := o.Raw[0], o.Raw[1]
	for _, src := range testSources(a, b) {
		emit(src)
	}
	return nil
}

func testSources(a, b byte) []chain.Source {
	cred := func(n byte) string {
		h := blake2b.Sum256([]byte{n})
		return string(h[:28])
	}
	pay, stake := cred(a%3), cred(100+a/3%3)
	var out []chain.Source
	switch a % 5 {
	case 0: // base address
		out = append(out, chain.Source{Kind: chain.SourceAddress, Key: "\x01" + pay + stake}, chain.Source{Kind: chain.SourceStake, Key: stake})
	case 1: // enterprise, and its bytes are the beginning of the others'
		out = append(out, chain.Source{Kind: chain.SourceAddress, Key: "\x61" + pay})
	case 2: // Byron
		out = append(out, chain.Source{Kind: chain.SourceAddress, Key: "\x82" + pay})
	case 3: // trailing bytes
		out = append(out, chain.Source{Kind: chain.SourceAddress, Key: "\x01" + pay + stake + string(make([]byte, 50+int(a%2)*50))})
	case 4: // no address at all
		out = append(out, chain.Source{Kind: chain.SourceAddress, Key: string(o5[:a%7])})
	}
	if a%5 < 2 || a%5 == 3 {
		out = append(out, chain.Source{Kind: chain.SourcePayment, Key: pay})
	}
	for i := range b % 4 {
		policy := cred(200 + b/4%2)
		out = append(out, chain.Source{Kind: chain.SourcePolicy, Key: policy}, chain.Source{Kind: chain.SourceAsset, Key: policy + "name"[:i+1]})
	}
	return out
}

var o5 = [7]byte{0x61, 1, 2, 3, 4, 5, 6}

func (w *world) head() chain.Link {
	if len(w.blocks) == 0 {
		return originLink()
	}
	return w.blocks[len(w.blocks)-1].Link
}

// chooser draws numbers: rapid's, or a seeded generator.
type chooser func(label string, low, high int) int

// block makes the next block on top of below, spending from live, which it
// updates. Outputs that it makes and spends itself are marked InBatch.
func (w *world) block(below chain.Link, live map[chain.TxIn]chain.Output, journal bool, draw chooser) *chain.Effects {
	l := chain.Link{Point: chain.Point{Slot: below.Point.Slot + chain.Slot(draw("slot", 1, 20)), Hash: w.hash()}, Parent: below.Point.Hash, Height: below.Height + 1, Era: chain.Conway}
	if !below.Boundary && draw("boundary", 0, 9) == 0 {
		l.Era, l.Boundary = chain.Byron, true
		l.Height = max(below.Height, 0)
	} else if below.Boundary && draw("same slot", 0, 1) == 0 {
		l.Point.Slot = below.Point.Slot
	}
	e := &chain.Effects{Link: l, Journal: journal}
	e.Raw = make([]byte, draw("raw", 0, 300))
	for i := range e.Raw {
		e.Raw[i] = byte(i) ^ l.Point.Hash[0]
	}
	if l.Boundary {
		return e
	}
	if draw("removal", 0, 19) == 0 { // the ledger itself removes genesis outputs
		w.tx(e, live, chain.Hash{}, slices.DeleteFunc(slices.Clone(w.genesis), func(o chain.Output) bool {
			_, ok := live[o.Ref]
			return !ok
		}), 0, 0, draw)
	}
	for i := range draw("txs", 0, 3) {
		refs := slices.SortedFunc(maps.Keys(live), chain.TxIn.Compare)
		n := min(draw("spends", 0, 3), len(refs))
		spent := make([]chain.Output, 0, n)
		start := draw("which", 0, max(len(refs)-n, 0))
		for _, ref := range refs[start : start+n] {
			spent = append(spent, live[ref])
		}
		w.tx(e, live, w.hash(), spent, draw("makes", 0, 4), uint32(i), draw)
	}
	return e
}

func (w *world) tx(e *chain.Effects, live map[chain.TxIn]chain.Output, id chain.TxID, spent []chain.Output, makes int, index uint32, draw chooser) {
	for _, o := range spent {
		delete(live, o.Ref)
		e.Spent = append(e.Spent, o)
	}
	first := draw("first index", 0, 3) / 3 * 7 // a collateral return's index is not 0
	for i := range makes {
		o := w.output(chain.TxIn{ID: id, Index: uint32(first + i)}, e.Link, index, uint64(draw("output", 0, 1<<30)))
		live[o.Ref] = o
		e.Created = append(e.Created, o)
	}
	e.Txs = append(e.Txs, chain.TxEffects{ID: id, Valid: first == 0, Spent: len(e.Spent), Created: len(e.Created)})
}

// batch makes blocks on top of the head and marks what is born and spent within.
func (w *world) batch(n int, journal func(i int) bool, draw chooser) []*chain.Effects {
	live := maps.Clone(w.live)
	below := w.head()
	var blocks []*chain.Effects
	born := map[chain.TxIn]*chain.Output{}
	for i := range n {
		e := w.block(below, live, journal(i), draw)
		for j := range e.Created {
			born[e.Created[j].Ref] = &e.Created[j]
		}
		for j := range e.Spent {
			if o := born[e.Spent[j].Ref]; o != nil {
				o.InBatch, e.Spent[j].InBatch = true, true
			}
		}
		blocks = append(blocks, e)
		below = e.Link
	}
	return blocks
}

// commit takes blocks into the model.
func (w *world) commit(blocks []*chain.Effects) {
	for _, e := range blocks {
		for _, o := range e.Spent {
			delete(w.live, o.Ref)
		}
		for _, o := range e.Created {
			o.InBatch = false
			w.live[o.Ref] = o
		}
		for _, o := range e.Spent { // a block can spend what it makes
			delete(w.live, o.Ref)
		}
		w.blocks = append(w.blocks, e)
		if !e.Journal {
			w.base = len(w.blocks) - 1
		}
		w.highest = max(w.highest, e.Height)
		delete(w.orphans, e.Point.Hash)
	}
	w.base = w.floor()
	for h, l := range w.orphans {
		if l.Height < w.highest-w.k {
			delete(w.orphans, h)
		}
	}
	kept := w.undone[:0:0]
	for _, h := range w.undone {
		if w.orphans[h] != nil {
			kept = append(kept, h)
		}
	}
	for len(kept) > int(w.k) {
		delete(w.orphans, kept[0])
		kept = kept[1:]
	}
	w.undone = kept
}

// floor is the index of the oldest block that may be rolled back to.
func (w *world) floor() int {
	i := w.base
	for i+1 < len(w.blocks) && w.blocks[i+1].Position().Compare(chain.Position{Height: w.highest - w.k}) <= 0 {
		i++
	}
	return i
}

// undo takes the newest block back.
func (w *world) undo() {
	e := w.blocks[len(w.blocks)-1]
	w.blocks = w.blocks[:len(w.blocks)-1]
	for _, o := range e.Spent {
		o.InBatch = false
		w.live[o.Ref] = o
	}
	for _, o := range e.Created {
		delete(w.live, o.Ref)
	}
	w.orphans[e.Point.Hash] = e
	w.undone = append(slices.DeleteFunc(w.undone, func(h chain.Hash) bool { return h == e.Point.Hash }), e.Point.Hash)
}

// at is the i-th block's link, origin for -1.
func (w *world) at(i int) chain.Link {
	if i < 0 {
		return originLink()
	}
	return w.blocks[i].Link
}
