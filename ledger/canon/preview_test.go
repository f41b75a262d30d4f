package canon_test

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/shared"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
)

// replay applies blocks to a set held in memory.
type replay struct {
	set    map[chain.TxIn]chain.Output
	digest canon.Digest
	all    hash.Hash // of all effect lines
	line   []byte

	created, spent         int
	lovelaceIn, lovelaceUp uint64
}

func (r *replay) decode(t *testing.T, o *chain.Output) chain.TxOut {
	t.Helper()
	out, err := ledger.DecodeOutput(o.Era, o.Raw)
	if err != nil {
		t.Fatalf("%s: %v", o.Ref, err)
	}
	return out
}

func (r *replay) apply(t *testing.T, e *chain.Effects) (effects [32]byte) {
	t.Helper()
	own := sha256.New()
	r.created, r.spent, r.lovelaceUp, r.lovelaceIn = 0, 0, 0, 0
	emit := func(line []byte) {
		line = append(line, '\n')
		own.Write(line)
		r.all.Write(line)
		r.line = line
	}
	for i := range e.Txs {
		spent, created := e.Tx(i)
		for _, s := range spent {
			o, ok := r.set[s.Ref]
			if !ok {
				t.Fatalf("block %s spends %s, which is not there", e.Point, s.Ref)
			}
			out := r.decode(t, &o)
			emit(canon.AppendSpent(r.line[:0], s.Ref, &out, e.Txs[i].ID))
			r.digest.Remove(s.Ref, &out)
			delete(r.set, s.Ref)
			r.spent++
			r.lovelaceIn += o.Lovelace
		}
		for _, c := range created {
			out := r.decode(t, &c)
			emit(canon.AppendCreated(r.line[:0], c.Ref, &out))
			r.digest.Add(c.Ref, &out)
			r.set[c.Ref] = c
			r.created++
			r.lovelaceUp += c.Lovelace
		}
	}
	return [32]byte(own.Sum(nil))
}

// utxoSum is the SHA-256 of the sorted lines of the set.
func (r *replay) utxoSum(t *testing.T) string {
	lines := make([]string, 0, len(r.set))
	for ref, o := range r.set {
		out := r.decode(t, &o)
		lines = append(lines, string(canon.AppendUTxO(nil, ref, &out)))
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, l := range lines {
		fmt.Fprintln(h, l)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestPreview replays the first 40,357 blocks of a real network and compares,
// block by block, with what two other implementations computed.
func TestPreview(t *testing.T) {
	f, err := os.Open(filepath.Join(shared.Dir(t), "preview", "blocks.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	want := bufio.NewScanner(z)

	g, err := ledger.Network("preview")
	if err != nil {
		t.Fatal(err)
	}
	r := replay{set: map[chain.TxIn]chain.Output{}, all: sha256.New()}
	for _, o := range g.Outputs {
		out := r.decode(t, &o)
		r.digest.Add(o.Ref, &out)
		r.set[o.Ref] = o
	}
	milestones := map[string][2]string{ // effect lines, UTxO lines
		"00009.chunk": {"6c005606a603186cbf081cb603d8bb51b37d242fa4ded292a776e89b9c470c7c", "2e6c08403ccf935bf5f47148b94526c4bc98b5ae0bd883313b08dfef22737599"},
		"00149.chunk": {"c9fe18e9d033a39b2fc9825b5aaa38b0467210609ac705279f54d8cde9a1e74f", "604879a80fa05ec0fdcca03391b975049a53f8d3de3c40147a5a647eb21e19a5"},
		"00199.chunk": {"2a7fca07983039c6e1988994955692c4a1ae2165121993bb4148bc4f9c0f9842", "c9a91846761e32b385b1efab5082882d14fed5669dff9ab4313738f0b61ee9cd"},
	}
	files, err := filepath.Glob(filepath.Join(shared.Dir(t), "preview", "immutable", "*.chunk"))
	if err != nil {
		t.Fatal(err)
	}
	var b ledger.Block
	var e chain.Effects
	blocks := 0
	parent := chain.Hash{}
	for _, file := range files {
		chunk, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for len(chunk) > 0 {
			n, err := ledger.ItemSize(chunk)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Walk(chunk[:n:n]); err != nil {
				t.Fatal(err)
			}
			chunk = chunk[n:]
			if blocks > 0 && b.Parent != parent {
				t.Fatalf("block %s does not follow %s", b.Point, parent)
			}
			parent = b.Point.Hash
			b.Effects(&e)
			effects := r.apply(t, &e)
			got := fmt.Sprintf("%d %d %s %s %d %d %d %d %d %d %d %s %x %x",
				b.Height, b.Point.Slot, b.Point.Hash, b.Era, len(b.Txs), r.created, r.spent, r.lovelaceUp, r.lovelaceIn,
				r.digest.Count, r.digest.Lovelace, r.digest.Sum, effects[:8], r.all.Sum(nil)[:8])
			if !want.Scan() {
				t.Fatal("more blocks than lines")
			}
			if got != want.Text() {
				t.Fatalf("block %s:\ngot  %s\nwant %s", b.Point, got, want.Text())
			}
			blocks++
		}
		if m, ok := milestones[filepath.Base(file)]; ok {
			if got := hex.EncodeToString(r.all.Sum(nil)); got != m[0] {
				t.Errorf("%s: effect lines %s, want %s", file, got, m[0])
			}
			if got := r.utxoSum(t); got != m[1] {
				t.Errorf("%s: UTxO lines %s, want %s", file, got, m[1])
			}
		}
	}
	if blocks != 40357 {
		t.Errorf("%d blocks, want 40357", blocks)
	}
}
