package hub

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

func TestContract_3_11_CurrentValuesAtOnce(t *testing.T) {
	f := newFx(t)
	f.blocks(3)
	f.SetParams(ProtocolParams{Epoch: 7})
	f.SetParams(ProtocolParams{Epoch: 8})
	tip, err := f.SubscribeTip()
	must(t, err)
	params, err := f.SubscribeParams()
	must(t, err)
	if v, ok, _ := tip.Poll(); !ok || v != f.at {
		t.Fatal(v)
	}
	if v, ok, _ := params.Poll(); !ok || v.Epoch != 8 {
		t.Fatal(v)
	}
	must(t, f.rollback(1))
	if v, ok, _ := tip.Poll(); !ok || v != f.at {
		t.Fatal(v)
	}
	s := f.sub(q("a"), Options{})
	f.ParamsFailed(errModel)
	if _, _, err := params.Poll(); !errors.Is(err, errModel) {
		t.Fatal(err)
	}
	f.block("t: > a")
	f.want(s, "created t.0 by t @2")
	if _, ok, err := tip.Poll(); !ok || err != nil {
		t.Fatal("the tip's subscribers were hit too")
	}
	again, err := f.SubscribeParams() // what could not be read is not given to others either
	must(t, err)
	if v, ok, _ := again.Poll(); ok {
		t.Fatal(v)
	}
	f.SetParams(ProtocolParams{Epoch: 9})
	if v, ok, _ := again.Poll(); !ok || v.Epoch != 9 {
		t.Fatal(v)
	}
}

func TestContract_3_12_FailedAndClosedAreDifferent(t *testing.T) {
	for name, c := range map[string]struct {
		end func(*fx)
		err error
	}{
		"failed": {func(f *fx) { f.FailAll(errModel) }, errModel},
		"closed": {func(f *fx) { f.CloseAll() }, io.EOF},
	} {
		f := newFx(t)
		s := f.sub(q("a"), Options{})
		txs, err := f.SubscribeTx(query.EveryTx(), Options{})
		must(t, err)
		blocks, err := f.SubscribeBlock(query.EveryBlock(), Options{Confirmations: 1})
		must(t, err)
		waits := f.sub(q("a"), Options{Seed: SeedLater})
		tip, err := f.SubscribeTip()
		must(t, err)
		params, err := f.SubscribeParams()
		must(t, err)
		status, err := f.SubscribeStatus(chain.TxID{1})
		must(t, err)
		f.block("t: > a")
		c.end(f)
		ctx := context.Background()
		if name == "closed" { // what was delivered is true
			f.want(s, "created t.0 by t @0", "end: closed")
			if e, err := txs.Next(ctx); err != nil || e.Kind != chain.Included {
				t.Error(e, err)
			}
			_, _ = tip.Next(ctx)
			_, _ = status.Next(ctx)
		}
		for i, next := range []func() error{
			func() error { _, err := s.Next(ctx); return err },
			func() error { _, err := txs.Next(ctx); return err },
			func() error { _, err := blocks.Next(ctx); return err },
			func() error { _, err := waits.Next(ctx); return err },
			func() error { _, err := tip.Next(ctx); return err },
			func() error { _, err := params.Next(ctx); return err },
			func() error { _, err := status.Next(ctx); return err },
		} {
			if err := next(); !errors.Is(err, c.err) {
				t.Errorf("%s: subscription %d: %v", name, i, err)
			}
		}
		// Every kind of new subscription is refused, and so is everything else.
		_, e1 := f.SubscribeUTxO(q("a"), Options{})
		_, e2 := f.SubscribeTx(query.EveryTx(), Options{})
		_, e3 := f.SubscribeBlock(query.EveryBlock(), Options{})
		_, e4 := f.SubscribeTip()
		_, e5 := f.SubscribeParams()
		_, e6 := f.SubscribeStatus(chain.TxID{1})
		for i, err := range []error{e1, e2, e3, e4, e5, e6, f.ApplyBlock(f.next()), f.RollbackTo(chain.Origin)} {
			want := ErrClosed
			if name == "failed" {
				want = ErrFailed
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: call %d: %v", name, i, err)
			}
		}
		f.CloseAll()
		f.FailAll(errModel)
		if n := f.Subscribers(); n != 0 {
			t.Errorf("%s: %d subscriptions", name, n)
		}
	}
}

