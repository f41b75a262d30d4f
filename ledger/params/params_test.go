package params_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger/params"
)

var update = flag.Bool("update", false, "write the golden files")

func frac(n, d uint64) any { return cbor.Tag{Number: 30, Content: []uint64{n, d}} }

// shelley to conway are what a ledger answers, each list as its era writes it.
func answerOf(era chain.Era, flat bool) []any {
	list := []any{44, 155381, 90112, 16384, 1100, 2_000_000, 500_000_000, 18, 500, frac(3, 10), frac(3, 1000), frac(1, 5)}
	if era < chain.Babbage {
		list = append(list, frac(0, 1), []any{1, []byte{0xab, 0xcd}})
	}
	if flat {
		list = append(list, 9, 1)
	} else {
		list = append(list, []any{9, 1})
	}
	if era < chain.Alonzo {
		return append(list, 1_000_000, 170_000_000)
	}
	list = append(list, 170_000_000, 4310)
	list = append(list, map[uint64][]int64{0: {1, -2, math.MaxInt64}, 2: {}}, []any{frac(577, 10000), frac(721, 10_000_000)},
		[]any{14_000_000, 10_000_000_000}, []any{62_000_000, 20_000_000_000}, 5000, 150, 3)
	if era < chain.Conway {
		return list
	}
	half := frac(51, 100)
	list = append(list, []any{half, half, half, half, half},
		[]any{frac(67, 100), frac(67, 100), frac(3, 5), frac(3, 4), frac(3, 5), frac(67, 100), frac(67, 100), frac(67, 100), frac(3, 4), frac(67, 100)},
		7, 146, 6, 100_000_000_000, 500_000_000, 20, frac(15, 1))
	if era == chain.Dijkstra {
		list = append(list, 1_048_576, frac(6, 5))
	}
	return list
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGolden: every era's parameters in JSON, with all numbers exact; the same
// from both ways to write the version.
func TestGolden(t *testing.T) {
	for era := chain.Shelley; era <= chain.Dijkstra; era++ {
		p, err := params.Decode(era, encode(t, answerOf(era, false)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		file := "testdata/" + era.String() + ".json"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s", file, got)
		}
		if era >= chain.Conway {
			continue
		}
		old, err := params.Decode(era, encode(t, answerOf(era, true)))
		if err != nil {
			t.Fatal(err)
		}
		if b := encode(t, old.Further); len(b) != 1 {
			t.Errorf("%s: %x is left", era, b)
		}
		if b, err := json.MarshalIndent(old, "", "  "); err != nil || string(b)+"\n" != string(want) {
			t.Errorf("%s with a flat version: %s, %v", era, b, err)
		}
	}
}

// TestDecodeRefuses: a list of another length, a number that is none, a fraction
// over zero: nothing of it passes for parameters, and the error names which.
func TestDecodeRefuses(t *testing.T) {
	spoil := func(i int, v any) []byte {
		list := answerOf(chain.Conway, false)
		list[i] = v
		return encode(t, list)
	}
	for name, c := range map[string]struct {
		raw  []byte
		says string
	}{
		"nothing":         {nil, ""},
		"no list":         {[]byte{0xa0}, ""},
		"too few":         {encode(t, answerOf(chain.Conway, false)[:30]), "30 of them"},
		"too many":        {encode(t, append(answerOf(chain.Conway, false), 1)), "32 of them"},
		"null":            {spoil(0, nil), "txFeePerByte"},
		"negative":        {spoil(3, -1), "maxTxSize"},
		"a float":         {spoil(1, 1.5), "txFeeFixed"},
		"over zero":       {spoil(9, frac(1, 0)), "poolPledgeInfluence"},
		"no fraction":     {spoil(10, 7), "monetaryExpansion"},
		"of three":        {spoil(12, []any{9, 1, 1}), "protocolVersion"},
		"null in a pair":  {spoil(17, []any{1, nil}), "maxTxExecutionUnits"},
		"text for costs":  {spoil(15, map[uint64]string{0: "x"}), "costModels"},
		"a far language":  {spoil(15, map[uint64][]int64{1 << 40: {}}), "costModels"},
		"few thresholds":  {spoil(22, []any{}), "poolVotingThresholds"},
		"bytes behind it": {append(encode(t, answerOf(chain.Conway, false)), 0), ""},
	} {
		if p, err := params.Decode(chain.Conway, c.raw); !errors.Is(err, params.ErrMalformed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, era := range []chain.Era{0, chain.Byron, chain.Dijkstra + 1} {
		if _, err := params.Decode(era, encode(t, answerOf(chain.Conway, false))); !errors.Is(err, params.ErrEra) {
			t.Errorf("%s: %v", era, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for era := chain.Shelley; era <= chain.Dijkstra; era++ {
		f.Add(uint8(era), encode(f, answerOf(era, era < chain.Conway)))
	}
	f.Fuzz(func(t *testing.T, era uint8, raw []byte) {
		p, err := params.Decode(chain.Era(era), raw)
		if err != nil {
			if !errors.Is(err, params.ErrMalformed) && !errors.Is(err, params.ErrEra) {
				t.Errorf("untyped: %v", err)
			}
			return
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(err)
		}
	})
}
