package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
)

// serveConway serves a chain that begins in Conway, and returns the flags that
// name it.
func serveConway(t *testing.T) (*devnode.Chain, []string) {
	t.Helper()
	c := devtest.Generate(t, forge.Options{Seed: 4, K: 30, EpochBlocks: 8, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}},
		SystemStart: time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)}, 20)
	return c, []string{"--socket-path", devtest.Start(t, devnode.Config{Chain: c}).Socket(), "--testnet-magic", fmt.Sprint(forge.DefaultMagic)}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSubmitCommand: a transaction in each of the forms that people have it in
// is submitted, seen by mempool, and in the next block; after that it is rejected
// with an exit code of its own and the ledger's words.
func TestSubmitCommand(t *testing.T) {
	c, node := serveConway(t)
	forms := map[string]func(tx []byte) string{
		"envelope": func(tx []byte) string {
			return fmt.Sprintf(`{"type": "Witnessed Tx ConwayEra", "description": "Ledger Cddl Format", "cborHex": "%x"}`, tx)
		},
		"hex":   func(tx []byte) string { return fmt.Sprintf("%x\n", tx) },
		"bytes": func(tx []byte) string { return string(tx) },
	}
	for name, form := range forms {
		tx, id, err := c.Compose(forge.Order{Pay: []forge.Payment{{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}}})
		if err != nil {
			t.Fatal(err)
		}
		file := write(t, "tx", form(tx))
		if got := must(t, append([]string{"submit", file}, node...)...); got != id.String()+"\n" {
			t.Errorf("%s: %q, want %s", name, got, id)
		}
		var pool mempoolFacts
		if err := json.Unmarshal([]byte(must(t, append([]string{"mempool", "--json"}, node...)...)), &pool); err != nil {
			t.Fatal(err)
		}
		if len(pool.Txs) != 1 || pool.Txs[0] != (pendingTx{ID: id, Era: "conway", Size: len(tx)}) || pool.Size != uint32(len(tx)) || len(pool.Measures) != 1 {
			t.Errorf("%s: %+v", name, pool)
		}
		if got := must(t, append([]string{"mempool"}, node...)...); !strings.Contains(got, id.String()) || !strings.Contains(got, "1 transaction, ") {
			t.Error(got)
		}
		if err := c.Extend(1); err != nil {
			t.Fatal(err)
		}
		_, errs, code := ourotailCmd(t.Context(), append([]string{"submit", file}, node...)...)
		if code != exitRejected || !strings.Contains(errs, "All inputs are spent") || !strings.Contains(errs, id.String()) {
			t.Errorf("%s again: exit code %d: %s", name, code, errs)
		}
		out, _, code := ourotailCmd(t.Context(), append([]string{"submit", "--json", file}, node...)...)
		var facts submitFacts
		if err := json.Unmarshal([]byte(out), &facts); err != nil || code != exitRejected || facts.Accepted || facts.ID != id ||
			len(facts.Failures) != 1 || facts.Failures[0].Name != "ConwayMempoolFailure" || facts.CBOR == "" {
			t.Errorf("%s again: %d %s %v", name, code, out, err)
		}
		_, errs, code = ourotailCmd(t.Context(), append([]string{"submit", "--era", "babbage", file}, node...)...)
		if code != exitRejected || !strings.Contains(errs, "while the ledger is in conway") {
			t.Errorf("%s as babbage: exit code %d: %s", name, code, errs)
		}
	}
}

