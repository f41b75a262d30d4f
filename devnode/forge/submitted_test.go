package forge_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
)

func submitForge(t testing.TB, era chain.Era) *forge.Forge {
	t.Helper()
	f, err := forge.New(forge.Options{Seed: 5, K: 20, EpochBlocks: 10, Plain: true, Eras: []forge.EraSpan{{Era: era}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := f.Next(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

var payee = append([]byte{0x60}, make([]byte, 28)...)

func compose(t testing.TB, f *forge.Forge, before []*forge.Submitted, o forge.Order) *forge.Submitted {
	t.Helper()
	raw, id, err := f.Compose(o, before)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := forge.ReadTx(f.Era(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if tx.ID != id {
		t.Fatalf("read as %v, composed as %v", tx.ID, id)
	}
	return tx
}

// TestSubmitted: in every era, transactions that pass Check stand in the next
// block byte for byte, in order, one spending the other's output, and the oracle
// knows what they did as a decoder of the block does.
func TestSubmitted(t *testing.T) {
	for era := chain.Shelley; era <= chain.Conway; era++ {
		f := submitForge(t, era)
		var pool []*forge.Submitted
		pay := func(o forge.Order) *forge.Submitted {
			tx := compose(t, f, pool, o)
			if r := f.Check(tx, f.Head().Point.Slot+1, pool); r != nil {
				t.Fatalf("%s: %v", era, r)
			}
			pool = append(pool, tx)
			return tx
		}
		first := pay(forge.Order{Pay: []forge.Payment{{payee, 3_000_000}, {payee, 5_000_000}}})
		pay(forge.Order{Spend: []chain.TxIn{{ID: first.ID, Index: 1}}, Pay: []forge.Payment{{payee, 1_000_000}}})
		if era >= chain.Babbage {
			pay(forge.Order{Spend: []chain.TxIn{{ID: first.ID}}, Pay: []forge.Payment{{payee, 1}, {payee, 2_000_000}}, Fails: true})
		}
		b, _, err := f.SubmittedNext(0, pool)
		if err != nil {
			t.Fatal(err)
		}
		var w ledger.Block
		if err := w.Walk(b.Raw); err != nil {
			t.Fatal(err)
		}
		e, err := f.Oracle().Effects(f.Head().Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		for i, tx := range pool {
			if w.Txs[i].ID != tx.ID || e.Txs[i].ID != tx.ID {
				t.Fatalf("%s: transaction %d is %v, submitted was %v", era, i, w.Txs[i].ID, tx.ID)
			}
			var spent []chain.TxIn
			for _, o := range e.Txs[i].Spent {
				spent = append(spent, o.Ref)
			}
			got := slices.Clone(w.Txs[i].Spends())
			slices.SortFunc(got, chain.TxIn.Compare)
			if !slices.Equal(got, spent) {
				t.Errorf("%s: the block's transaction %d spends %v, the oracle's %v", era, i, got, spent)
			}
			if _, outs := w.Txs[i].Creates(); len(outs) != len(e.Txs[i].Created) {
				t.Errorf("%s: %d outputs, the oracle has %d", era, len(outs), len(e.Txs[i].Created))
			}
		}
		for _, tx := range pool {
			if r := f.Check(tx, f.Head().Point.Slot+1, nil); r == nil {
				t.Errorf("%s: a transaction of the chain passes again", era)
			}
		}
		// What they made stays where it is: the chain's own transactions leave it alone.
		for range 30 {
			if _, err := f.Next(); err != nil {
				t.Fatal(err)
			}
		}
		last := chain.TxIn{ID: pool[1].ID}
		if got, err := f.Oracle().Outputs(f.Head().Point.Hash, []chain.TxIn{last}); err != nil || len(got) != 1 {
			t.Errorf("%s: %v is gone: %v", era, last, err)
		}
	}
}

// TestRefusals: what is wrong is named as the ledger names it.
func TestRefusals(t *testing.T) {
	f := submitForge(t, chain.Conway)
	slot := f.Head().Point.Slot + 1
	tx := compose(t, f, nil, forge.Order{Pay: []forge.Payment{{payee, 3_000_000}}})
	in := []byte{0x81, 0x82, 0x58, 32}
	in = append(append(in, make([]byte, 32)...), 0)
	out := append(append([]byte{0x81, 0x82, 0x58, 29}, payee...), 0x1a, 0, 0x1e, 0x84, 0x80)
	body := func(fields ...[]byte) []byte {
		b := []byte{0x84, 0xa0 + byte(len(fields))}
		for _, x := range fields {
			b = append(b, x...)
		}
		return append(b, 0xa0, 0xf5, 0xf6)
	}
	fee := []byte{2, 0x1a, 0, 8, 0, 0}
	read := func(raw []byte) *forge.Submitted {
		t.Helper()
		got, err := forge.ReadTx(chain.Conway, raw)
		if err != nil {
			t.Fatalf("%x: %v", raw, err)
		}
		return got
	}
	set, err := f.Oracle().Set(f.Head().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var live *forge.Output
	for _, o := range set {
		if len(o.Assets) == 0 && o.Lovelace > 10_000_000 && o.Ref.Index < 24 {
			live = o
		}
	}
	real1 := append(append([]byte{0x82, 0x82, 0x58, 32}, live.Ref.ID[:]...), byte(live.Ref.Index))
	both := slices.Concat(real1, in[1:])
	only := append([]byte{0x81}, real1[1:]...)
	field := func(key byte, value []byte) []byte { return append([]byte{key}, value...) }
	for name, c := range map[string]struct {
		tx   *forge.Submitted
		pool []*forge.Submitted
		want forge.RefusalKind
	}{
		"in the mempool already": {tx, []*forge.Submitted{tx}, forge.MempoolFailure},
		"all spent":              {read(body(field(0, in), field(1, out), fee)), nil, forge.MempoolFailure},
		"one spent":              {read(body(field(0, both), field(1, out), fee)), nil, forge.BadInputsUTxO},
		"no inputs":              {read(body(field(0, []byte{0x80}), field(1, out), fee)), nil, forge.InputSetEmpty},
		"not balanced":           {read(body(field(0, only), field(1, out), fee)), nil, forge.ValueNotConserved},
		"too cheap":              {read(body(field(0, only), field(1, out), []byte{2, 1})), nil, forge.FeeTooSmall},
		"expired":                {read(body(field(0, only), field(1, out), fee, []byte{3, 1})), nil, forge.OutsideValidityInterval},
		"too early":              {read(body(field(0, only), field(1, out), fee, []byte{8, 0x1b, 1, 0, 0, 0, 0, 0, 0, 0})), nil, forge.OutsideValidityInterval},
	} {
		if r := f.Check(c.tx, slot, c.pool); r == nil || r.Kind != c.want {
			t.Errorf("%s: %v", name, r)
		}
	}
	old, err := forge.ReadTx(chain.Babbage, tx.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Check(old, slot, nil); r == nil || r.Kind != forge.WrongEra || r.TxEra != chain.Babbage || r.Era != chain.Conway {
		t.Errorf("of another era: %v", r)
	}
	for name, raw := range map[string][]byte{"nothing": nil, "three items": {0x83, 0xa0, 0xa0, 0xf6}, "no body": {0x84, 0, 0xa0, 0xf5, 0xf6},
		"certificates": body([]byte{4, 0x80}), "followed": append(body(fee), 0)} {
		if _, err := forge.ReadTx(chain.Conway, raw); !errors.Is(err, forge.ErrTx) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReadTx: whatever is submitted is read or refused, and what is read and
// passes Check makes a block that a follower can read.
func FuzzReadTx(f *testing.F) {
	for era := chain.Shelley; era <= chain.Conway; era++ {
		fg := submitForge(f, era)
		raw, _, err := fg.Compose(forge.Order{Pay: []forge.Payment{{payee, 3_000_000}}}, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(era), raw)
	}
	// A datum, a script, assets, metadata, a return, in forms of indefinite length.
	f.Add(uint8(chain.Conway), []byte("\x84\xbf\x00\x80\x01\x9f\xbf\x00\x58\x1d\x60ABCDEFGHIJKLMNOPQRSTUVWXYZab\x01\x82\x01\xa1\x58\x1cABCDEFGHIJKLMNOPQRSTUVWXYZab\xa1\x41a\x01\x02\x82\x01\xd8\x18\x41\x01\x03\xd8\x18\x43\x82\x00\x80\xff\xff\xff\xa0\xf5\xa1\x01\x01"))
	ready := map[chain.Era]*forge.Forge{}
	for era := chain.Shelley; era <= chain.Conway; era++ {
		ready[era] = submitForge(f, era)
	}
	f.Fuzz(func(t *testing.T, era uint8, raw []byte) {
		tx, err := forge.ReadTx(chain.Era(era), raw)
		if err != nil {
			if !errors.Is(err, forge.ErrTx) {
				t.Errorf("untyped: %v", err)
			}
			return
		}
		fg := ready[chain.Era(era)]
		if r := fg.Check(tx, fg.Head().Point.Slot+1, nil); r != nil {
			_ = r.Error()
			return
		}
		b, _, err := fg.SubmittedNext(0, []*forge.Submitted{tx})
		if err != nil {
			t.Fatal(err)
		}
		var w ledger.Block
		if err := w.Walk(b.Raw); err != nil {
			t.Errorf("%x makes a block that nobody can read: %v", raw, err)
		}
		if err := fg.Rewind(1); err != nil {
			t.Fatal(err)
		}
	})
}
