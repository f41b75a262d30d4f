package ourotail_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
)

// past is a follower of a chain of one era, an archive or not.
func past(t *testing.T, k int, archive bool) (served, *ourotail.Follower) {
	t.Helper()
	s := serve(t, forge.Options{Seed: 9, K: k, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 12)
	s.cfg.Archive = archive
	f, err := ourotail.Open(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	follows(t, f, s.chain)
	return s, f
}

// attempt includes a transaction of so many outputs, the return of collateral of one
// whose scripts fail not counted.
func attempt(t *testing.T, c *devnode.Chain, outputs int, fails bool) chain.TxID {
	t.Helper()
	o := forge.Order{Fails: fails, Pay: make([]forge.Payment, outputs)}
	for i := range o.Pay {
		o.Pay[i] = forge.Payment{Address: payee, Lovelace: 3_000_000}
	}
	if fails {
		raw, id := payment(t, c)
		include(t, c, raw)
		o.Spend = []chain.TxIn{{ID: id}}
		o.Pay = append(o.Pay, forge.Payment{Address: payee, Lovelace: 2_000_000})
	} else {
		o.Pay = o.Pay[1:] // the change is one
	}
	ids, err := c.Include(o)
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// story is what a watch tells, with what it says of the scripts.
func story(t *testing.T, f *ourotail.Follower, id chain.TxID, each func(ourotail.WatchEvent)) (got []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ev, err := range f.WatchTx(ctx, id, 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v", ev.Kind, ev.Valid))
		if ev.Tx != nil && ev.Tx.Valid != ev.Valid {
			t.Errorf("%s of one that is valid: %v, says valid: %v", ev.Kind, ev.Tx.Valid, ev.Valid)
		}
		if each != nil {
			each(ev)
		}
	}
	return got
}

// TestAFailedTransactionIsNeverConfirmed: one whose scripts failed is told as Failed
// from its first block to long after, in a pruned directory and in an archive, whether
// its collateral return is unspent or not, and wherever the ledger puts that. One that
// passed is told as Confirmed however little it made.
func TestAFailedTransactionIsNeverConfirmed(t *testing.T) {
	const k = 6
	for _, archive := range []bool{false, true} {
		t.Run(fmt.Sprint("archive=", archive), func(t *testing.T) {
			s, f := past(t, k, archive)
			c := s.chain
			fresh := attempt(t, c, 3, true)
			got := story(t, f, fresh, func(ev ourotail.WatchEvent) {
				if ev.Kind == ourotail.Update || ev.Kind == ourotail.Failed {
					extend(t, c, k)
				}
			})
			if want := []string{"update false", "failed false", "done false"}; !slices.Equal(got, want) {
				t.Errorf("a new one: %v, want %v", got, want)
			}
			old := map[string]chain.TxID{
				"return #3": attempt(t, c, 3, true),
				"return #1": attempt(t, c, 1, true),
				"return #0": attempt(t, c, 0, true),
				"passed, 2": attempt(t, c, 2, false), // the chain spends the second
				"passed, 4": attempt(t, c, 4, false),
			}
			spent, single := attempt(t, c, 3, true), attempt(t, c, 1, false)
			extend(t, c, 1)
			spend, _ := payment(t, c, chain.TxIn{ID: spent, Index: 3})
			include(t, c, spend)
			if archive {
				old["return #3, spent"], old["passed, 1"] = spent, single
			}
			extend(t, c, 3*k)
			follows(t, f, c)
			for name, id := range old {
				want := []string{"failed false", "done false"}
				state := hub.TxFailed
				if name[:6] == "passed" {
					want, state = []string{"confirmed true", "done true"}, hub.TxConfirmed
				}
				if got := story(t, f, id, nil); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
				if st, err := f.TxStatus(t.Context(), id); err != nil || st.State != state {
					t.Errorf("%s: its status is %v, %v", name, st, err)
				}
			}
		})
	}
}

// TestAWatchedOutputTellsOfCollateralThatWasTaken: an output spent by a transaction
// whose scripts failed is gone, and the watch says both.
func TestAWatchedOutputTellsOfCollateralThatWasTaken(t *testing.T) {
	const k = 6
	s, f := past(t, k, true)
	c := s.chain
	raw, id := payment(t, c)
	include(t, c, raw)
	ids, err := c.Include(forge.Order{Fails: true, Spend: []chain.TxIn{{ID: id}}, Pay: []forge.Payment{{Address: payee, Lovelace: 1_500_000}}})
	if err != nil {
		t.Fatal(err)
	}
	extend(t, c, 3*k)
	follows(t, f, c)
	var got []string
	for ev, err := range f.WatchOutput(t.Context(), chain.TxIn{ID: id}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v", ev.Kind, ev.Valid))
	}
	if want := []string{"failed false", "done false"}; !slices.Equal(got, want) {
		t.Errorf("spent by %v: %v, want %v", ids[0], got, want)
	}
}

// TestAVerdictThatNobodyCanTellIsAnError: where only the block tells whether the scripts
// passed and the node is away, a watch waits for it and tells nothing before.
func TestAVerdictThatNobodyCanTellIsAnError(t *testing.T) {
	const k = 6
	s, f := past(t, k, false)
	id := attempt(t, s.chain, 0, true)
	extend(t, s.chain, 3*k)
	follows(t, f, s.chain)
	s.node.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for ev, err := range f.WatchTx(ctx, id, 1) {
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v %v", ev, err)
		}
	}
}
