package immutabledb_test

import (
	"testing"

	"github.com/ourotail/ourotail/immutabledb"
)

func FuzzParseIndexes(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 56}, make([]byte, 56))
	f.Add([]byte{}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, primary, secondary []byte) {
		if p, err := immutabledb.ParsePrimary(primary); err == nil && p.Entries() < 0 {
			t.Error("fewer than no entries")
		}
		entries, _ := immutabledb.ParseSecondary(secondary)
		var again []byte
		for _, e := range entries {
			again = e.Append(again)
		}
		if string(again) != string(secondary[:len(again)]) {
			t.Error("entries do not append to what they were read from")
		}
	})
}
