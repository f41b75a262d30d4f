package drill

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/devnode"
)

// Difference is an address whose balance a consumer got wrong.
type Difference struct {
	Address  string `json:"address"`
	Expected string `json:"expected"` // lovelace
	Got      string `json:"got"`
}

// parseAnswer reads the lines "ADDRESS LOVELACE" that a consumer printed. Empty
// lines count for nothing, balances of 0 are left out, an address that comes
// twice is an error.
func parseAnswer(text []byte) (map[string]int64, error) {
	sums := map[string]int64{}
	seen := map[string]bool{}
	for i, line := range bytes.Split(text, []byte{'\n'}) {
		words := strings.Fields(string(line))
		if len(words) == 0 {
			continue
		}
		var n int64
		var err error
		if len(words) == 2 {
			n, err = strconv.ParseInt(words[1], 10, 64)
		}
		if len(words) != 2 || err != nil {
			return nil, fmt.Errorf("line %d of its answer is %q, not an address and an amount of lovelace", i+1, shorten(string(line), 120))
		}
		if seen[words[0]] {
			return nil, fmt.Errorf("line %d of its answer repeats the address %s", i+1, words[0])
		}
		seen[words[0]] = true
		if n != 0 {
			sums[words[0]] = n
		}
	}
	return sums, nil
}

// truth returns the balances at the tip by the chain's own ledger, of the
// watched addresses, or of all if there are none.
func truth(c *devnode.Chain, watched [][]byte) (map[string]int64, error) {
	set, err := c.Oracle().Set(c.Tip().Point.Hash)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, a := range watched {
		want[string(a)] = true
	}
	sums := map[string]int64{}
	for _, o := range set {
		if (len(want) == 0 || want[string(o.Address)]) && o.Lovelace > 0 {
			sums[address.Text(o.Address)] += int64(o.Lovelace)
		}
	}
	return sums, nil
}

// compare returns the first address, in the order of their texts, on which an
// answer differs, and how many do.
func compare(want, got map[string]int64) (first *Difference, n int) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, a := range slices.Sorted(maps.Keys(all)) {
		if want[a] == got[a] {
			continue
		}
		if n++; first == nil {
			first = &Difference{a, strconv.FormatInt(want[a], 10), strconv.FormatInt(got[a], 10)}
		}
	}
	return first, n
}

// around tells the story of an address: of the outputs that are wrong if it is
// known which, of the one whose amount is the difference if there is one, of all
// otherwise.
func around(events []event, d *Difference, wrong map[string]bool) []string {
	want, _ := strconv.ParseInt(d.Expected, 10, 64)
	got, _ := strconv.ParseInt(d.Got, 10, 64)
	gap := max(want, got) - min(want, got)
	if len(wrong) == 0 {
		wrong = map[string]bool{}
		for i := range events {
			if e := &events[i]; !e.undo && e.address == d.Address && e.lovelace == gap {
				wrong[e.ref] = true
			}
		}
	}
	var out []string
	var slots []int64 // of the lines shown, and not undone
	for i := range events {
		e := &events[i]
		switch {
		case e.undo:
			n := len(slots)
			for n > 0 && slots[n-1] > e.slot {
				n--
			}
			if n < len(slots) { // it undoes something shown
				slots = slots[:n]
				out = append(out, "undo     everything above "+brief(e.point))
			}
		case e.address == d.Address && (len(wrong) == 0 || wrong[e.ref]):
			out = append(out, e.String())
			slots = append(slots, e.slot)
		}
	}
	const most = 8
	if n := len(out) - most; n > 0 {
		out = append([]string{fmt.Sprintf("(%d earlier lines left out)", n)}, out[n:]...)
	}
	return out
}

// String is a line in the report.
func (e *event) String() string {
	what := "created"
	if e.spent {
		what = "spent"
	}
	s := fmt.Sprintf("%-8s %s with %d lovelace in %s", what, e.ref, e.lovelace, brief(e.point))
	if e.seed {
		s += " (genesis)"
	}
	if e.invalid {
		s += " (scripts failed)"
	}
	return s
}

// brief shortens the hash of a point.
func brief(point string) string {
	if slot, hash, ok := strings.Cut(point, "."); ok && len(hash) > 12 {
		return slot + "." + hash[:12] + "…"
	}
	return point
}

func shorten(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// busiest returns the n addresses among those that come up again and again whose
// outputs the chain made and spent most; what failed scripts did counts more.
func busiest(c *devnode.Chain, n int) ([][]byte, error) {
	path, err := c.Oracle().Path(c.Tip().Point.Hash)
	if err != nil {
		return nil, err
	}
	score := map[string]int{}
	for _, l := range path {
		e, err := c.Oracle().Effects(l.Point.Hash)
		if err != nil {
			return nil, err
		}
		for _, tx := range e.Txs {
			worth := 1
			if !tx.Valid {
				worth = 20
			}
			for _, o := range tx.Created {
				score[string(o.Address)] += worth
			}
			for _, o := range tx.Spent {
				score[string(o.Address)] += worth
			}
		}
	}
	wallet := c.Wallet()
	slices.SortStableFunc(wallet, func(a, b []byte) int { return score[string(b)] - score[string(a)] })
	return wallet[:min(n, len(wallet))], nil
}
