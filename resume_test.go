package ourotail_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/query"
)

// slow folds a loop's events and checks that none comes twice.
type slow struct {
	t    *testing.T
	live map[string]*ourotail.UTxOEvent // events that no fork has undone, by id
}

func (s *slow) take(ev ourotail.UTxOEvent) {
	s.t.Helper()
	switch ev.Kind {
	case chain.RolledBack:
		for id, e := range s.live {
			if e.At.Height > ev.At.Height {
				delete(s.live, id)
			}
		}
	case chain.Created, chain.Spent:
		if s.live[ev.ID()] != nil {
			s.t.Errorf("%s comes twice", ev.ID())
		}
		s.live[ev.ID()] = &ev
	}
}

// set is what the events come to.
func (s *slow) set() map[chain.TxIn]bool {
	set := map[chain.TxIn]bool{}
	for _, e := range s.live {
		if e.Kind == chain.Created {
			set[e.UTxO.Ref] = true
		}
	}
	for _, e := range s.live {
		if e.Kind == chain.Spent {
			if !set[e.UTxO.Ref] {
				s.t.Errorf("%v was spent, but never created", e.UTxO.Ref)
			}
			delete(set, e.UTxO.Ref)
		}
	}
	return set
}

// holds checks that the events come to what is unspent in a view.
func (s *slow) holds(v *ourotail.View) {
	s.t.Helper()
	set := s.set()
	if err := v.UTxOs(s.t.Context(), query.Everything(), func(u *chain.UTxO) error {
		if !set[u.Ref] {
			s.t.Errorf("%v is missing", u.Ref)
		}
		delete(set, u.Ref)
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	for ref := range set {
		s.t.Errorf("%v is not there", ref)
	}
}

// A reader that takes an event while the chain grows by many, and forks, ends with
// the set at the tip: its loop overflows again and again and never tells.
func TestASlowReaderWithAutoResumeMissesNothing(t *testing.T) {
	for name, opts := range map[string][]ourotail.UTxOOption{
		"from origin":   {ourotail.FromOrigin()},
		"from the tip":  {ourotail.Existing()},
		"behind a gate": {ourotail.Existing(), ourotail.Confirmations(3), ourotail.Idle()},
	} {
		t.Run(name, func(t *testing.T) {
			const k, grows = 60, 40 // it grows after so many events
			c, f := varied(t, forge.Options{Seed: 6, K: k, EpochBlocks: 8}, 30)
			rnd := rand.New(rand.NewPCG(1, 2))
			s := &slow{t: t, live: map[string]*ourotail.UTxOEvent{}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			deep := chain.Height(0)
			if name == "behind a gate" {
				deep = 3
			}
			n, growths := 0, 40
			for ev, err := range f.UTxOs(ctx, query.Everything(), append(opts, ourotail.AutoResume(), ourotail.Buffer(5), ourotail.Idle())...) {
				if err != nil {
					t.Fatal(err)
				}
				s.take(ev)
				n++
				tip := ev.LastOfBlock && ev.At.Height == c.Tip().Height-deep
				if tip && growths == 0 {
					break
				}
				if growths > 0 && (tip || n%grows == 0) {
					growths--
					grow(t, c, rnd)
					follows(t, f, c)
				}
			}
			v, err := f.ViewAt(t.Context(), c.At(c.Len()-1-int(deep)).Point)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			s.holds(v)
		})
	}
}

// grow adds a block or two, or forks.
func grow(t *testing.T, c *devnode.Chain, rnd *rand.Rand) {
	t.Helper()
	err := c.Extend(1 + rnd.IntN(2))
	if err == nil && rnd.IntN(3) == 0 {
		depth := 1 + rnd.IntN(8)
		err = c.Fork(depth, depth+1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What existed at origin has no cursor before its end. A loop that overflows among it
// begins there again, and its reader has none of it twice.
func TestGenesisOutputsComeOnceWhateverOverflows(t *testing.T) {
	s := serve(t, forge.Options{Seed: 6, K: 60, EpochBlocks: 8}, 30)
	f, err := ourotail.Open(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fold := &slow{t: t, live: map[string]*ourotail.UTxOEvent{}}
	seeds := 0
	for ev, err := range f.UTxOs(t.Context(), query.Everything(), ourotail.FromOrigin(), ourotail.AutoResume(), ourotail.Buffer(1)) {
		if err != nil {
			t.Fatal(err)
		}
		fold.take(ev)
		if ev.Because == chain.Seed {
			if seeds++; seeds > len(s.cfg.Genesis.Outputs) {
				t.Fatalf("%d genesis outputs of %d", seeds, len(s.cfg.Genesis.Outputs))
			}
		}
		if seeds == 1 && ev.Because == chain.Seed { // the buffer overflows now
			follows(t, f, s.chain)
		}
		if ev.LastOfBlock && ev.At.Height == s.chain.Tip().Height {
			break
		}
	}
	if seeds < 2 || seeds != len(s.cfg.Genesis.Outputs) {
		t.Errorf("%d genesis outputs came, there are %d", seeds, len(s.cfg.Genesis.Outputs))
	}
}
