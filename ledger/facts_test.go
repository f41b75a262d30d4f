package ledger

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ourotail/ourotail/chain"
)

// facts is what a file of reference blocks says.
type facts struct {
	Era    string
	Hash   string
	Prev   string
	Height int64
	Slot   uint64
	Size   int
	Txs    []txFacts
}

type txFacts struct {
	ID        string
	Valid     bool
	Spent     []string
	Reference []string
	Produced  []outFacts
}

type outFacts struct {
	Ref      string
	Address  string
	Lovelace uint64
	Assets   map[string]map[string]uint64
}

func factsOf(t *testing.T, b *Block) facts {
	t.Helper()
	f := facts{
		Era:    b.Era.String(),
		Hash:   b.Point.Hash.String(),
		Prev:   b.Parent.String(),
		Height: int64(b.Height),
		Slot:   uint64(b.Point.Slot),
		Size:   len(b.Raw),
		Txs:    []txFacts{},
	}
	if b.Boundary {
		f.Era += "-ebb"
	}
	for i := range b.Txs {
		tx := &b.Txs[i]
		tf := txFacts{
			ID:        tx.ID.String(),
			Valid:     tx.Valid,
			Spent:     texts(tx.Spends()),
			Reference: texts(tx.Reference),
			Produced:  []outFacts{},
		}
		slices.Sort(tf.Reference)
		first, outs := tx.Creates()
		for j, o := range outs {
			out, err := DecodeOutput(b.Era, b.Bytes(o.Span))
			if err != nil {
				t.Fatalf("output %d of %s: %v", j, tx.ID, err)
			}
			if out.Lovelace != o.Lovelace || string(out.Address) != string(b.Bytes(o.Address)) {
				t.Errorf("output %d of %s: decoded differs from walked", j, tx.ID)
			}
			of := outFacts{
				Ref:      chain.TxIn{ID: tx.ID, Index: first + uint32(j)}.String(),
				Address:  hex.EncodeToString(out.Address),
				Lovelace: out.Lovelace,
				Assets:   map[string]map[string]uint64{},
			}
			for _, a := range out.Assets {
				p := a.Policy.String()
				if of.Assets[p] == nil {
					of.Assets[p] = map[string]uint64{}
				}
				of.Assets[p][hex.EncodeToString(a.Name)] = a.Quantity
			}
			tf.Produced = append(tf.Produced, of)
		}
		f.Txs = append(f.Txs, tf)
	}
	return f
}

func sortRefs(t *testing.T, refs []string) {
	t.Helper()
	slices.SortFunc(refs, func(x, y string) int {
		a, errA := chain.ParseTxIn(x)
		b, errB := chain.ParseTxIn(y)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		return a.Compare(b)
	})
}

func texts(refs []chain.TxIn) []string {
	out := []string{}
	for _, r := range refs {
		out = append(out, r.String())
	}
	return out
}

func TestReferenceBlocks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedPath(t, "blocks"), "*.hex"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no blocks: %v", err)
	}
	var b Block // one for all: reuse must not leak from block to block
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".hex")
		t.Run(name, func(t *testing.T) {
			if err := b.Walk(readHex(t, file)); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(strings.TrimSuffix(file, ".hex") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want facts
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			for i := range want.Txs {
				slices.Sort(want.Txs[i].Reference)
				sortRefs(t, want.Txs[i].Spent) // the file has them as they stand
			}
			if diff := cmp.Diff(want, factsOf(t, &b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGouroborosBlocks walks the blocks that the gouroboros module carries for
// its own tests and compares header hash and slot with what it states.
func TestGouroborosBlocks(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/blinklabs-io/gouroboros").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal", "testdata")
	source, readErr := os.ReadFile(filepath.Join(dir, "blocks.go"))
	if err != nil || readErr != nil {
		t.Skipf("the source of the gouroboros module is not at hand: %v, %v", err, readErr)
	}
	stated := regexp.MustCompile(`// Slot: (\d+)\n// Hash: ([0-9a-f]{64})\n//\n//go:embed (\w+)_block\.hex`).FindAllStringSubmatch(string(source), -1)
	if len(stated) != 7 {
		t.Fatalf("found %d blocks with a hash, want 7", len(stated))
	}
	for _, s := range stated {
		t.Run(s[3], func(t *testing.T) {
			era, err := chain.ParseEra(s[3])
			if err != nil {
				t.Fatal(err)
			}
			var b Block
			if err := b.Walk(Wrap(era, false, readHex(t, filepath.Join(dir, s[3]+"_block.hex")))); err != nil {
				t.Fatal(err)
			}
			if got, want := b.Point.String(), s[1]+"."+s[2]; got != want {
				t.Errorf("point %s, want %s", got, want)
			}
		})
	}
	named, err := filepath.Glob(filepath.Join(dir, "..", "..", "protocol", "chainsync", "testdata", "*.hex"))
	if err != nil {
		t.Fatal(err)
	}
	walked := 0
	for _, file := range named { // bare blocks with their hash in the name
		name := strings.TrimSuffix(filepath.Base(file), ".hex")
		era, boundary := chain.Byron, strings.HasPrefix(name, "byron_ebb_")
		switch {
		case boundary, strings.HasPrefix(name, "byron_main_"):
		case strings.HasPrefix(name, "shelley_"):
			era = chain.Shelley
		default:
			continue
		}
		walked++
		t.Run(name[:len(name)-65], func(t *testing.T) {
			var b Block
			if err := b.Walk(Wrap(era, boundary, readHex(t, file))); err != nil {
				t.Fatal(err)
			}
			if got := b.Point.Hash.String(); !strings.HasSuffix(name, got) {
				t.Errorf("hash %s of %s", got, name)
			}
		})
	}
	if walked != 3 {
		t.Errorf("walked %d blocks with their hash in the name, want 3", walked)
	}
	t.Run("dijkstra", func(t *testing.T) {
		raw := readHex(t, filepath.Join(dir, "..", "..", "ledger", "dijkstra", "testdata", "musashi_dijkstra_block.hex"))
		var b Block
		if err := b.Walk(Wrap(chain.Dijkstra, false, raw)); err != nil {
			t.Fatal(err)
		}
		if b.Point.Slot != 566037 || b.Height != 28091 || len(b.Txs) != 0 {
			t.Errorf("got slot %d, height %d, %d transactions", b.Point.Slot, b.Height, len(b.Txs))
		}
	})
	t.Run("dijkstra transaction", func(t *testing.T) { // the ledger's own golden one, with a sub-transaction
		tx := readHex(t, filepath.Join(dir, "..", "..", "ledger", "dijkstra", "testdata", "cardano_ledger_dijkstra_w30_tx.hex"))
		b := mustWalk(t, made{era: chain.Dijkstra}.whole(arr(arr(tx), null, null)))
		if len(b.Txs) != 2 || !b.Txs[0].Sub || b.Txs[1].Sub {
			t.Fatalf("%d transactions", len(b.Txs))
		}
		for i := range b.Txs {
			x := b.Tx(i)
			if len(b.Txs[i].Inputs) != 1 || len(b.Txs[i].Outputs) != 11 || len(x.Mint) != 1 || len(x.Labels) != 5 || len(x.Scripts) != 6 {
				t.Errorf("%+v", x)
			}
		}
	})
}
