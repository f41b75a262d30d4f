package ourotail_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// ended returns a follower whose following has ended at the tip of a chain of so many
// blocks, as ExitAtTip asks.
func ended(t *testing.T, archive bool, blocks int) (served, *ourotail.Follower) {
	t.Helper()
	s := serve(t, forge.Options{Seed: 3, K: 30, Eras: []forge.EraSpan{{Era: chain.Conway}}}, blocks)
	s.cfg.ExitAtTip, s.cfg.Archive = true, archive
	f, err := ourotail.Open(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for _, err := range f.UTxOs(t.Context(), query.Everything(), ourotail.FromTip()) {
		t.Fatalf("an event behind the tip, or %v", err)
	}
	return s, f
}

// all reads a loop to its end, which must be a clean one.
func all(t *testing.T, f *ourotail.Follower, opts ...ourotail.UTxOOption) (events []ourotail.UTxOEvent) {
	t.Helper()
	for ev, err := range f.UTxOs(t.Context(), query.Everything(), opts...) {
		if err != nil {
			t.Fatalf("after %d events: %v", len(events), err)
		}
		events = append(events, ev)
	}
	return events
}

func ids(events []ourotail.UTxOEvent) (ids []string) {
	for i := range events {
		ids = append(ids, events[i].ID())
	}
	return ids
}

// Who comes when following has ended at the tip gets what there is, and ends; so does
// who is behind.
func TestWhatIsLeftIsGivenAfterTheEnd(t *testing.T) {
	for _, archive := range []bool{false, true} {
		blocks := 20 // of which a pruned directory keeps all
		if archive {
			blocks = 100
		}
		for _, extra := range [][]ourotail.UTxOOption{nil, {ourotail.AutoResume()}, {ourotail.AutoResume(), ourotail.Buffer(1)}, {ourotail.Confirmations(3)}} {
			t.Run(fmt.Sprint("archive ", archive, " with ", len(extra)), func(t *testing.T) {
				_, f := ended(t, archive, blocks)
				with := func(o ourotail.UTxOOption) []ourotail.UTxOOption { return append([]ourotail.UTxOOption{o}, extra...) }
				events := all(t, f, with(ourotail.FromOrigin())...)
				if len(events) < blocks {
					t.Fatalf("%d events", len(events))
				}
				want := ids(events)
				first := slices.IndexFunc(events, func(e ourotail.UTxOEvent) bool { return e.Cursor() != "" })
				for _, from := range []int{first, len(events) / 2, len(events) - 2, len(events) - 1} {
					rest := ids(all(t, f, with(ourotail.Resume(events[from].Cursor()))...))
					if !slices.Equal(rest, want[from+1:]) {
						t.Errorf("behind event %d of %d: %d more", from, len(want), len(rest))
					}
				}
			})
		}
	}
}

// Existing gives the outputs before and after the end, whichever comes first: its own
// beginning or the end.
func TestExistingMeetsTheEnd(t *testing.T) {
	s, f := ended(t, false, 60)
	for _, extra := range [][]ourotail.UTxOOption{nil, {ourotail.AutoResume()}, {ourotail.Confirmations(5)}} {
		opts := append([]ourotail.UTxOOption{ourotail.Existing()}, extra...)
		want := len(all(t, f, opts...))
		if there := int(f.State().UTxOs); extra == nil && want != there || want == 0 {
			t.Errorf("%d outputs after the end, there are %d", want, there)
		}
		for range 3 { // a race
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			var err error
			if f, err = ourotail.Open(t.Context(), s.cfg); err != nil {
				t.Fatal(err)
			}
			if got := len(all(t, f, opts...)); got != want {
				t.Errorf("%d outputs, want %d", got, want)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// What would need following to go on is refused by name.
func TestWhatNeedsMoreIsRefusedAfterTheEnd(t *testing.T) {
	_, f := ended(t, false, 20)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ourotail.ErrEnded) || errors.Is(err, ourotail.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, err := range f.UTxOs(t.Context(), query.Everything()) {
		refused("from the tip", err)
	}
	for _, err := range f.Tips(t.Context()) {
		refused("tips", err)
	}
	for _, err := range f.WatchTx(t.Context(), chain.TxID{}, 0) {
		refused("a watch", err)
	}
	_, err := f.SubscribeBlocks(query.EveryBlock(), hub.Options{Bound: 10})
	refused("a subscription", err)
}

// Run after a loop has followed to the tip takes no block that it could not publish.
func TestRunIsRefusedAfterTheEnd(t *testing.T) {
	s, f := ended(t, false, 20)
	before := f.State().Head
	if err := s.chain.Extend(3); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); !errors.Is(err, ourotail.ErrEnded) {
		t.Errorf("Run: %v", err)
	}
	if err := f.CatchUp(t.Context(), before.Height+1); !errors.Is(err, ourotail.ErrEnded) {
		t.Errorf("CatchUp: %v", err)
	}
	if now := f.State().Head; now != before {
		t.Errorf("it went from %v to %v", before.At(), now.At())
	}
}

// Who is closed before the end is given is told so.
func TestCloseBeforeTheRestIsGiven(t *testing.T) {
	_, f := ended(t, true, 100)
	got, last := 0, error(nil)
	for _, err := range f.UTxOs(t.Context(), query.Everything(), ourotail.FromOrigin(), ourotail.AutoResume(), ourotail.Buffer(1)) {
		if last = err; err == nil {
			if got++; got == 10 {
				f.Close()
			}
		}
	}
	if !errors.Is(last, ourotail.ErrClosed) {
		t.Errorf("after %d events: %v", got, last)
	}
}
