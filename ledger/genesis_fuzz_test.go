package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzGenesisFiles: genesis files come from a node's operator. Whatever they hold
// is read or refused with ErrGenesis or ErrGenesisHash.
func FuzzGenesisFiles(f *testing.F) {
	f.Add([]byte(`{"avvmDistr":{"-0BJDi-gauylk4LptQTgjMeo7kY9lTCbZv12vwOSTZk=":"9999300000000"},"nonAvvmBalances":{},"startTime":0,"protocolConsts":{"k":10,"protocolMagic":42},"blockVersionData":{"slotDuration":"100"}}`),
		[]byte(`{"activeSlotsCoeff":0.5,"epochLength":100,"initialFunds":{},"networkId":"Testnet","networkMagic":42,"securityParam":10,"slotLength":0.1,"systemStart":"2024-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"protocolConsts":{"k":-1,"protocolMagic":1e99},"blockVersionData":{"slotDuration":"x"}}`), []byte(`{"slotLength":1e-300,"epochLength":-5,"initialFunds":{"zz":5}}`))
	f.Add([]byte(`{}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, byron, shelley []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"byron.json": byron, "shelley.json": shelley, "config.json": []byte(`{"ByronGenesisFile":"byron.json","ShelleyGenesisFile":"shelley.json"}`)} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g, err := LoadGenesis(filepath.Join(dir, "config.json"))
		if err != nil {
			if !errors.Is(err, ErrGenesis) && !errors.Is(err, ErrGenesisHash) {
				t.Fatalf("untyped: %v", err)
			}
			return
		}
		if g.K < 1 || g.ByronEpochSlots < 1 || g.AVVM > len(g.Outputs) {
			t.Fatalf("%+v", g)
		}
		for _, o := range g.Outputs {
			if _, err := DecodeOutput(o.Era, o.Raw); err != nil {
				t.Fatalf("output %s: %v", o.Ref, err)
			}
		}
		g.Time(1 << 40)
	})
}
