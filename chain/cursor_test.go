package chain

import (
	"errors"
	"testing"
)

func TestCursorText(t *testing.T) {
	p := Point{Slot: 7, Hash: Hash{0xab}}
	at := At{Point: p, Height: 3}
	for text, c := range map[string]Cursor{
		"origin":                         {At: Origin, Place: WholeBlock},
		p.String() + "@3":                {At: at, Place: WholeBlock},
		p.String() + "@3+0":              {At: at, Place: 0},
		p.String() + "@3+12~origin":      {At: at, Place: 12, Base: Origin, HasBase: true},
		p.String() + "@3~" + "?@2":       {At: at, Place: WholeBlock, Base: At{Height: 2}, HasBase: true},
		"?@0":                            {Place: WholeBlock},
		p.String() + "@3~" + at.String(): {At: at, Place: WholeBlock, Base: at, HasBase: true},
	} {
		if got := c.String(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
		if got, err := ParseCursor(text); err != nil || got != c {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "~", "7", p.String(), p.String() + "@x", p.String() + "@-1", p.String() + "@3+", p.String() + "@3+-1", p.String() + "@3~", "origin@4", "@3"} {
		if c, err := ParseCursor(bad); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %+v, %v", bad, c, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{"origin", "?@3+4~origin", "1.ab@2", "7." + Hash{1}.String() + "@3~?@0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCursor(s)
		if err != nil {
			return
		}
		if again, err := ParseCursor(c.String()); err != nil || again != c {
			t.Fatalf("%q: %+v, %+v, %v", s, c, again, err)
		}
	})
}

// A rollback is named after what it left as well: two to one point are two.
func TestEventIDs(t *testing.T) {
	at, from, other := At{Point{1, Hash{1}}, 1}, At{Point{2, Hash{2}}, 2}, At{Point{2, Hash{3}}, 2}
	u := &UTxO{Ref: TxIn{ID: TxID{9}, Index: 4}}
	tx := &AppliedTx{Index: 5}
	ids := map[string]string{}
	for name, id := range map[string]string{
		"created":         (&UTxOEvent{Kind: Created, At: at, UTxO: u, Place: 3}).ID(),
		"created later":   (&UTxOEvent{Kind: Created, At: at, UTxO: u, Place: 4}).ID(),
		"spent":           (&UTxOEvent{Kind: Spent, At: at, UTxO: u, Place: 3}).ID(),
		"seed":            (&UTxOEvent{Kind: Created, Because: Seed, At: at, UTxO: u}).ID(),
		"correction":      (&UTxOEvent{Kind: Created, Because: Correction, At: at, UTxO: u, Mark: &from}).ID(),
		"correction here": (&UTxOEvent{Kind: Created, Because: Correction, At: at, UTxO: u, Mark: &other}).ID(),
		"rolled back":     (&UTxOEvent{Kind: RolledBack, At: at, Mark: &from}).ID(),
		"rolled back too": (&UTxOEvent{Kind: RolledBack, At: at, Mark: &other}).ID(),
		"idle":            (&UTxOEvent{Kind: Idle, At: at}).ID(),
		"included":        (&TxEvent{Kind: Included, At: at, Tx: tx}).ID(),
		"applied":         (&BlockEvent{Kind: Applied, At: at}).ID(),
	} {
		if was, ok := ids[id]; ok {
			t.Errorf("%s and %s are both called %s", name, was, id)
		}
		ids[id] = name
	}
}
