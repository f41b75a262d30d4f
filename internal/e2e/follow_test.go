package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
	"github.com/ourotail/ourotail/query"
)

// node is a served chain with the genesis that a follower needs.
type node struct {
	*devnode.Server
	chain   *devnode.Chain
	genesis *ledger.Genesis
}

func generated(t *testing.T, opts forge.Options, blocks int) *node {
	t.Helper()
	c := devtest.Generate(t, opts, blocks)
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	g, err := ledger.LoadGenesis(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return &node{devtest.Start(t, devnode.Config{Magic: g.Magic, Chain: c}), c, g}
}

func (n *node) config(t *testing.T, dir string) ourotail.Config {
	return n.settings(t, n.Socket(), dir)
}

func (n *node) settings(t *testing.T, socket, dir string) ourotail.Config {
	return ourotail.Config{SocketPath: socket, Genesis: n.genesis, DataDir: dir, Memory: 64 << 20,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func open(t *testing.T, cfg ourotail.Config) *ourotail.Follower {
	t.Helper()
	f, err := ourotail.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func setLines(t *testing.T, f *ourotail.Follower, q query.UTxO) []string {
	t.Helper()
	v := f.View()
	defer v.Close()
	return linesOf(t, v, q)
}

func linesOf(t *testing.T, v *ourotail.View, q query.UTxO) (out []string) {
	t.Helper()
	if err := v.Lines(t.Context(), q, func(l []byte) error {
		out = append(out, string(l))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// digests are the SHA-256 of the set's lines, and what a scan of it comes to.
func digests(t *testing.T, f *ourotail.Follower) (lines string, d ourotail.Digest) {
	t.Helper()
	v := f.View()
	defer v.Close()
	sum := sha256.New()
	if err := v.Lines(t.Context(), query.Everything(), func(l []byte) error {
		sum.Write(l)
		sum.Write([]byte{'\n'})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	d, err := v.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil)), d
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d lines, want %d", what, len(got), len(want))
	shown := 0
	for _, l := range got {
		if _, ok := slices.BinarySearch(want, l); !ok && shown < 3 {
			t.Errorf("  too many: %s", l)
			shown++
		}
	}
	for _, l := range want {
		if _, ok := slices.BinarySearch(got, l); !ok && shown < 6 {
			t.Errorf("  missing: %s", l)
			shown++
		}
	}
}

// TestVariedChainWithForks follows a generated chain of every era that forks at
// every depth up to k while it grows, with readers from origin, seeded in the
// middle and gated. In the end the store, and every reader's fold, is the oracle's set.
func TestVariedChainWithForks(t *testing.T) {
	blocks, k := 5000, 432
	if testing.Short() {
		blocks, k = 600, 60
	}
	n := generated(t, forge.Options{Seed: 11, K: k, EpochBlocks: 40}, 20)
	f := open(t, n.config(t, t.TempDir()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wallet := n.chain.Wallet()
	type gated struct {
		name  string
		q     query.UTxO
		depth chain.Height
		*Reader
	}
	var readers []gated
	subscribe := func(name string, q query.UTxO, opts hub.Options) {
		opts.Bound = hub.Unbounded
		sub, err := f.SubscribeUTxOs(ctx, q, opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		readers = append(readers, gated{name, q, opts.Confirmations, NewReader(ctx, sub)})
	}
	addresses := query.AnyOf(query.Address(wallet[0]), query.Address(wallet[1]), query.Address(wallet[len(wallet)-1]))
	subscribe("everything from origin", query.Everything(), hub.Options{Start: hub.Origin})
	subscribe("addresses from origin", addresses, hub.Options{Start: hub.Origin})
	subscribe("everything, 3 deep", query.Everything(), hub.Options{Start: hub.Origin, Confirmations: 3})

	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	atTip := func() bool { return f.State().Head.Point == n.chain.Tip().Point }

	r := rand.New(rand.NewPCG(11, 11))
	for made, seeded := 20, false; made < blocks; {
		if r.IntN(12) == 0 {
			depth := 1 + r.IntN(4)
			if r.IntN(12) == 0 {
				depth = 1 + r.IntN(k-1)
			}
			depth = min(depth, int(n.chain.Tip().Height))
			if err := n.chain.Fork(depth, depth+1); err != nil {
				t.Fatal(err)
			}
			made += depth + 1
		} else {
			step := 1 + r.IntN(20)
			if err := n.chain.Extend(step); err != nil {
				t.Fatal(err)
			}
			made += step
		}
		// A node never rolls back more than k from any tip it had, so neither may the
		// chain outrun what we have seen.
		devtest.Eventually(t, "the follower at the tip", atTip)
		if !seeded && made > blocks/2 {
			seeded = true
			subscribe("everything, seeded", query.Everything(), hub.Options{Seed: hub.SeedLater, AcceptScan: true})
			subscribe("addresses, seeded, 5 deep", addresses, hub.Options{Seed: hub.SeedLater, Confirmations: 5})
		}
	}
	if err := n.chain.Extend(10); err != nil { // gated readers stand on a chain that is deep enough to compare
		t.Fatal(err)
	}
	devtest.Eventually(t, "the follower at the tip", atTip)
	devtest.Eventually(t, "the indexes", func() bool { return f.State().Index.Built })

	tip := n.chain.Tip()
	want, err := n.chain.Oracle().Lines(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, "the store", setLines(t, f, query.Everything()), want)
	sameLines(t, "the store by index", setLines(t, f, addresses), filtered(t, n, tip.Point, addresses))

	stop()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	f.CloseSubscriptions()
	for _, r := range readers {
		r.Wait()
		problems, err := r.Problems()
		if err != nil && !errors.Is(err, context.Canceled) || len(problems) > 0 {
			t.Errorf("%s: %v %v", r.name, err, problems)
		}
		at := ancestor(t, n, tip.Point, tip.Height-r.depth)
		sameLines(t, r.name, r.Lines(), filtered(t, n, at, r.q))
		t.Logf("%s: %d events, %d rollbacks, deepest %d", r.name, r.events, r.rolled, r.deepest)
		if r.depth == 0 && r.rolled == 0 {
			t.Errorf("%s saw no rollback: the test does not test what it says", r.name)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// ancestor returns the point of the main block at a height below a point.
func ancestor(t *testing.T, n *node, p chain.Point, h chain.Height) chain.Point {
	t.Helper()
	path, err := n.chain.Oracle().Path(p.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range path {
		if l.Height == h && !l.Boundary {
			return l.Point
		}
	}
	t.Fatalf("no block at height %d below %v", h, p)
	return chain.Point{}
}

// filtered is what a query wants of the oracle's set at a point.
func filtered(t *testing.T, n *node, p chain.Point, q query.UTxO) (out []string) {
	t.Helper()
	set, err := n.chain.Oracle().Set(p.Hash)
	if err != nil {
		t.Fatal(err)
	}
	for ref, o := range set {
		if q.Match(&chain.UTxO{Ref: ref, Out: chain.TxOut{Address: o.Address, Lovelace: o.Lovelace, Assets: o.Assets}}) {
			out = append(out, o.Line())
		}
	}
	slices.Sort(out)
	return out
}

// TestRestartGoesOn stops and reopens the follower again and again while the
// chain grows and forks; each time the set is the oracle's.
func TestRestartGoesOn(t *testing.T) {
	n := generated(t, forge.Options{Seed: 5, K: 40, EpochBlocks: 12}, 60)
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 5))
	for round := range 12 {
		cfg := n.config(t, dir)
		cfg.ExitAtTip = true
		f := open(t, cfg)
		if err := f.Run(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		tip := n.chain.Tip()
		want, err := n.chain.Oracle().Lines(tip.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if head := f.State().Head; head.Point != tip.Point {
			t.Fatalf("round %d: at %v, the node's tip is %v", round, head.At(), tip)
		}
		sameLines(t, "the store", setLines(t, f, query.Everything()), want)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		// While nobody looks: a fork of any depth within k, then some blocks.
		depth := 1 + r.IntN(38)
		if err := n.chain.Fork(depth, depth+1+r.IntN(10)); err != nil {
			t.Fatal(err)
		}
	}
}

// previewNode serves a real chain.
func previewNode(t *testing.T) *node {
	t.Helper()
	c := devtest.Preview(t, -1)
	g, err := ledger.Network("preview")
	if err != nil {
		t.Fatal(err)
	}
	return &node{devtest.Start(t, devnode.Config{Magic: g.Magic, Chain: c}), c, g}
}

// TestPreviewDigests follows a real chain and comes to the digests that two
// other implementations agree on.
func TestPreviewDigests(t *testing.T) {
	n := previewNode(t)
	cfg := n.config(t, t.TempDir())
	cfg.ExitAtTip = true
	f := open(t, cfg)
	sub, err := f.SubscribeUTxOs(t.Context(), query.Everything(), hub.Options{Start: hub.Origin, Bound: hub.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	effects := sha256.New()
	read := make(chan error, 1)
	go func() {
		var line []byte
		for ev, err := range sub.All(t.Context()) {
			if err != nil {
				read <- err
				return
			}
			switch {
			case ev.Because != chain.Live:
				continue
			case ev.Kind == chain.Created:
				line = canon.AppendCreated(line[:0], ev.UTxO.Ref, &ev.UTxO.Out)
			case ev.Kind == chain.Spent:
				line = canon.AppendSpent(line[:0], ev.UTxO.Ref, &ev.UTxO.Out, ev.Tx)
			}
			effects.Write(append(line, '\n'))
		}
		read <- nil
	}()
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	utxos, digest := digests(t, f)
	f.CloseSubscriptions()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string][2]string{
		"effects":     {hex.EncodeToString(effects.Sum(nil)), "2a7fca07983039c6e1988994955692c4a1ae2165121993bb4148bc4f9c0f9842"},
		"outputs":     {utxos, "c9a91846761e32b385b1efab5082882d14fed5669dff9ab4313738f0b61ee9cd"},
		"accumulator": {digest.Accumulator, "f6ac324b4d0e5c4a8f839072bba0865c"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %s, want %s", what, c[0], c[1])
		}
	}
	if digest.UTxOs != 28374 || digest.Lovelace != 29999980923860447 || f.State().UTxOs != digest.UTxOs || f.State().Lovelace != digest.Lovelace {
		t.Errorf("digest %+v, the store counts %d with %d", digest, f.State().UTxOs, f.State().Lovelace)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
