package chain

import (
	"fmt"
	"strings"
)

// Era is a ledger era. Its number is the tag of a main block in storage and
// node-to-client form, [tag, block] (consensus blockfetch CDDL); boundary
// blocks carry tag 0 and belong to Byron.
type Era uint8

// The eras in their order.
const (
	Byron    Era = 1
	Shelley  Era = 2
	Allegra  Era = 3
	Mary     Era = 4
	Alonzo   Era = 5
	Babbage  Era = 6
	Conway   Era = 7
	Dijkstra Era = 8
)

var eraNames = [...]string{"", "byron", "shelley", "allegra", "mary", "alonzo", "babbage", "conway", "dijkstra"}

// String returns the era's name in lower case.
func (e Era) String() string {
	if e >= Byron && int(e) < len(eraNames) {
		return eraNames[e]
	}
	return fmt.Sprintf("era(%d)", uint8(e))
}

// MarshalText implements encoding.TextMarshaler with the form of String.
func (e Era) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// ParseEra reads an era's name in any case.
func ParseEra(s string) (Era, error) {
	for e := Byron; int(e) < len(eraNames); e++ {
		if strings.EqualFold(s, eraNames[e]) {
			return e, nil
		}
	}
	return 0, fmt.Errorf("no era is called %q (want one of %s)", s, strings.Join(eraNames[1:], ", "))
}
