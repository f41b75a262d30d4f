package query

import (
	"errors"
	"strings"
	"testing"
)

func TestParseUTxO(t *testing.T) {
	addr := "addr_test1vz09v9yfxguvlp0zsnrpa3tdtm7el8xufp3m5lsm7qxzclgmzkket"
	hash, id := strings.Repeat("ab", 28), strings.Repeat("cd", 32)
	for _, text := range []string{
		"*", "*/*", addr, hash + "/*", "*/" + hash, hash + ".*", hash + ".00ff", hash + ".",
		"*@" + id, "3@" + id, "datum", "datum:" + id, "lovelace>=1000000", "address:00",
		"not " + addr, addr + " or */*", addr + " and datum", "(" + addr + " or datum) and not */*",
		hash + ".* and (datum or not (*/* and lovelace>=0))", "not not datum",
	} {
		q, err := ParseUTxO(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := q.String(); got != text {
			t.Errorf("%s came back as %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"  * ":                       "*",
		"lovelace >= 5":              "lovelace>=5",
		"lovelace>= 5 AND * ":        "lovelace>=5 and *",
		id + "#7":                    "7@" + id,
		hash + "/" + hash:            hash + "/* and */" + hash,
		"((datum))or(*/*)":           "datum or */*",
		strings.ToUpper(hash) + ".*": hash + ".*",
	} {
		q, err := ParseUTxO(text)
		if err != nil || q.String() != want {
			t.Errorf("%s: %v, %v", text, q, err)
		}
	}
}

func TestSyntaxErrorsPointAtThePlace(t *testing.T) {
	hash := strings.Repeat("ab", 28)
	for text, want := range map[string]string{
		"":                       "",
		"and":                    "and",
		"* and":                  "",
		"* or )":                 ")",
		"(* or datum":            "",
		"* *":                    "*",
		"datum:12":               "12",
		"lovelace>5":             ">5",
		"lovelace>=x":            "x",
		"* and (foo or *)":       "foo",
		hash:                     hash,
		"zz.*":                   "zz",
		hash + ".zz":             "zz",
		"x@" + hash:              "x",
		"1@" + hash:              hash,
		"{42}":                   "{42}",
		hash + "/" + "zz":        "zz",
		strings.Repeat("(", 300): "(",
	} {
		_, err := ParseUTxO(text)
		var e *SyntaxError
		if !errors.As(err, &e) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := e.Text[e.Start:e.End]; got != want {
			t.Errorf("%q: points at %q: %v\n%s", text, got, err, e.Picture())
		}
	}
}
