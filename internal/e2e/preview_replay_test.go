package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger/canon"
	"github.com/ourotail/ourotail/query"
)

// effect is a canonical line with the height of its block.
type effect struct {
	height chain.Height
	line   string
}

// TestPreviewReplay follows a real chain into an archive and reads its past, for
// several queries from several points: each time it is the filtered rest of the
// whole text, byte for byte.
func TestPreviewReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads the chain many times over")
	}
	n := previewNode(t)
	cfg := n.config(t, t.TempDir())
	cfg.Archive, cfg.ExitAtTip = true, true
	f := open(t, cfg)
	if err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	points := map[chain.Height]chain.At{}
	locked := map[string]string{} // addresses of scripts, and their hashes
	replay := func(q query.UTxO, o hub.Options) (out []effect) {
		sub, err := f.SubscribeUTxOs(t.Context(), q, o)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Cancel()
		for {
			if at, ok := sub.Cursor(); ok && at.Place == chain.WholeBlock && at.At == f.State().Head.At() {
				return out
			}
			ev, err := sub.Next(t.Context())
			points[ev.At.Height] = ev.At
			if err == nil && ev.UTxO != nil {
				// The upper four bits of a Shelley address say what it is: odd ones under 8
				// are paid to a script.
				if a := ev.UTxO.Out.Address; len(a) >= 29 && a[0] < 0x80 && a[0]&0x10 != 0 {
					locked[strings.Fields(string(canon.AppendUTxO(nil, ev.UTxO.Ref, &ev.UTxO.Out)))[1]] = hex.EncodeToString(a[1:29])
				}
			}
			switch {
			case err != nil:
				t.Fatal(err)
			case ev.Because != chain.Live, ev.Kind == chain.Idle:
			case ev.Kind == chain.Created:
				out = append(out, effect{ev.At.Height, string(canon.AppendCreated(nil, ev.UTxO.Ref, &ev.UTxO.Out))})
			case ev.Kind == chain.Spent:
				out = append(out, effect{ev.At.Height, string(canon.AppendSpent(nil, ev.UTxO.Ref, &ev.UTxO.Out, ev.Tx))})
			}
		}
	}
	idle := hub.Options{Idle: true, Start: hub.Origin}
	whole := replay(query.Everything(), idle)
	sum := sha256.New()
	for _, e := range whole {
		fmt.Fprintln(sum, e.line)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != "2a7fca07983039c6e1988994955692c4a1ae2165121993bb4148bc4f9c0f9842" {
		t.Fatalf("the whole text: %s", got)
	}
	address := strings.Fields(whole[len(whole)/2].line)[2]
	output := strings.Fields(whole[len(whole)/3].line)[1]
	tx, index, _ := strings.Cut(output, "#")
	policy := ""
	for _, e := range whole {
		if assets := strings.Fields(e.line)[4]; assets != "-" {
			policy, _, _ = strings.Cut(assets, ".")
			break
		}
	}
	froms := []chain.Height{1000, 20_000, 39_000, 40_000, 40_300}
	if os.Getenv("OUROTAIL_LONG") != "" { // every thousandth block, and the last k by twenties
		froms = nil
		for h := chain.Height(1000); h < 40_000; h += 1000 {
			froms = append(froms, h)
		}
		for h := chain.Height(38_200); h < 40_300; h += 20 {
			froms = append(froms, h)
		}
	}
	script := ""
	for _, e := range whole {
		if script = locked[strings.Fields(e.line)[2]]; script != "" {
			break
		}
	}
	if script == "" {
		t.Fatal("no script locks anything")
	}
	pairs := 0
	for text, wants := range map[string]func(fields []string) bool{
		"*":              func([]string) bool { return true },
		address:          func(s []string) bool { return s[2] == address },
		index + "@" + tx: func(s []string) bool { return s[1] == output },
		policy + ".*":    func(s []string) bool { return strings.Contains(","+s[4], ","+policy+".") },
		script + "/*":    func(s []string) bool { return locked[s[2]] == script },
		"not " + address: func(s []string) bool { return s[2] != address },
	} {
		q, err := query.ParseUTxO(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range froms {
			at := points[from]
			var want []effect
			for _, e := range whole {
				if e.height > from && wants(strings.Fields(e.line)) {
					want = append(want, e)
				}
			}
			o := hub.Options{Idle: true, Start: hub.After, After: chain.Cursor{At: at, Place: chain.WholeBlock}}
			if got := replay(q, o); !slices.Equal(got, want) {
				t.Errorf("%s from height %d: %d lines, want %d", text, from, len(got), len(want))
			}
			pairs++
		}
	}
	t.Logf("%d pairs of query and start", pairs)
}
