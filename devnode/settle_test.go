package devnode_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/ledger"
)

// A chain that settles into a folder is served as one that does not, while it
// grows and forks.
func TestSettle(t *testing.T) {
	opts := forge.Options{Seed: 3, EpochBlocks: 12, K: 20}
	plain, settling := devtest.Generate(t, opts, 0), devtest.Generate(t, opts, 0)
	dir := filepath.Join(t.TempDir(), "immutable")
	if err := settling.SettleInto(dir); err != nil {
		t.Fatal(err)
	}
	cl := connect(t, devtest.Start(t, devnode.Config{Chain: settling}), forge.DefaultMagic)
	cl.follow(1)
	var seen []chain.Point
	for i := range 40 {
		for _, c := range []*devnode.Chain{plain, settling} {
			depth := min(i%20+1, 3*(i+1))
			if err := errors.Join(c.Extend(7), c.Fork(depth, depth+2)); err != nil {
				t.Fatal(err)
			}
		}
		for {
			r := cl.follow(1)[0]
			if r.kind == await {
				break
			}
			if r.kind == backward {
				for len(seen) > 0 && seen[len(seen)-1] != r.point {
					seen = seen[:len(seen)-1]
				}
				continue
			}
			seen = append(seen, r.point)
		}
		// The last request waits for the next change; take its answer first.
		for _, c := range []*devnode.Chain{plain, settling} {
			if err := c.Extend(1); err != nil {
				t.Fatal(err)
			}
		}
		seen = append(seen, cl.next().point)
	}
	if err := settling.Fork(45, 46); !errors.Is(err, devnode.ErrSettled) {
		t.Errorf("a fork of more than 2k blocks: %v", err)
	}
	if err := settling.Fork(0, 0); err != nil {
		t.Errorf("a fork that changes nothing: %v", err)
	}
	if plain.Len() != len(seen) {
		t.Fatalf("the client saw %d blocks, want %d", len(seen), plain.Len())
	}
	for i, p := range seen {
		if plain.At(i).Point.Hash != p.Hash { // the client takes k for 432
			t.Fatalf("block %d: the client saw %v, want %v", i, p, plain.At(i))
		}
	}
	before := settling.Len()
	if err := settling.Close(); err != nil {
		t.Fatal(err)
	}
	if err := settling.Extend(1); !errors.Is(err, devnode.ErrNotGenerated) {
		t.Errorf("growth after Close: %v", err)
	}
	db, err := immutable.Open(dir, immutable.Options{CheckCRC: true})
	if err != nil {
		t.Fatal(err)
	}
	if db.Len() != before || settling.Len() != before || len(db.Warnings()) > 0 {
		t.Errorf("%d blocks in the folder, want %d; %v", db.Len(), before, db.Warnings())
	}
}

// What GenerateDir says must come out does come out of the files it writes, by
// the plainest of followers.
func TestGenerateDir(t *testing.T) {
	for _, opts := range []forge.Options{{Seed: 4, EpochBlocks: 20, K: 50}, {Seed: 4, Shape: forge.MainnetLike, K: 50}} {
		const n = 260
		dir := t.TempDir()
		last := 0
		err := devnode.GenerateDir(t.Context(), dir, opts, n, func(done int, _ chain.At) { last = done })
		if err != nil || last != n {
			t.Fatal(last, err)
		}
		if err := devnode.GenerateDir(t.Context(), dir, opts, n, nil); !errors.Is(err, immutable.ErrNotEmpty) {
			t.Errorf("over an old chain: %v", err)
		}
		g, err := ledger.LoadGenesis(filepath.Join(dir, devnode.ConfigFile))
		if err != nil {
			t.Fatal(err)
		}
		db, err := immutable.Open(filepath.Join(dir, devnode.ImmutableDir), immutable.Options{CheckCRC: true, ByronEpochSlots: g.ByronEpochSlots})
		if err != nil {
			t.Fatal(err)
		}
		if w := db.Warnings(); len(w) > 0 || db.Len() != n {
			t.Fatalf("%d blocks, %v", db.Len(), w)
		}
		lines, err := os.Open(filepath.Join(dir, devnode.BlocksFile))
		if err != nil {
			t.Fatal(err)
		}
		defer lines.Close()
		sc := bufio.NewScanner(lines)
		f := newFold(g)
		cur := db.Cursor()
		defer cur.Close()
		for i := range n {
			raw, err := cur.Block(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.apply(raw); err != nil {
				t.Fatal(err)
			}
			if f.block.Boundary {
				continue
			}
			if !sc.Scan() {
				t.Fatal("too few lines")
			}
			if i%20 > 0 && i < n-1 { // the state behind a block is computed afresh
				continue
			}
			if want := sc.Text(); f.line() != want {
				t.Fatalf("block line\n got %s\nwant %s", f.line(), want)
			}
		}
		if sc.Scan() {
			t.Error("too many lines")
		}
		digests, err := os.ReadFile(filepath.Join(dir, devnode.DigestsFile))
		if err != nil {
			t.Fatal(err)
		}
		set := f.lines()
		want := fmt.Sprintf("point %v\nheight %d\nutxos %d\neffects %x\nset %x\n", f.block.Point, f.block.Height,
			len(set), f.all.Sum(nil), sha256.Sum256([]byte(strings.Join(set, "\n")+"\n")))
		if !bytes.Equal(digests, []byte(want)) {
			t.Errorf("digests\n got %s\nwant %s", digests, want)
		}
	}
}
