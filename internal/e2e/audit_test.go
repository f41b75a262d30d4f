package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

const everything = 1 << 20 // more than any of these sets holds

// synced follows a chain to its tip and closes the follower.
func synced(t *testing.T, n *node, dir string) {
	t.Helper()
	cfg := n.config(t, dir)
	cfg.ExitAtTip = true
	f := open(t, cfg)
	if err := errors.Join(f.Run(t.Context()), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func auditDir(t *testing.T, dir string, cfg ourotail.AuditConfig) (ourotail.AuditReport, error) {
	t.Helper()
	d, err := ourotail.OpenDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return d.Audit(t.Context(), cfg)
}

// TestAuditAgreesInEveryEra: a follower is audited at the end of every era, with
// all outputs, while its chain grows and forks.
func TestAuditAgreesInEveryEra(t *testing.T) {
	n := generated(t, forge.Options{Seed: 5, K: 40, EpochBlocks: 12, Eras: []forge.EraSpan{{Era: chain.Byron, Epochs: 2}, {Era: chain.Shelley, Epochs: 1},
		{Era: chain.Allegra, Epochs: 1}, {Era: chain.Mary, Epochs: 1}, {Era: chain.Alonzo, Epochs: 2}, {Era: chain.Babbage, Epochs: 2},
		{Era: chain.Conway, Epochs: 4}, {Era: chain.Dijkstra}}}, 5)
	old := goleak.IgnoreCurrent() // the node goes on
	f := open(t, n.config(t, t.TempDir()))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	eras, spent := map[string]int{}, 0
	for n.chain.Len() < 190 {
		devtest.Eventually(t, "the follower at the tip", func() bool { return f.State().Head.Point == n.chain.Tip().Point })
		r, err := f.Audit(ctx, ourotail.AuditConfig{Sample: everything})
		st := f.State()
		switch {
		case st.Head.Era == chain.Byron:
			if !errors.Is(err, ourotail.ErrNothingToAudit) {
				t.Fatalf("in byron: %v", err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			eras[r.Era]++
			spent += r.Spent
			if len(r.Differences) != 0 || r.Sampled != int(st.UTxOs) || r.Unspent < r.Sampled || r.Checked != r.Unspent+r.Spent || r.Point != st.Head.Point {
				t.Fatalf("%+v at %v with %d outputs", r, st.Head.At(), st.UTxOs)
			}
		}
		if n.chain.Len()%3 == 0 {
			err = n.chain.Fork(4, 7)
		} else {
			err = n.chain.Extend(5)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(eras) != 7 || spent == 0 {
		t.Errorf("%v, %d spent: the test does not see all it should", eras, spent)
	}
	stop()
	<-ran
	f.CloseSubscriptions()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	n.Disconnect()
	goleak.VerifyNone(t, old)
}

// TestAuditChoice: a sample is a sample, and the same seed gives the same.
func TestAuditChoice(t *testing.T) {
	n := generated(t, forge.Options{Seed: 6, K: 40, EpochBlocks: 8}, 150)
	dir := t.TempDir()
	synced(t, n, dir)
	var asked [3][]chain.TxIn
	for i, seed := range []uint64{7, 7, 8} {
		n.Behave(devnode.Behaviour{OnUTxO: func(_ chain.At, ref chain.TxIn, out []byte) []byte {
			asked[i] = append(asked[i], ref)
			return out
		}})
		r, err := auditDir(t, dir, ourotail.AuditConfig{SocketPath: n.Socket(), Sample: 20, Seed: seed})
		if err != nil || r.Sampled != 20 || r.Recent != 40 || r.Checked != len(asked[i]) || r.Checked < 40 || r.Blocks != 40 || len(r.Differences) > 0 {
			t.Errorf("%+v %v", r, err)
		}
	}
	if !slices.Equal(asked[0], asked[1]) || slices.Equal(asked[0], asked[2]) {
		t.Error("the choice does not follow the seed")
	}
}

// TestAuditFindsLies: whatever a node says otherwise is found, named, and told
// apart.
func TestAuditFindsLies(t *testing.T) {
	n := generated(t, forge.Options{Seed: 6, K: 40, EpochBlocks: 8}, 150)
	dir := t.TempDir()
	synced(t, n, dir)
	tip := n.chain.Tip()
	set, err := n.chain.Oracle().Set(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var rich chain.TxIn // of several assets
	var honest []byte
	for ref, o := range set {
		if len(o.Assets) < 2 || o.DatumKind != chain.NoDatum || o.HasScript || o.Era < chain.Babbage {
			continue
		}
		b, err := o.LedgerCBOR(chain.Conway)
		if err != nil {
			t.Fatal(err)
		}
		if b[len(b)-1] > 1 { // the last quantity's last byte: with a bit flipped it is no zero
			rich, honest = ref, b
		}
	}
	e, err := n.chain.Oracle().Effects(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var spent *forge.Output
	for _, tx := range e.Txs {
		for _, o := range tx.Spent {
			spent = o
		}
	}
	if rich == (chain.TxIn{}) || spent == nil {
		t.Fatal("the chain has not what the test needs")
	}
	was, err := spent.LedgerCBOR(chain.Conway)
	if err != nil {
		t.Fatal(err)
	}
	change := func(off int) []byte { // a byte, of the address or at the end of the value
		b := slices.Clone(honest)
		if off < 0 {
			off += len(b)
		}
		b[off] ^= 1
		return b
	}
	plain, err := ledger.DecodeOutput(chain.Conway, honest)
	if err != nil {
		t.Fatal(err)
	}
	lovelace := append([]byte{0x82, 0x58, byte(len(plain.Address))}, plain.Address...)
	if len(plain.Address) < 24 {
		t.Fatal("an address of unexpected size")
	}
	lovelace = append(lovelace, 0)
	datum := append(append([]byte{0x83}, honest[1:]...), append([]byte{0x58, 32}, make([]byte, 32)...)...)
	script := append([]byte{0xa3, 0}, lovelace[1:len(lovelace)-1]...)
	script = append(script, 1, 0, 3, 0xd8, 24, 0x44, 0x82, 1, 0x41, 5)
	for name, c := range map[string]struct {
		ref    chain.TxIn
		says   []byte
		kind   string
		fields []string
	}{
		"hidden":           {rich, nil, ourotail.DiffExtra, nil},
		"another address":  {rich, change(5), ourotail.DiffContents, []string{"address"}},
		"another amount":   {rich, lovelace, ourotail.DiffContents, []string{"lovelace", "assets"}},
		"another quantity": {rich, change(-1), ourotail.DiffContents, []string{"assets"}},
		"a datum":          {rich, datum, ourotail.DiffContents, []string{"datum"}},
		"a script":         {rich, script, ourotail.DiffContents, []string{"lovelace", "assets", "script"}},
		"not an output":    {rich, []byte{0x81, 1}, ourotail.DiffUnreadable, nil},
		"unspent again":    {spent.Ref, was, ourotail.DiffMissing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n.Behave(devnode.Behaviour{OnUTxO: func(_ chain.At, ref chain.TxIn, out []byte) []byte {
				if ref == c.ref {
					return c.says
				}
				return out
			}})
			r, err := auditDir(t, dir, ourotail.AuditConfig{SocketPath: n.Socket(), Sample: everything})
			if err != nil || len(r.Differences) != 1 {
				t.Fatalf("%+v %v", r, err)
			}
			d := r.Differences[0]
			if d.Ref != c.ref || d.Kind != c.kind || !slices.Equal(d.Fields, c.fields) || (d.Ours == "") != (c.ref == spent.Ref) || (d.Node == "") != (c.says == nil) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestAuditFindsDamage: the newest block is taken back and committed again as a
// store that loses, keeps or changes an output would have it.
func TestAuditFindsDamage(t *testing.T) {
	n := generated(t, forge.Options{Seed: 6, K: 40, EpochBlocks: 8}, 150)
	for name, c := range map[string]struct {
		damage func(e *chain.Effects) chain.TxIn
		kind   string
	}{
		"an output lost": {func(e *chain.Effects) chain.TxIn {
			ref := e.Created[len(e.Created)-1].Ref
			e.Created = e.Created[:len(e.Created)-1]
			e.Txs[len(e.Txs)-1].Created--
			return ref
		}, ourotail.DiffMissing},
		"a spend forgotten": {func(e *chain.Effects) chain.TxIn {
			ref := e.Spent[len(e.Spent)-1].Ref
			e.Spent = e.Spent[:len(e.Spent)-1]
			e.Txs[len(e.Txs)-1].Spent--
			return ref
		}, ourotail.DiffExtra},
		"an output changed": {func(e *chain.Effects) chain.TxIn {
			o := &e.Created[len(e.Created)-1]
			out, err := ledger.DecodeOutput(o.Era, o.Raw)
			if err != nil {
				t.Fatal(err)
			}
			o.Lovelace = 77
			o.Raw = append(append([]byte{0x82, 0x58, byte(len(out.Address))}, out.Address...), 0x18, 77)
			return o.Ref
		}, ourotail.DiffContents},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synced(t, n, dir)
			st, err := store.Open(store.Options{Dir: dir, Existing: true, Terms: func(*chain.Output, func(chain.Source)) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			head := st.Head()
			var e chain.Effects
			if err := st.Effects(head.Position(), &e); err != nil {
				t.Fatal(err)
			}
			below, ok, err := st.LinkAt(chain.Position{Height: head.Height - 1})
			if err != nil || !ok || len(e.Txs) == 0 {
				t.Fatalf("block %v: %v", head.At(), err)
			}
			if err := st.Rollback(t.Context(), below.Point); err != nil {
				t.Fatal(err)
			}
			ref := c.damage(&e)
			if err := errors.Join(st.Commit([]*chain.Effects{&e}), st.Close()); err != nil {
				t.Fatal(err)
			}
			r, err := auditDir(t, dir, ourotail.AuditConfig{SocketPath: n.Socket(), Sample: everything})
			if err != nil || len(r.Differences) != 1 || r.Differences[0].Ref != ref || r.Differences[0].Kind != c.kind {
				t.Errorf("%+v %v, want %s of %s", r.Differences, err, c.kind, ref)
			}
		})
	}
}

// TestAuditCannot: what stands in the way is named, with what to do.
func TestAuditCannot(t *testing.T) {
	n := generated(t, forge.Options{Seed: 6, K: 20, EpochBlocks: 8}, 120)
	dir := t.TempDir()
	synced(t, n, dir)
	magic := uint32(7)
	other := generated(t, forge.Options{Seed: 7, K: 20, EpochBlocks: 8}, 120)
	for _, c := range []struct {
		name   string
		before func()
		cfg    ourotail.AuditConfig
		is     error
		says   string
	}{
		{"node away", nil, ourotail.AuditConfig{SocketPath: filepath.Join(dir, "nothing")}, chainsync.ErrNoSocket, "is it running"},
		{"directory of another network", nil, ourotail.AuditConfig{SocketPath: n.Socket(), Magic: 2}, store.ErrNetwork, "2"},
		{"node on another network", func() { n.Behave(devnode.Behaviour{Magic: &magic}) }, ourotail.AuditConfig{SocketPath: n.Socket()}, chainsync.ErrWrongNetwork, "7"},
		{"node behind", func() { n.Behave(devnode.Behaviour{}); n.chain.Show(110) }, ourotail.AuditConfig{SocketPath: n.Socket()}, chainsync.ErrPointNotOnChain, "wait until it has caught up"},
		{"another chain", nil, ourotail.AuditConfig{SocketPath: other.Socket()}, follow.ErrDiverged, "follow it first"},
		{"another fork", func() { n.chain.Show(-1); fork(t, n, 3, 5) }, ourotail.AuditConfig{SocketPath: n.Socket()}, follow.ErrDiverged, "follow it first"},
		{"node far ahead", func() { synced(t, n, dir); extend(t, n, 30) }, ourotail.AuditConfig{SocketPath: n.Socket()}, chainsync.ErrPointTooOld, "more than k = 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before != nil {
				c.before()
			}
			r, err := auditDir(t, dir, c.cfg)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || len(r.Differences) != 0 {
				t.Errorf("%v", err)
			}
		})
	}
}

func fork(t *testing.T, n *node, depth, blocks int) {
	t.Helper()
	if err := n.chain.Fork(depth, blocks); err != nil {
		t.Fatal(err)
	}
}

func extend(t *testing.T, n *node, blocks int) {
	t.Helper()
	if err := n.chain.Extend(blocks); err != nil {
		t.Fatal(err)
	}
}

// TestAuditWaitsForAFork: the node has switched, the follower has not yet.
func TestAuditWaitsForAFork(t *testing.T) {
	n := generated(t, forge.Options{Seed: 6, K: 20, EpochBlocks: 8}, 120)
	cfg := n.config(t, t.TempDir())
	f := open(t, cfg)
	if err := f.Run(until(t, f, n)); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	fork(t, n, 3, 6)
	// Nobody follows yet: the audit finds the fork, waits, and goes on when the
	// follower has come.
	audited := make(chan error, 1)
	go func() {
		r, err := f.Audit(t.Context(), ourotail.AuditConfig{})
		// At whichever of the fork's blocks it was when the audit looked.
		if _, ours := n.chain.Find(r.Point); err == nil && (!ours || len(r.Differences) > 0) {
			t.Errorf("%+v", r)
		}
		audited <- err
	}()
	devtest.Eventually(t, "the audit at the node", func() bool { return n.Clients() > 0 })
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	if err := <-audited; err != nil {
		t.Error(err)
	}
	stop()
	<-ran
	f.CloseSubscriptions()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// until is a context that ends when the follower is at the tip.
func until(t *testing.T, f *ourotail.Follower, n *node) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		devtest.Eventually(t, "the follower at the tip", func() bool { return f.State().Head.Point == n.chain.Tip().Point })
	}()
	return ctx
}
