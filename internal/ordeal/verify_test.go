package ordeal

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// verify compares everything that an open follower says of its store with the
// oracle at the head it reports: the set, its counts, the journal from floor to
// head, the indexes.
func verify(t *testing.T, f *ourotail.Follower, o *forge.Oracle) error {
	t.Helper()
	st := f.State()
	head := st.Head.Point.Hash
	want, err := o.Lines(head)
	if err != nil {
		return fmt.Errorf("at %v: %w", st.Head.At(), err)
	}
	sum, err := o.Summary(head)
	if err != nil {
		return err
	}
	v := f.View()
	defer v.Close()
	var got []string
	if err := v.Lines(t.Context(), query.Everything(), func(l []byte) error {
		got = append(got, string(l))
		return nil
	}); err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the set at %v: %d outputs, want %d: %s", st.Head.At(), len(got), len(want), firstDifference(got, want))
	}
	if st.UTxOs != int64(sum.Count) || st.Lovelace != sum.Lovelace {
		return fmt.Errorf("at %v the store counts %d with %d, want %+v", st.Head.At(), st.UTxOs, st.Lovelace, sum)
	}
	if err := verifyJournal(t, f, o); err != nil {
		return fmt.Errorf("the journal from %v to %v: %w", st.Floor, st.Head.At(), err)
	}
	if st.Index.Built {
		return verifyIndexes(t, v, o, head)
	}
	return nil
}

// verifyJournal reads every block above the floor, as a reader who resumes there
// would have it.
func verifyJournal(t *testing.T, f *ourotail.Follower, o *forge.Oracle) error {
	st := f.State()
	floor, _, err := f.Find(st.Floor.Point)
	if err != nil {
		return err
	}
	head, _, err := f.Find(st.Head.Point)
	if err != nil {
		return err
	}
	sub, err := f.SubscribeBlocks(query.EveryBlock(), hub.Options{Start: hub.After, After: chain.Cursor{At: floor, Place: chain.WholeBlock}, Bound: hub.Unbounded})
	if err != nil {
		return err
	}
	defer sub.Cancel()
	w := newWalk(o, floor)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for w.at() != head {
		e, err := sub.Next(ctx)
		if err == nil {
			err = w.block(&e)
		}
		if err != nil {
			return fmt.Errorf("it ends at %v: %w", w.at(), err)
		}
	}
	return nil
}

// verifyIndexes asks for the outputs of addresses, credentials and policies, of
// such as have some and such as had.
func verifyIndexes(t *testing.T, v *ourotail.View, o *forge.Oracle, head chain.Hash) error {
	set, err := o.Set(head)
	if err != nil {
		return err
	}
	path, err := o.Path(head)
	if err != nil {
		return err
	}
	asked := map[string]query.UTxO{}
	ask := func(out *forge.Output) {
		asked["address "+hex.EncodeToString(out.Address)] = query.Address(out.Address)
		for _, a := range out.Assets {
			asked["policy "+a.Policy.String()] = query.Policy(a.Policy)
		}
	}
	for i := len(path) - 1; i >= max(0, len(path)-4); i-- { // the newest blocks are where a kill would leave a trace
		e, err := o.Effects(path[i].Point.Hash)
		if err != nil {
			return err
		}
		for _, tx := range e.Txs {
			for _, out := range append(slices.Clone(tx.Spent), tx.Created...) {
				ask(out)
			}
		}
	}
	n := 0
	for _, out := range set { // in no order: a sample
		if n++; n > 10 {
			break
		}
		ask(out)
	}
	names := sortedNames(asked)
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(len(names), 12)] {
		q := asked[name]
		var want, got []string
		for ref, out := range set {
			if q.Match(&chain.UTxO{Ref: ref, Out: chain.TxOut{Address: out.Address, Lovelace: out.Lovelace, Assets: out.Assets}}) {
				want = append(want, out.Line())
			}
		}
		slices.Sort(want)
		if err := v.Lines(t.Context(), q, func(l []byte) error {
			got = append(got, string(l))
			return nil
		}); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the index of %s: %d outputs, want %d: %s", name, len(got), len(want), firstDifference(got, want))
		}
	}
	return nil
}
