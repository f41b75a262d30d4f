package main

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/ourotail/ourotail"
)

// FuzzStatusReply: what stands behind a control socket may be another version, or
// anything. Its answer is shown or refused.
func FuzzStatusReply(f *testing.F) {
	f.Add([]byte(`{"network_magic":2,"head":"origin","height":-1,"tip":{"point":"origin","height":-1},"health":{"grade":"ok","lag_slots":-1}}`))
	f.Add([]byte(`{"lovelace":"x","utxo_count":-5,"index":{"done":1e300},"digest":{},"health":{"quiet_seconds":-1e9,"reasons":["\u0000"]}}`))
	f.Add([]byte(`{"health":null,"tip":null}`))
	f.Fuzz(func(t *testing.T, reply []byte) {
		var s ourotail.Status
		if json.Unmarshal(reply, &s) != nil {
			return
		}
		if err := printStatus(io.Discard, s); err != nil {
			t.Fatal(err)
		}
		if err := verdict("dir", s); err != nil && exitCode(err) == exitOK {
			t.Fatalf("%v ends with %d", err, exitOK)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
	})
}
