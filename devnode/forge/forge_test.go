package forge

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

func grow(t testing.TB, f *Forge, n int) (blocks []Block) {
	t.Helper()
	for range n {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func newForge(t testing.TB, o Options) *Forge {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSameSeedSameChain(t *testing.T) {
	for _, o := range []Options{{Seed: 1, EpochBlocks: 20}, {Seed: 1, Shape: MainnetLike}} {
		n := 250
		if o.Shape == MainnetLike {
			n = 40
		}
		a, b := newForge(t, o), newForge(t, o)
		as := grow(t, a, n)
		// The other one tries branches on the way: they leave no trace.
		var bs []Block
		for i := range n / 10 {
			bs = append(bs, grow(t, b, 10)...)
			if depth := i % 7; depth > 0 {
				branch(t, b, depth)
			}
		}
		for i := range as {
			if !bytes.Equal(as[i].Raw, bs[i].Raw) {
				t.Fatalf("%v block %d differs", o.Shape, i)
			}
		}
		o.Seed = 2
		if other := grow(t, newForge(t, o), 3); bytes.Equal(other[2].Raw, as[2].Raw) {
			t.Error("another seed gives the same block")
		}
	}
}

// branch makes a branch of some depth and goes back to the first one.
func branch(t testing.TB, f *Forge, depth int) []Block {
	t.Helper()
	head, path := f.head, slices.Clone(f.path[len(f.path)-depth:])
	if err := f.Rewind(depth); err != nil {
		t.Fatal(err)
	}
	side := grow(t, f, depth+1)
	if err := f.Rewind(depth + 1); err != nil {
		t.Fatal(err)
	}
	// Put the old branch back by redoing its undo log.
	for _, n := range path {
		for _, c := range n.undo {
			if c.removed {
				f.live.remove(c.out)
			} else {
				f.live.add(c.out)
			}
		}
		f.head = n
		f.path = append(f.path, n)
	}
	if f.head != head {
		t.Fatal("not back at the head")
	}
	f.orphans = nil // nothing was left behind
	return side
}

// check compares the forge's live set, the oracle's set and the summary.
func check(t rapid.TB, f *Forge) {
	t.Helper()
	set, err := f.oracle.Set(f.head.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.oracle.Summary(f.head.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var acc sum128
	var lovelace uint64
	for i, o := range f.live.all {
		if set[o.Ref] != o || o.pos != i || f.live.at(o.Height)[o.hpos] != o {
			t.Fatalf("%v is out of place", o.Ref)
		}
		acc, lovelace = acc.add(o.term), lovelace+o.Lovelace
	}
	if len(set) != len(f.live.all) || s.Count != len(set) || s.Lovelace != lovelace || s.Accumulator != acc.bytes() {
		t.Fatalf("at %v the set has %d, the forge %d, the summary %d outputs, lovelace %d and %d",
			f.head.At(), len(set), len(f.live.all), s.Count, s.Lovelace, lovelace)
	}
}

// After any walk over the tree, the set moved step by step is the set made
// from genesis by applying the effects of the path.
func TestOracleAgainstReplay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f, err := New(Options{Seed: rapid.Uint64().Draw(r, "seed"), EpochBlocks: 3, K: 20, Lean: rapid.Bool().Draw(r, "lean")})
		if err != nil {
			r.Fatal(err)
		}
		var hashes []chain.Hash
		depth := 0
		r.Repeat(map[string]func(*rapid.T){
			"grow": func(r *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(r, "n") {
					b, err := f.Next()
					if err != nil {
						r.Fatal(err)
					}
					hashes = append(hashes, b.Point.Hash)
					depth++
				}
			},
			"rewind": func(r *rapid.T) {
				n := rapid.IntRange(0, 25).Draw(r, "n")
				err := f.Rewind(n)
				switch {
				case err != nil && !errors.Is(err, ErrTooDeep):
					r.Fatal(err)
				case !f.opts.Lean && (err == nil) != (n <= depth):
					r.Fatalf("rewind %d of %d: %v", n, depth, err)
				case f.opts.Lean && err == nil && n > min(depth, f.opts.K):
					r.Fatalf("a lean forge rewound %d of %d", n, depth)
				}
				if err == nil {
					depth -= n
				}
			},
			"ask": func(r *rapid.T) {
				if len(hashes) == 0 {
					return
				}
				h := rapid.SampledFrom(hashes).Draw(r, "block")
				set, err := f.oracle.Set(h)
				if errors.Is(err, ErrForgotten) && f.opts.Lean {
					return
				}
				if err != nil {
					r.Fatal(err)
				}
				if f.opts.Lean {
					return
				}
				want := map[chain.TxIn]*Output{}
				for _, o := range f.oracle.Genesis() {
					want[o.Ref] = o
				}
				links, err := f.oracle.Path(h)
				if err != nil {
					r.Fatal(err)
				}
				for _, l := range links {
					e, err := f.oracle.Effects(l.Point.Hash)
					if err != nil {
						r.Fatal(err)
					}
					for _, o := range e.Removed {
						delete(want, o.Ref)
					}
					for _, tx := range e.Txs {
						for _, o := range tx.Spent {
							if want[o.Ref] != o {
								r.Fatalf("%v spends what is not there: %v", l.Point, o.Ref)
							}
							delete(want, o.Ref)
						}
						for _, o := range tx.Created {
							want[o.Ref] = o
						}
					}
				}
				if len(set) != len(want) {
					r.Fatalf("%d outputs, want %d", len(set), len(want))
				}
				for k, o := range want {
					if set[k] != o {
						r.Fatalf("%v is missing", k)
					}
				}
			},
			"": func(r *rapid.T) { check(r, f) },
		})
	})
}

// The proofs of Byron blocks are computed as real ones are.
func TestByronProofs(t *testing.T) {
	dir := os.Getenv("OUROTAIL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	for _, name := range []string{"byron-main-golden", "byron-main-2tx", "byron-main-6tx", "byron-main-empty"} {
		text, err := os.ReadFile(filepath.Join(dir, "blocks", name+".hex"))
		if err != nil {
			t.Skipf("shared test data is not here (OUROTAIL_SHARED names its folder): %v", err)
		}
		raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		item := func(off int) (b []byte, next int) {
			end, err := wire.Skip(raw, off)
			if err != nil {
				t.Fatal(err)
			}
			return raw[off:end], end
		}
		// [tag, [header, [transactions, ...], ...]]; the header is [magic,
		// previous, [proof of the transactions, ...], ...].
		_, body := item(3)
		off := 4
		_, off = item(off)
		_, off = item(off)
		want, _ := item(off + 1)
		var txs, wits [][]byte
		for off = body + 2; raw[off] != wire.Break; {
			var tx, w []byte
			tx, off = item(off + 1)
			w, off = item(off)
			txs, wits = append(txs, tx), append(wits, w)
		}
		if got := byronProof(txs, wits); !bytes.Equal(got, want) {
			t.Errorf("%s: proof\n got %x\nwant %x", name, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{K: -1}, {EpochBlocks: -1}, {Eras: []EraSpan{}},
		{Eras: []EraSpan{{chain.Conway, 1}, {chain.Byron, 0}}},
		{Eras: []EraSpan{{chain.Byron, 0}, {chain.Conway, 0}}},
		{Eras: []EraSpan{{chain.Era(99), 0}}},
		{Shape: MainnetLike, Eras: []EraSpan{{chain.Byron, 1}, {chain.Conway, 0}}},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, s := range []Shape{Varied, MainnetLike} {
		if got, err := ParseShape(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if _, err := ParseShape("round"); err == nil {
		t.Error("a shape that is none was read")
	}
}

func TestNextAt(t *testing.T) {
	f := newForge(t, Options{Seed: 1, EpochBlocks: 5, SystemStart: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)})
	if got := f.SlotAt(time.Date(2026, 1, 2, 3, 5, 7, 0, time.UTC)); got != 62 {
		t.Errorf("slot %d, want 62", got)
	}
	if got := f.SlotAt(time.Time{}); got != 0 {
		t.Errorf("slot %d before the start", got)
	}
	// A far slot is reached era by era, epoch by epoch in Byron; every era and
	// boundary block on the way has its place.
	far := f.cal.start(40) + 7
	var eras []chain.Era
	boundaries := 0
	for range 40 {
		b, err := f.NextAt(far)
		if err != nil {
			t.Fatal(err)
		}
		if b.Boundary {
			boundaries++
		}
		if len(eras) == 0 || eras[len(eras)-1] != b.Era {
			eras = append(eras, b.Era)
		}
		if b.Point.Slot == far {
			break
		}
	}
	if f.Head().Point.Slot != far || len(eras) != 7 || boundaries != 2 {
		t.Errorf("at %v through %v with %d boundary blocks", f.Head(), eras, boundaries)
	}
	for i := range chain.Slot(3) {
		if b, err := f.NextAt(far); err != nil || b.Point.Slot != far+1+i {
			t.Errorf("%v, %v", b.Point, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, o := range []Options{{Seed: 1}, {Seed: 2, EpochBlocks: 10, K: 100}, {Shape: MainnetLike}} {
		n := 400
		if o.Shape == MainnetLike {
			n = 30
		}
		span, err := o.Span(n)
		if err != nil {
			t.Fatal(err)
		}
		f := newForge(t, o)
		grow(t, f, n)
		got := time.Duration(f.Head().Point.Slot) * time.Second
		if got < span*7/10 || got > span*14/10 {
			t.Errorf("%+v: %d blocks last %v, announced as %v", o, n, got, span)
		}
	}
}

// On a new branch most of the old one's transactions come again, with the
// same ids and outputs, in other blocks; and some of its blocks stand in a slot
// of the old one's.
func TestBranchesShareTransactions(t *testing.T) {
	for _, o := range []Options{{Seed: 2, EpochBlocks: 50}, {Seed: 2, Shape: MainnetLike, Lean: true}} {
		f := newForge(t, o)
		grow(t, f, 120)
		again, lost, moved, slots := 0, 0, 0, 0
		for i := range 60 {
			depth := 1 + i%6
			old := map[chain.TxID]*node{}
			at := map[chain.Slot]bool{}
			for n := range depth {
				b := f.path[len(f.path)-1-n]
				at[b.Point.Slot] = true
				for _, tx := range b.Txs {
					old[tx.ID] = b
				}
			}
			if err := f.Rewind(depth); err != nil {
				t.Fatal(err)
			}
			for range depth + 2 {
				b := grow(t, f, 1)[0]
				if at[b.Point.Slot] {
					slots++
				}
				for _, tx := range f.head.Txs {
					was := old[tx.ID]
					if was == nil {
						continue
					}
					delete(old, tx.ID)
					again++
					if was.Height != f.head.Height {
						moved++
					}
					for _, out := range tx.Created {
						if out.Height != b.Height || out.Slot != b.Point.Slot {
							t.Fatalf("%v is said to be made at height %d, and is at %d", out.Ref, out.Height, b.Height)
						}
					}
				}
			}
			lost += len(old)
			check(t, f)
		}
		t.Logf("%v: %d transactions came again, %d of them at another height, %d did not; %d blocks in a slot of the old branch",
			o.Shape, again, moved, lost, slots)
		if again < 100 || moved < 20 || lost < 20 || slots < 10 {
			t.Error("too few")
		}
	}
}
