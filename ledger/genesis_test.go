package ledger

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// TestBuiltinGenesis compares what is built in with what the files of a node
// give.
func TestBuiltinGenesis(t *testing.T) {
	for _, name := range []string{"preview", "preprod", "mainnet"} {
		t.Run(name, func(t *testing.T) {
			got, err := Network(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := LoadGenesis(sharedPath(t, "genesis", name, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			if name == "mainnet" {
				if !errors.Is(got.Complete(), ErrNeedGenesis) {
					t.Errorf("built-in mainnet is complete: %v", got.Complete())
				}
				var total uint64
				for _, o := range want.Outputs {
					total += o.Lovelace
				}
				if want.AVVM != 14505 || len(want.Outputs) != 14505 || total != 31112484745000000 {
					t.Errorf("mainnet: %d vouchers, %d outputs, %d lovelace", want.AVVM, len(want.Outputs), total)
				}
				want.Outputs, want.AVVM = nil, 0
			} else if got.Complete() != nil || len(got.Outputs) != 8 {
				t.Errorf("%d outputs, %v", len(got.Outputs), got.Complete())
			}
			if want.Complete() != nil {
				t.Error("from files, and yet not complete")
			}
			if diff := gocmp.Diff(want, got, cmpopts.IgnoreUnexported(Genesis{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Network("sanchonet"); !errors.Is(err, ErrUnknownNetwork) {
		t.Errorf("got %v", err)
	}
}

// TestVoucherAddress checks the addresses of the AVVM distribution: every one
// decodes, no two are the same, and the richest is the well-known one.
func TestVoucherAddress(t *testing.T) {
	g, err := LoadGenesis(sharedPath(t, "genesis", "mainnet", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[chain.TxIn]bool{}
	for _, o := range g.Outputs {
		out, err := DecodeOutput(o.Era, o.Raw)
		if err != nil {
			t.Fatal(err)
		}
		back, err := address.Parse(address.Text(out.Address))
		if err != nil || string(back) != string(out.Address) {
			t.Fatalf("%x: %v", out.Address, err)
		}
		known[o.Ref] = true
	}
	richest := slices.MaxFunc(g.Outputs, func(x, y chain.Output) int { return cmp.Compare(x.Lovelace, y.Lovelace) })
	if got, want := richest.Ref.String(), "0ae3da29711600e94a33fb7441d2e76876a9a1e98b5ebdefbf2e3bc535617616#0"; got != want || richest.Lovelace != 2463071701000000 {
		t.Errorf("richest voucher: %s with %d, want %s", got, richest.Lovelace, want)
	}
	if len(known) != len(g.Outputs) {
		t.Errorf("%d different references of %d outputs", len(known), len(g.Outputs))
	}
}

func TestGenesisTime(t *testing.T) {
	g, err := Network("mainnet")
	if err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[chain.Slot]string{
		0:       "2017-09-23T21:44:51Z",
		4492800: "2020-07-29T21:44:51Z", // first slot of Shelley
		4924800: "2020-08-03T21:44:51Z", // an epoch of five days later
	} {
		got, ok := g.Time(slot)
		if !ok || got.Format(time.RFC3339) != want {
			t.Errorf("slot %d: %s %v, want %s", slot, got.Format(time.RFC3339), ok, want)
		}
	}
}

func TestGenesisErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	byron := `{"avvmDistr":{},"nonAvvmBalances":{},"startTime":0,"protocolConsts":{"k":10,"protocolMagic":42},"blockVersionData":{"slotDuration":"100"}}`
	shelley := `{"activeSlotsCoeff":0.5,"epochLength":100,"initialFunds":{},"networkId":"Testnet","networkMagic":42,"securityParam":10,"slotLength":0.1,"systemStart":"2024-01-01T00:00:00Z"}`
	write("byron.json", byron)
	write("other.json", `{"protocolConsts":{"k":10,"protocolMagic":41}}`)
	write("shelley.json", shelley)
	write("funds.json", `{"activeSlotsCoeff":0.5,"epochLength":100,"initialFunds":{"60`+
		`00000000000000000000000000000000000000000000000000000000":5},"networkId":"Testnet","networkMagic":42,"securityParam":10,"slotLength":0.1,"systemStart":"2024-01-01T00:00:00Z"}`)
	for _, test := range []struct {
		name, config string
		want         error
	}{
		{"no JSON", `x`, ErrGenesis},
		{"no Byron file named", `{}`, ErrGenesis},
		{"no such file", `{"ByronGenesisFile":"missing.json"}`, ErrGenesis},
		{"wrong hash", `{"ByronGenesisFile":"byron.json","ByronGenesisHash":"00"}`, ErrGenesisHash},
		{"two networks", `{"ByronGenesisFile":"other.json","ShelleyGenesisFile":"shelley.json"}`, ErrGenesis},
		{"good", `{"ByronGenesisFile":"byron.json","ShelleyGenesisFile":"shelley.json"}`, nil},
	} {
		write("config.json", test.config)
		g, err := LoadGenesis(filepath.Join(dir, "config.json"))
		if !errors.Is(err, test.want) || test.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if err == nil && (g.Magic != 42 || g.K != 10 || g.ByronEpochSlots != 100 || g.ShelleySlot != 100*time.Millisecond || g.FirstHeight != 1 || g.ShelleyEpoch != -1) {
			t.Errorf("%s: %+v", test.name, g)
		}
	}

	// Initial funds exist only where the chain begins in Shelley or later.
	write("config.json", `{"ByronGenesisFile":"byron.json","ShelleyGenesisFile":"funds.json"}`)
	if g, err := LoadGenesis(filepath.Join(dir, "config.json")); err != nil || len(g.Outputs) != 0 {
		t.Errorf("began in Byron: %v, %v", g, err)
	}
	write("config.json", `{"ByronGenesisFile":"byron.json","ShelleyGenesisFile":"funds.json","TestShelleyHardForkAtEpoch":0}`)
	g, err := LoadGenesis(filepath.Join(dir, "config.json"))
	if err != nil || len(g.Outputs) != 1 || g.FirstHeight != 0 {
		t.Fatalf("began in Shelley: %v, %v", g, err)
	}
	if out, err := DecodeOutput(g.Outputs[0].Era, g.Outputs[0].Raw); err != nil || out.Lovelace != 5 || address.KindOf(out.Address) != address.Enterprise {
		t.Errorf("initial funds: %+v, %v", out, err)
	}
}
