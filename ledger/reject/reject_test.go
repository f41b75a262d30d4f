package reject_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger/reject"
)

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var someRef = []any{[]byte(strings.Repeat("\xab", 32)), 7}

// failures wraps failures as a node does.
func failures(era int, list ...any) []any { return []any{[]any{era, list}} }

func TestText(t *testing.T) {
	const ref = "abababababababababababababababababababababababababababababababab#7"
	set := cbor.Tag{Number: 258, Content: []any{someRef, someRef}}
	for _, c := range []struct {
		raw  any
		want string
	}{
		// Conway: LEDGER 1, UTXOW 0, UTXO.
		{failures(6, []any{1, []any{0, []any{1, set}}}), "BadInputsUTxO: " + ref + " " + ref},
		{failures(6, []any{1, []any{0, []any{5, 170_000, 200}}}, []any{1, []any{2, []any{[]byte{1}}}}),
			"FeeTooSmallUTxO: 170000, 200; MissingVKeyWitnessesUTXOW: [h'01']"},
		{failures(6, []any{7, "All inputs are spent. Transaction has probably already been included"}),
			"ConwayMempoolFailure: All inputs are spent. Transaction has probably already been included"},
		{failures(6, []any{1, []any{0, []any{4}}}), "InputSetEmptyUTxO"},
		{failures(6, []any{1, []any{0, []any{0, []any{0, true, 1}}}}), "ValidationTagMismatch: true, 1"},
		// Babbage: UTXOW 2 for its own UTXO, in which 1 is Alonzo's; UTXOW 1 for Alonzo's UTXOW, in which 0 is Shelley's.
		{failures(5, []any{0, []any{2, []any{1, []any{5, 1, 2}}}}), "ValueNotConservedUTxO: 1, 2"},
		{failures(5, []any{0, []any{1, []any{0, []any{1, []any{[]byte{2}}}}}}), "MissingVKeyWitnessesUTXOW: [h'02']"},
		{failures(4, []any{0, []any{0, []any{4, []any{0, []any{someRef}}}}}), "BadInputsUTxO: " + ref},
		{failures(2, []any{0, []any{4, []any{1, []any{nil, 5}, 9}}}), "OutsideValidityIntervalUTxO: [null, 5], 9"},
		{failures(1, []any{0, []any{4, []any{1, 5, 9}}}), "Expired: 5, 9"},
		// What nobody has a name for is shown as it came.
		{failures(6, []any{1, []any{0, []any{99, 5}}}), "UTXO 99: 5"},
		{failures(6, []any{41, []any{1}}), "LEDGER 41: [1]"},
		{failures(7, []any{1, []any{0, []any{1, set}}}), "LEDGER 1: [0, [1, 258([[h'" + strings.Repeat("ab", 32) + "', 7], [h'" + strings.Repeat("ab", 32) + "', 7]])]]"},
		{failures(6, "odd"), `LEDGER: "odd"`},
		{[]any{[]any{5, "Babbage"}, []any{6, "Conway"}}, "a transaction of babbage, while the ledger is in conway"},
		{"in words", "in words"},
		{[]any{1, 2, 3}, "[1, 2, 3]"},
	} {
		if got := reject.Text(encode(t, c.raw)); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.raw, got, c.want)
		}
	}
	if got := reject.Text([]byte{0x82, 1}); got != "8201" {
		t.Errorf("half a reason: %s", got)
	}
}

// TestRules: a failure says which rules led to it.
func TestRules(t *testing.T) {
	r, err := reject.Decode(encode(t, failures(6, []any{1, []any{0, []any{1, []any{someRef}}}})))
	if err != nil || r.Era != chain.Conway || r.WrongEra || len(r.Failures) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := strings.Join(r.Failures[0].Rules, " "); got != "LEDGER UTXOW UTXO" {
		t.Error(got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, failures(6, []any{1, []any{0, []any{1, []any{someRef}}}})))
	f.Add(encode(f, failures(5, []any{0, []any{2, []any{1, []any{5, 1, 2}}}})))
	f.Add(encode(f, []any{[]any{5, "Babbage"}, []any{6, "Conway"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := reject.Decode(b); err != nil && !errors.Is(err, reject.ErrMalformed) {
			t.Errorf("untyped: %v", err)
		}
		_ = reject.Text(b)
	})
}
