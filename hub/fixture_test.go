package hub

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// fx drives a hub with a chain written in words: outputs are called "t1.0",
// addresses "a", blocks go by their height.
type fx struct {
	*testing.T
	*Hub
	at    chain.At
	set   map[string]*chain.UTxO
	below []fxBlock
	names map[chain.TxID]string
	fork  int
}

type fxBlock struct {
	at  chain.At
	set map[string]*chain.UTxO
	b   *chain.AppliedBlock
}

// newFx returns a complete hub with horizon 3 and depth up to 5 whose genesis
// has the outputs g.0 at address a and g.1 at b.
func newFx(t *testing.T, change ...func(*Config)) *fx {
	f := &fx{T: t, at: chain.Origin, set: map[string]*chain.UTxO{}, names: map[chain.TxID]string{{}: "ledger"}}
	for i, addr := range []string{"a", "b"} {
		f.set[fmt.Sprintf("g.%d", i)] = &chain.UTxO{Ref: chain.TxIn{ID: f.txid("g"), Index: uint32(i)}, At: chain.Origin, Out: chain.TxOut{Address: []byte(addr)}}
	}
	genesis := maps.Clone(f.set)
	cfg := Config{
		Capabilities: Capabilities{Kinds: allKinds(), Indexed: ^query.Kinds(0), Replay: true, Horizon: 3, MaxConfirmations: 5, Idle: true},
		Bound:        Unbounded,
		Genesis: func(q query.UTxO) ([]*chain.UTxO, error) {
			return rowsIn(genesis, q), nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	f.Hub = New(cfg)
	return f
}

func partial(c *Config) { c.Capabilities.Partial = true }

func rowsIn(set map[string]*chain.UTxO, q query.UTxO) (rows []*chain.UTxO) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if q.Match(set[name]) {
			rows = append(rows, set[name])
		}
	}
	return rows
}

func (f *fx) txid(name string) chain.TxID {
	if name == "ledger" {
		return chain.TxID{}
	}
	id := chain.TxID(sha256.Sum256([]byte(name)))
	f.names[id] = name
	return id
}

// q is a query for addresses: "a", or "a,b" for either.
func q(addrs string) query.UTxO {
	var qs []query.UTxO
	for _, a := range strings.Split(addrs, ",") {
		qs = append(qs, query.Address([]byte(a)))
	}
	return query.AnyOf(qs...)
}

// txOf reads "t1: g.0 t0.1 > a b": what it spends, where it pays. A "!" behind
// the name makes it fail: its outputs are then its collateral return.
func (f *fx) txOf(text string, index int, at chain.At, place *uint32) chain.AppliedTx {
	name, rest, _ := strings.Cut(text, ":")
	name, failed := strings.CutSuffix(name, "!")
	in, out, _ := strings.Cut(rest, ">")
	t := chain.AppliedTx{ID: f.txid(name), Index: index, Valid: !failed}
	for _, r := range strings.Fields(in) {
		u := f.set[r]
		if u == nil {
			f.Fatalf("%s spends %s, which is not there", name, r)
		}
		delete(f.set, r)
		t.Spent = append(t.Spent, chain.Effect{UTxO: u, Place: *place})
		*place++
	}
	for i, addr := range strings.Fields(out) {
		ix := i
		if failed {
			ix = 7
		}
		u := &chain.UTxO{Ref: chain.TxIn{ID: t.ID, Index: uint32(ix)}, At: at, Out: chain.TxOut{Address: []byte(addr)}}
		f.set[name+"."+strconv.Itoa(ix)] = u
		t.Created = append(t.Created, chain.Effect{UTxO: u, Place: *place})
		*place++
	}
	return t
}

// next makes the next block without applying it.
func (f *fx) next(txs ...string) *chain.AppliedBlock {
	h := max(f.at.Height+1, f.cfg.FirstHeight)
	f.fork++
	at := chain.At{Point: chain.Point{Slot: chain.Slot(10 * (h + 1)), Hash: chain.Hash{byte(f.fork), byte(f.fork >> 8), 'b'}}, Height: h}
	b := &chain.AppliedBlock{At: at, Coverage: chain.Complete, Block: []byte{byte(h)}}
	place := uint32(0)
	for i, text := range txs {
		b.Txs = append(b.Txs, f.txOf(text, i, at, &place))
	}
	return b
}

// block applies the next block and returns where it is.
func (f *fx) block(txs ...string) chain.At {
	f.Helper()
	return f.apply(f.next(txs...))
}

