package ourotail_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// A reader that is slower than its buffer is told how many events it lost, and the
// cursor in its error is all it needs: loop after loop, it ends with the set at the tip
// and has nothing twice.
func TestAnOverflowSaysWhereToGoOn(t *testing.T) {
	c, f := varied(t, forge.Options{Seed: 6, K: 600, EpochBlocks: 8}, 30)
	rnd := rand.New(rand.NewPCG(3, 4))
	s := &slow{t: t, live: map[string]*ourotail.UTxOEvent{}}
	where, overflows, growths, n := ourotail.Existing(), 0, 12, 0
	for done := false; !done; {
		for ev, err := range f.UTxOs(t.Context(), query.Everything(), where, ourotail.Buffer(25)) {
			var over *ourotail.OverflowError
			if errors.As(err, &over) {
				if inner := (*hub.OverflowError)(nil); over.Cursor == "" || over.Lost == 0 || !errors.As(err, &inner) {
					t.Fatalf("%+v: %v", over, err)
				}
				where = ourotail.UTxOOption(ourotail.Resume(over.Cursor))
				overflows++
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			s.take(ev)
			tip := ev.LastOfBlock && ev.At.Height == c.Tip().Height
			if done = tip && growths == 0; done {
				break
			}
			if n++; growths > 0 && ev.Cursor() != "" && (tip || n%40 == 0 || overflows == 0) { // what existed is read
				growths--
				grow(t, c, rnd)
				if err := c.Extend(20); err != nil {
					t.Fatal(err)
				}
				follows(t, f, c)
			}
		}
	}
	if overflows == 0 {
		t.Error("the reader was never too slow")
	}
	if err := (&ourotail.OverflowError{Lost: 3}); !strings.Contains(err.Error(), "begin anew") {
		t.Errorf("without a cursor it says %v", err)
	}
	v := f.View()
	defer v.Close()
	s.holds(v)
}