// TestTxFiles: what a file can hold that is no transaction is said in words.
func TestTxFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"nothing":     {"", "not a transaction"},
		"words":       {"hello", "what cardano-cli writes"},
		"broken JSON": {`{"type": `, "no JSON"},
		"a key":       {`{"type": "PaymentSigningKeyShelley_ed25519", "cborHex": "5820"}`, "PaymentSigningKey"},
		"unsigned":    {`{"type": "Unwitnessed Tx ConwayEra", "cborHex": "84a0a0f5f6"}`, "sign it first"},
		"a body":      {`{"type": "TxBodyConway", "cborHex": "a0"}`, "sign it first"},
		"odd hex":     {`{"type": "Tx ConwayEra", "cborHex": "84a"}`, "cborHex"},
		"a block":     {"8207" + "85", "not a transaction"},
	} {
		if tx, _, err := parseTxFile([]byte(c.text)); !errors.Is(err, ledger.ErrNotATx) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %x %v", name, tx, err)
		}
	}
	for kind, want := range map[string]chain.Era{"Tx ConwayEra": chain.Conway, "Witnessed Tx BabbageEra": chain.Babbage, "TxSignedShelley": chain.Shelley, "Tx": 0} {
		if _, era, err := parseTxFile([]byte(`{"type": "` + kind + `", "cborHex": "84a0a0f5f6"}`)); err != nil || era != want {
			t.Errorf("%s: %s, %v", kind, era, err)
		}
	}
	s := serve(t, 5)
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"no file":      {[]string{"submit", "/none/there", "--socket-path", s.socket, "--testnet-magic", "42"}, exitBadInput},
		"no tx":        {[]string{"submit", write(t, "tx", "a0"), "--socket-path", "/none", "--testnet-magic", "42"}, exitBadInput},
		"no node":      {[]string{"submit", write(t, "tx", "84a0a0f5f6"), "--socket-path", "/none", "--testnet-magic", "42"}, exitNode},
		"wrong magic":  {[]string{"mempool", "--socket-path", s.socket, "--testnet-magic", "43"}, exitNode},
		"no network":   {[]string{"mempool", "--socket-path", s.socket}, exitUsage},
		"two networks": {[]string{"mempool", "--socket-path", s.socket, "--testnet-magic", "42", "--network", "preview"}, exitUsage},
		"no argument":  {[]string{"submit"}, exitUsage},
	} {
		t.Setenv("CARDANO_NODE_SOCKET_PATH", "")
		if _, errs, code := ourotailCmd(t.Context(), c.args...); code != c.code {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
}

// TestParamsCommand: for people a line for each, for programs cardano-cli's
// names, exact.
func TestParamsCommand(t *testing.T) {
	c, node := serveConway(t)
	out := must(t, append([]string{"params"}, node...)...)
	for _, want := range []string{"txFeePerByte  ", " 44\n", "executionUnitPrices.priceMemory", " 577/10000\n", "costModels.PlutusV3", "297 values", c.Tip().Point.String()} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var facts struct {
		Height int64
		CBOR   string
		Params struct {
			Era                 string
			UTxOCostPerByte     int
			ExecutionUnitPrices struct{ PriceMemory string }
			CostModels          map[string][]int64
		}
	}
	out = must(t, append([]string{"params", "--json"}, node...)...)
	if err := json.Unmarshal([]byte(out), &facts); err != nil {
		t.Fatal(err)
	}
	if p := facts.Params; facts.Height != int64(c.Tip().Height) || facts.CBOR != hex.EncodeToString(devnode.AppendParams(nil, chain.Conway, 21)) ||
		p.Era != "conway" || p.UTxOCostPerByte != 4310 || p.ExecutionUnitPrices.PriceMemory != "577/10000" || len(p.CostModels["PlutusV1"]) != 166 {
		t.Error(out)
	}
}

// TestTimeCommand: both ways, from the built-in genesis and from a node, which
// does not know what is beyond its horizon.
func TestTimeCommand(t *testing.T) {
	t.Setenv("CARDANO_NODE_SOCKET_PATH", "")
	const want = "slot   4492800\ntime   2020-07-29T21:44:51Z\nepoch  208, slot 0 of it\n"
	for _, text := range []string{"4492800", "2020-07-29T21:44:51Z", "2020-07-29T23:44:51.9+02:00", "4492800." + strings.Repeat("ab", 32)} {
		if got := must(t, "time", text, "--mainnet"); got != want {
			t.Errorf("%s:\n%s", text, got)
		}
	}
	if got := must(t, "time", "2022-11-01", "--network", "preview"); !strings.HasPrefix(got, "slot   604800\n") {
		t.Error(got)
	}
	c, node := serveConway(t)
	var f timeFacts
	if err := json.Unmarshal([]byte(must(t, append([]string{"time", c.Tip().Point.String(), "--json"}, node...)...)), &f); err != nil {
		t.Fatal(err)
	}
	if at := time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC).Add(time.Duration(c.Tip().Point.Slot) * time.Second); f.Slot != c.Tip().Point.Slot || !f.Time.Equal(at) || f.Source != "node" {
		t.Errorf("%+v, want %v", f, at)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"beyond the horizon": {append([]string{"time", "99999999999"}, node...), exitFailed, "horizon"},
		"too early":          {[]string{"time", "2017-01-01", "--mainnet"}, exitUsage, "2017-09-23"},
		"neither":            {[]string{"time", "yesterday", "--mainnet"}, exitUsage, "2024-05-06T07:08:09Z"},
		"below zero":         {[]string{"time", "-5", "--mainnet"}, exitUsage, "-5 is before the first slot"},
		"no such flag":       {[]string{"time", "5", "-x"}, exitUsage, "(see --help)"},
		"half a point":       {[]string{"time", "1.5", "--mainnet"}, exitUsage, "SLOT.HEADERHASH"},
		"no network":         {[]string{"time", "1"}, exitUsage, "--network"},
		"the end of time":    {[]string{"time", "18446744073709551615", "--mainnet"}, exitFailed, "calendar"},
	} {
		if _, errs, code := ourotailCmd(t.Context(), c.args...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
	if _, at, err := parseMoment("now", time.Unix(5, 0)); err != nil || at.Unix() != 5 {
		t.Error(at, err)
	}
}

// FuzzParseTxFile: whatever a file holds is a transaction or an error that says
// that it is none.
func FuzzParseTxFile(f *testing.F) {
	for _, s := range []string{"", "84a0a0f5f6", "\x84\xa0\xa0\xf5\xf6", `{"type": "Tx ConwayEra", "cborHex": "84a0a0f5f6"}`, `{"type": "Tx", "cborHex": 7}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, _, err := parseTxFile(b)
		if err != nil && !errors.Is(err, ledger.ErrNotATx) || err == nil && len(tx) == 0 {
			t.Errorf("%x %v", tx, err)
		}
	})
}

// TestParamsGenesis: the node's genesis is shown, compared with ours where there is one,
// and what differs is named and has an exit code.
func TestParamsGenesis(t *testing.T) {
	_, flags := serveTxs(t)
	flags = flags[:4]
	out := must(t, append([]string{"params", "--genesis", "--json"}, flags...)...)
	var facts genesisFacts
	if err := json.Unmarshal([]byte(out), &facts); err != nil || !facts.Compared || len(facts.Differences) != 0 || facts.SecurityParam != 30 ||
		facts.ActiveSlotsCoeff != "1/20" || facts.SlotLength != "1" || facts.NetworkID != "Testnet" || facts.CBOR == "" {
		t.Errorf("%s %v", out, err)
	}
	if out := must(t, append([]string{"params", "--genesis"}, flags...)...); !strings.Contains(out, "securityParam") {
		t.Error(out)
	}
	if out := must(t, "params", "--genesis", "--json", flags[0], flags[1], "--testnet-magic", "42"); !strings.Contains(out, `"compared":false`) {
		t.Error(out)
	}
	other := devtest.Generate(t, forge.Options{Seed: 4, K: 31, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 1)
	dir := t.TempDir()
	if err := other.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	_, errs, code := ourotailCmd(t.Context(), "params", "--genesis", flags[0], flags[1], "--config", filepath.Join(dir, "config.json"))
	if code != exitDiverged || !strings.Contains(errs, "the security parameter is 30 for the node, 31 for us") {
		t.Errorf("another genesis: exit code %d: %s", code, errs)
	}
}