func TestContract_3_13_ARangeCompletes(t *testing.T) {
	f := newFx(t) // slots 10, 20, 30 …
	f.block()
	for _, d := range []chain.Height{0, 2} {
		s, err := f.SubscribeBlock(query.Slots(15, 35), Options{Confirmations: d})
		must(t, err)
		var got []chain.Slot
		start := f.at.Height
		f.blocks(3 + int(d))
		var end error
		for {
			e, ok, err := s.Poll()
			if end = err; !ok {
				break
			}
			got = append(got, e.At.Point.Slot)
		}
		if !errors.Is(end, io.EOF) { // it ends by itself
			t.Errorf("depth %d: the range is passed, and the end is %v", d, end)
		}
		if start == 0 && (len(got) != 2 || got[0] != 20 || got[1] != 30) {
			t.Errorf("depth %d: %v", d, got)
		}
		if f.Subscribers() != 0 {
			t.Errorf("depth %d: still registered", d)
		}
	}
	// Over before it began.
	s, err := f.SubscribeBlock(query.Slots(0, 5), Options{})
	must(t, err)
	if _, _, err := s.Poll(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestContract_3_14_SupportDecides(t *testing.T) {
	scan := func(c *Config) {
		c.Capabilities.Indexed, c.Capabilities.Scan = query.KindsOf(chain.SourceAddress), true
	}
	noScan := func(c *Config) { c.Capabilities.Indexed = query.KindsOf(chain.SourceAddress) }
	stake := query.Stake(chain.Hash28{1})
	for name, c := range map[string]struct {
		cfg  func(*Config)
		q    query.UTxO
		o    Options
		want Level
	}{
		"indexed":                       {scan, q("a"), Options{Seed: SeedNow}, Indexed},
		"a filter needs no index":       {scan, query.AllOf(q("a"), query.HasDatum()), Options{Seed: SeedNow}, Indexed},
		"one arm of a union is not":     {scan, query.AnyOf(q("a"), stake), Options{Seed: SeedNow, AcceptScan: true}, Unindexed},
		"a scan has to be accepted":     {scan, stake, Options{Seed: SeedNow}, Unsupported},
		"a scan was accepted":           {scan, stake, Options{Seed: SeedLater, AcceptScan: true}, Unindexed},
		"the other arm is indexed":      {noScan, query.AllOf(stake, q("a")), Options{Seed: SeedNow}, Indexed},
		"no scan":                       {noScan, stake, Options{Seed: SeedNow, AcceptScan: true}, Unsupported},
		"without seed nothing is read":  {noScan, stake, Options{}, Indexed},
		"spent-only gets no seed":       {noScan, stake, Options{Seed: SeedNow, Events: SpentOnly}, Indexed},
		"as deep as offered":            {scan, q("a"), Options{Confirmations: 5}, Indexed},
		"deeper than offered":           {scan, q("a"), Options{Confirmations: 6}, Unsupported},
		"no replay":                     {func(c *Config) { c.Capabilities.Replay = false }, q("a"), Options{Start: Origin}, Unsupported},
		"no replay, from tip":           {func(c *Config) { c.Capabilities.Replay = false }, q("a"), Options{}, Indexed},
		"horizon deeper than offered":   {func(c *Config) { c.Capabilities.Horizon = 6 }, q("a"), Options{NoRollback: true}, Unsupported},
		"kind not served":               {func(c *Config) { c.Capabilities.Kinds[UTxOs] = false }, q("a"), Options{}, Unsupported},
		"negative bound":                {scan, q("a"), Options{Bound: -5}, Unsupported},
		"partial and not to be probed":  {func(c *Config) { noScan(c); partial(c) }, stake, Options{}, Unsupported},
		"partial and everything":        {func(c *Config) { noScan(c); partial(c) }, query.Everything(), Options{}, Unsupported},
		"partial and one arm is enough": {func(c *Config) { noScan(c); partial(c) }, query.AllOf(stake, q("a")), Options{}, Indexed},
	} {
		f := newFx(t, c.cfg)
		f.blocks(8)
		sup := f.cfg.Capabilities.SupportUTxO(c.q, c.o)
		if sup.Level != c.want || (sup.Level != Indexed) != (sup.Reason != "") {
			t.Errorf("%s: %+v, want %v", name, sup, c.want)
		}
		_, err := f.SubscribeUTxO(c.q, c.o)
		if refused := errors.Is(err, ErrUnsupported); refused != (sup.Level == Unsupported) || err != nil && !refused {
			t.Errorf("%s: support says %+v, subscribing says %v", name, sup, err)
		}
		if err != nil && f.Subscribers() != 0 {
			t.Errorf("%s: refused and registered", name)
		}
	}
}

func TestContract_3_14_ReachDependsOnTheMoment(t *testing.T) {
	f := newFx(t)
	f.Skip(pt('s', 20)) // just started, and nothing to look back at
	f.at = pt('s', 20)
	_, err := f.SubscribeUTxO(q("a"), Options{Confirmations: 2})
	f.wantErr(err, ErrReach)
	if f.Subscribers() != 0 {
		t.Fatal("refused and registered")
	}
	f.blocks(2)
	f.sub(q("a"), Options{Confirmations: 2})
}

func TestContract_3_15_AfterAPoint(t *testing.T) {
	f := newFx(t)
	f.block("t0: g.0 > a b")
	at := f.block("t1: t0.0 > a a")
	f.block("t2: t1.0 > a")
	after := func(c chain.Cursor, o Options) (*UTxOSubscription, error) {
		o.Start, o.After = After, c
		return f.SubscribeUTxO(q("a"), o)
	}
	whole := chain.Cursor{At: at, Place: chain.WholeBlock}
	s, err := after(whole, Options{})
	must(t, err)
	f.want(s, "spent t1.0 by t2 @2", "created t2.0 by t2 @2")
	// The rest of a block begun is given at once, also to one with a depth.
	s, err = after(chain.Cursor{At: at, Place: 0}, Options{Confirmations: 1})
	must(t, err)
	f.want(s, "created t1.0 by t1 @1", "created t1.1 by t1 @1")
	f.block("t3: > a")
	f.want(s, "spent t1.0 by t2 @2", "created t2.0 by t2 @2")
	s, err = after(chain.Cursor{At: chain.Origin, Place: chain.WholeBlock}, Options{Events: SpentOnly})
	must(t, err)
	f.want(s, "spent g.0 by t0 @0", "spent t0.0 by t1 @1", "spent t1.0 by t2 @2")
	// Too shallow for the depth, counted from the highest.
	_, err = after(chain.Cursor{At: f.at, Place: chain.WholeBlock}, Options{Confirmations: 1})
	f.wantErr(err, ErrShallow)
	_, err = after(whole, Options{NoRollback: true})
	f.wantErr(err, ErrShallow)
	// Not on the chain, never was.
	_, err = after(chain.Cursor{At: pt('?', 1), Place: chain.WholeBlock}, Options{})
	f.wantErr(err, ErrUnknownPoint)
	// Orphaned.
	gone := f.at
	must(t, f.rollback(1))
	f.block()
	var o *OrphanedError
	if _, err = after(chain.Cursor{At: gone, Place: chain.WholeBlock}, Options{}); !errors.As(err, &o) || o.Ancestor != at || o.Point != gone {
		t.Fatalf("%v", err)
	}
	// Too old.
	f.blocks(15)
	var older *OlderError
	if _, err = after(whole, Options{}); !errors.As(err, &older) || older.Oldest != f.Floor() {
		t.Fatalf("%v, floor %v", err, f.Floor())
	}
	if f.Subscribers() != 3 {
		t.Fatalf("%d subscriptions", f.Subscribers())
	}
}

func TestContract_3_15_ADueBlockHasToBeCovered(t *testing.T) {
	f := newFx(t, partial)
	f.covering("a")
	at := f.at
	f.covering("b")
	f.covering("a")
	_, err := f.SubscribeUTxO(q("a"), Options{Start: After, After: chain.Cursor{At: at, Place: chain.WholeBlock}})
	var gap *GapError
	if !errors.As(err, &gap) || gap.Height != 1 || f.Subscribers() != 0 {
		t.Fatal(err)
	}
	// Above the gate it is not due yet.
	s, err := f.SubscribeUTxO(q("a"), Options{Start: After, After: chain.Cursor{At: at, Place: chain.WholeBlock}, Confirmations: 2})
	must(t, err)
	f.covering("a")
	f.want(s, "end: gap")
}
