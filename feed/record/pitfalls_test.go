package record

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// TestAmountsAreText: a reader whose numbers have 53 bits loses nothing, of
// lovelace or of any asset.
func TestAmountsAreText(t *testing.T) {
	assets := []chain.Asset{{Policy: chain.Hash28{1}, Quantity: 1<<53 + 1}, {Policy: chain.Hash28{1}, Name: []byte("a\x00\xff"), Quantity: math.MaxUint64}, {Policy: chain.Hash28{2}, Name: []byte("b"), Quantity: 1}}
	b, err := json.Marshal(MatchOf(&chain.UTxO{Out: chain.TxOut{Lovelace: math.MaxUint64, Assets: assets}}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Value struct {
			Coins  any            `json:"coins"`
			Assets map[string]any `json:"assets"`
		} `json:"value"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Value.Coins != "18446744073709551615" {
		t.Errorf("%v lovelace", got.Value.Coins)
	}
	for name, want := range map[string]string{
		"01" + strings.Repeat("00", 27):             "9007199254740993",
		"01" + strings.Repeat("00", 27) + ".6100ff": "18446744073709551615",
		"02" + strings.Repeat("00", 27) + ".62":     "1",
	} {
		if got.Value.Assets[name] != want {
			t.Errorf("%v of %s, want %s", got.Value.Assets[name], name, want)
		}
	}
	if len(got.Value.Assets) != len(assets) {
		t.Errorf("%v", got.Value.Assets)
	}
}