func (f *fx) apply(b *chain.AppliedBlock) chain.At {
	f.Helper()
	f.keep(b)
	must(f.T, f.ApplyBlock(b))
	return b.At
}

// keep takes note of a block that is being applied.
func (f *fx) keep(b *chain.AppliedBlock) {
	f.below = append(f.below, fxBlock{b.At, maps.Clone(f.set), b})
	f.at = b.At
}

func (f *fx) blocks(n int) {
	for range n {
		f.block()
	}
}

// covering applies the next block as one in which only some addresses were
// examined; "" for none.
func (f *fx) covering(addrs string, txs ...string) chain.At {
	f.Helper()
	return f.apply(f.cover(f.next(txs...), addrs))
}

func (f *fx) cover(b *chain.AppliedBlock, addrs string) *chain.AppliedBlock {
	b.Coverage = chain.Coverage{Sources: map[chain.Source]struct{}{}}
	for _, a := range strings.Split(addrs, ",") {
		b.Coverage.Sources[chain.Source{Kind: chain.SourceAddress, Key: a}] = struct{}{}
	}
	return b
}

// back is the point of our chain at a height.
func (f *fx) back(h chain.Height) chain.At {
	for i := len(f.below) - 1; i >= 0; i-- {
		if f.below[i].at.Height == h {
			return f.below[i].at
		}
	}
	return chain.Origin
}

// rollback takes the blocks above a height back.
func (f *fx) rollback(h chain.Height) error {
	to := f.back(h)
	err := f.RollbackTo(to)
	if err == nil {
		f.forget(h)
	}
	return err
}

func (f *fx) forget(h chain.Height) {
	for len(f.below) > 0 && f.below[len(f.below)-1].at.Height > h {
		f.below = f.below[:len(f.below)-1]
	}
	f.at, f.set = chain.Origin, map[string]*chain.UTxO{}
	if n := len(f.below); n > 0 {
		f.at, f.set = f.below[n-1].at, maps.Clone(f.below[n-1].set)
	}
}

// rows are the outputs that a query wants as they were at a height.
func (f *fx) rows(q query.UTxO, h chain.Height) []*chain.UTxO {
	for _, b := range f.below {
		if b.at.Height == h {
			return rowsIn(b.set, q)
		}
	}
	rows, _ := f.cfg.Genesis(q)
	return rows
}

func (f *fx) sub(query query.UTxO, o Options) *UTxOSubscription {
	f.Helper()
	if o.Seed == SeedNow {
		o.Rows = rowsIn(f.set, query)
	}
	s, err := f.SubscribeUTxO(query, o)
	must(f.T, err)
	return s
}

func (f *fx) text(e *chain.UTxOEvent) string {
	at := "origin"
	if e.At.Height >= 0 {
		at = fmt.Sprint(e.At.Height)
	}
	switch {
	case e.Kind == chain.RolledBack || e.Kind == chain.Idle:
		return fmt.Sprintf("%v @%s", e.Kind, at)
	case e.Because != chain.Live:
		return fmt.Sprintf("%s %s @%s", map[chain.Because]string{chain.Seed: "seed", chain.Correction: "correction"}[e.Because], f.ref(e), at)
	}
	return fmt.Sprintf("%v %s by %s @%s", e.Kind, f.ref(e), f.names[e.Tx], at)
}

func (f *fx) ref(e *chain.UTxOEvent) string {
	return fmt.Sprintf("%s.%d", f.names[e.UTxO.Ref.ID], e.UTxO.Ref.Index)
}

// got reads what a subscription has, in words; the end comes last.
func (f *fx) got(s *UTxOSubscription) (out []string) {
	for {
		e, ok, err := s.Poll()
		if err != nil {
			return append(out, "end: "+endOf(err))
		}
		if !ok {
			return out
		}
		out = append(out, f.text(&e))
	}
}

func (f *fx) want(s *UTxOSubscription, want ...string) {
	f.Helper()
	if got := f.got(s); !slices.Equal(got, want) {
		f.Fatalf("got\n    %s\nwant\n    %s", strings.Join(got, "\n    "), strings.Join(want, "\n    "))
	}
}

func (f *fx) wantErr(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("got %v, want %v", err, want)
	}
}

// all reads the events that a subscription has.
func all(t *testing.T, s *UTxOSubscription) (out []chain.UTxOEvent) {
	t.Helper()
	for {
		e, ok, err := s.Poll()
		must(t, err)
		if !ok {
			return out
		}
		out = append(out, e)
	}
}
