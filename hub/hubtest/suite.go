package hubtest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// Run runs the conformance suite. Each test gets a fixture of its own.
func Run(t *testing.T, make func(t *testing.T) Fixture) {
	for _, x := range []struct {
		name string
		run  func(*suite)
	}{
		{"refuses exactly what support refuses", (*suite).refusals},
		{"subscribe then submit is race-free", (*suite).race},
		{"seeds come before live events", (*suite).seedsFirst},
		{"spends are resolved and come before creations", (*suite).resolved},
		{"a failed transaction makes only its collateral return", (*suite).failed},
		{"depth is honoured", (*suite).depth},
		{"rollbacks are told to those who saw the blocks", (*suite).rollbacks},
		{"no rollback means none", (*suite).noRollback},
		{"a rollback below the seed corrects it", (*suite).corrects},
		{"idle only where declared and asked for", (*suite).idle},
		{"cancelled ends", (*suite).cancelled},
		{"a stuck reader fails alone", (*suite).stuck},
		{"closing delivers first", (*suite).closing},
		{"tip and parameters at once", (*suite).latest},
		{"transactions", (*suite).transactions},
		{"blocks", (*suite).blocks},
		{"status", (*suite).status},
		{"after a point", (*suite).after},
		{"from origin", (*suite).origin},
		{"every fold is the set", (*suite).folds},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := make(t)
			t.Cleanup(func() {
				if err := f.Close(); err != nil {
					t.Errorf("closing: %v", err)
				}
			})
			x.run(&suite{T: t, Fixture: f, caps: f.Capabilities()})
		})
	}
}

// suite is one test of the suite, running.
type suite struct {
	*testing.T
	Fixture
	caps hub.Capabilities
	n    uint64
}

// address is one that no other test uses.
func (s *suite) address() []byte {
	s.n++
	a := make([]byte, 29)
	a[0] = 0x60 // enterprise, key, a test network
	copy(a[1:], s.Name())
	binary.BigEndian.PutUint64(a[21:], s.n)
	return a
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// pay makes an output at an address and returns its reference.
func (s *suite) pay(addr []byte, spend ...chain.TxIn) chain.TxIn {
	s.Helper()
	id, err := s.Submit(Tx{Spend: spend, Pay: []Pay{{addr, 2_000_000}}})
	s.must(err)
	return chain.TxIn{ID: id}
}

func (s *suite) subscribe(q query.UTxO, o hub.Options) hub.Stream[chain.UTxOEvent] {
	s.Helper()
	sub, err := s.SubscribeUTxOs(context.Background(), q, o)
	s.must(err)
	return sub
}

// drain reads what there is.
func drain[E any](s *suite, sub hub.Subscription[E]) (out []E) {
	s.Helper()
	for {
		e, ok, err := sub.Poll()
		if err != nil && !errors.Is(err, io.EOF) {
			s.Fatalf("the subscription ended: %v", err)
		}
		if !ok {
			return out
		}
		out = append(out, e)
	}
}

// one reads the only event there is.
func one[E any](s *suite, sub hub.Subscription[E]) (e E) {
	s.Helper()
	got := drain(s, sub)
	if len(got) != 1 {
		s.Fatalf("got %d events, want one: %+v", len(got), got)
	}
	return got[0]
}

func (s *suite) isCreated(e chain.UTxOEvent, ref chain.TxIn) {
	s.Helper()
	if e.Kind != chain.Created || e.UTxO.Ref != ref {
		s.Fatalf("got %v of %v, want created of %v", e.Kind, e.UTxO, ref)
	}
}

func (s *suite) needsForks() {
	s.Helper()
	if s.caps.Horizon < 1 {
		s.Skip("this provider declares no rollbacks")
	}
	s.must(s.Tick(2))
	if err := s.Fork(1); errors.Is(err, errors.ErrUnsupported) {
		s.Skip("the chain of this fixture does not fork")
	} else {
		s.must(err)
	}
}

// refusals: 3.14.
func (s *suite) refusals() {
	a := s.address()
	s.must(s.Tick(int(s.caps.MaxConfirmations) + 2)) // so that no refusal depends on the moment
	var queries []query.UTxO
	for _, k := range []chain.SourceKind{chain.SourceAddress, chain.SourcePayment, chain.SourceStake, chain.SourcePolicy, chain.SourceAsset, chain.SourceTx, chain.SourceInput} {
		key := string(make([]byte, 28))
		switch k {
		case chain.SourceAddress:
			key = string(a)
		case chain.SourceTx:
			key = string(make([]byte, 32))
		case chain.SourceInput:
			key = string(chain.TxIn{}.AppendKey(nil))
		}
		queries = append(queries, query.From(chain.Source{Kind: k, Key: key}))
	}
	queries = append(queries, query.Everything(), query.Not(query.Address(a)), query.AllOf(query.Address(a), query.HasDatum()), query.AnyOf(query.Address(a), query.HasDatum()))
	refused := func(what string, err error, sup hub.Support, cancel func()) {
		s.Helper()
		if (err != nil) != (sup.Level == hub.Unsupported) {
			s.Errorf("%s: support says %d (%s), subscribing says %v", what, sup.Level, sup.Reason, err)
		}
		if err != nil && !errors.Is(err, hub.ErrUnsupported) {
			s.Errorf("%s: refused with %v, want it to wrap ErrUnsupported", what, err)
		}
		if err == nil {
			cancel()
		}
	}
	d := s.caps.MaxConfirmations
	options := []hub.Options{
		{}, {Confirmations: d}, {Confirmations: d + 1}, {NoRollback: true}, {Seed: hub.SeedLater}, {Seed: hub.SeedLater, AcceptScan: true},
		{Seed: hub.SeedLater, Events: hub.SpentOnly}, {Events: hub.CreatedOnly}, {Idle: true}, {Bound: 1}, {Bound: hub.Unbounded}, {Bound: -7}, {Confirmations: -1},
	}
	for _, o := range options {
		for _, q := range queries {
			sub, err := s.SubscribeUTxOs(context.Background(), q, o)
			refused(q.String(), err, s.caps.SupportUTxO(q, o), func() { sub.Cancel() })
		}
		for _, q := range []query.Tx{query.EveryTx(), query.Involves(a), query.HasLabel(1)} {
			sub, err := s.SubscribeTxs(q, o)
			refused(q.String(), err, s.caps.SupportTx(q, o), func() { sub.Cancel() })
		}
		sub, err := s.SubscribeBlocks(query.EveryBlock(), o)
		refused("blocks", err, s.caps.Support(hub.Blocks, nil, o), func() { sub.Cancel() })
	}
	tips, err := s.SubscribeTips()
	refused("tip", err, s.caps.Support(hub.Tips, nil, hub.Options{}), func() { tips.Cancel() })
	params, err := s.SubscribeParams()
	refused("parameters", err, s.caps.Support(hub.Params, nil, hub.Options{}), func() { params.Cancel() })
	status, err := s.SubscribeStatus(chain.TxID{1})
	refused("status", err, s.caps.Support(hub.Statuses, nil, hub.Options{}), func() { status.Cancel() })
}

// race: 3.1.
func (s *suite) race() {
	for range 20 {
		a := s.address()
		sub := s.subscribe(query.Address(a), hub.Options{})
		ref := s.pay(a)
		s.isCreated(one(s, sub), ref)
		sub.Cancel()
	}
}

// seedsFirst: 3.2, 3.3.
func (s *suite) seedsFirst() {
	a := s.address()
	old := []chain.TxIn{s.pay(a), s.pay(a)}
	sub := s.subscribe(query.Address(a), hub.Options{Seed: hub.SeedLater})
	spent := s.pay(a, old[0])
	have := map[chain.TxIn]bool{}
	for i, e := range drain(s, sub) {
		switch {
		case i < len(old):
			if e.Kind != chain.Created || e.Because != chain.Seed {
				s.Fatalf("event %d is %v because %v, want the seed first", i, e.Kind, e.Because)
			}
			if e.NoCursor != (i < len(old)-1) {
				s.Errorf("seed event %d: no cursor %v", i, e.NoCursor)
			}
		case e.Because != chain.Live:
			s.Fatalf("event %d is of a seed again", i)
		}
		if e.Kind == chain.Spent && !have[e.UTxO.Ref] {
			s.Fatalf("%v was spent before it was created", e.UTxO.Ref)
		}
		have[e.UTxO.Ref] = e.Kind == chain.Created
	}
	if have[old[0]] || !have[old[1]] || !have[spent] {
		s.Fatalf("ends with %v", have)
	}
	// Without a seed it knows nothing of what was there.
	bare := s.subscribe(query.Address(a), hub.Options{})
	if got := drain(s, bare); len(got) > 0 {
		s.Fatalf("unasked: %+v", got)
	}
}

// resolved: 1.2, 3.7.
func (s *suite) resolved() {
	a, b := s.address(), s.address()
	sub := s.subscribe(query.AnyOf(query.Address(a), query.Address(b)), hub.Options{Idle: false})
	first := s.pay(a)
	created := one(s, sub)
	second := s.pay(b, first)
	got := drain(s, sub)
	if len(got) != 2 || got[0].Kind != chain.Spent || got[0].UTxO.Ref != first {
		s.Fatalf("got %+v, want a spend and then a creation", got)
	}
	s.isCreated(got[1], second)
	u := got[0].UTxO
	if string(u.Out.Address) != string(a) || u.Out.Lovelace != 2_000_000 {
		s.Errorf("the spent output is %+v, want it resolved", u)
	}
	if u.At != created.At {
		s.Errorf("it was created at %v, but carries %v", created.At, u.At)
	}
	if got[0].Tx != second.ID || got[0].Place >= got[1].Place || got[0].LastOfTx || !got[1].LastOfTx || !got[1].LastOfBlock {
		s.Errorf("%+v", got)
	}
}

// failed: 1.2.
func (s *suite) failed() {
	a := s.address()
	in := s.pay(a)
	sub := s.subscribe(query.Address(a), hub.Options{})
	id, err := s.Submit(Tx{Fails: true, Spend: []chain.TxIn{in}, Pay: []Pay{{a, 1_000_000}, {a, 1_500_000}}})
	if errors.Is(err, errors.ErrUnsupported) {
		s.Skip("this fixture cannot make a transaction fail")
	}
	s.must(err)
	got := drain(s, sub)
	if len(got) != 2 || got[0].Kind != chain.Spent || got[0].UTxO.Ref != in || got[0].TxValid {
		s.Fatalf("got %+v, want the collateral spent by a transaction that is not valid", got)
	}
	s.isCreated(got[1], chain.TxIn{ID: id, Index: 1})
}

// depth: 3.4, Settled.
func (s *suite) depth() {
	if s.caps.MaxConfirmations < 2 {
		s.Skip("this provider offers no depth")
	}
	s.must(s.Tick(3))
	a := s.address()
	sub := s.subscribe(query.Address(a), hub.Options{Confirmations: 2})
	ref := s.pay(a)
	for i := range 2 {
		if got := drain(s, sub); len(got) > 0 {
			s.Fatalf("%d blocks on top, and already %+v", i, got)
		}
		s.must(s.Tick(1))
	}
	s.isCreated(one(s, sub), ref)
}

// rollbacks: 3.9, 4.1, Reversible.
func (s *suite) rollbacks() {
	s.needsForks()
	s.must(s.Tick(2))
	a := s.address()
	saw, deep := s.subscribe(query.Address(a), hub.Options{}), s.subscribe(query.Address(a), hub.Options{Confirmations: min(2, s.caps.MaxConfirmations)})
	ref := s.pay(a)
	e := one(s, saw)
	s.isCreated(e, ref)
	s.must(s.Fork(1))
	got := drain(s, saw)
	if len(got) != 1 || got[0].Kind != chain.RolledBack || got[0].At.Height >= e.At.Height {
		s.Fatalf("after the block was taken back: %+v, want one rollback below %v", got, e.At)
	}
	if s.caps.MaxConfirmations >= 2 {
		s.must(s.Tick(3))
		if got := drain(s, deep); len(got) > 0 {
			s.Fatalf("two blocks deep, and heard of it: %+v", got)
		}
	}
	again := s.pay(a)
	s.isCreated(one(s, saw), again)
}

// noRollback: 3.9.
func (s *suite) noRollback() {
	s.needsForks()
	if s.caps.MaxConfirmations < s.caps.Horizon {
		s.Skip("this provider cannot wait for its horizon")
	}
	k := int(s.caps.Horizon)
	s.must(s.Tick(k + 1))
	a := s.address()
	sub := s.subscribe(query.Address(a), hub.Options{NoRollback: true})
	s.pay(a)
	s.must(s.Fork(1))
	ref := s.pay(a)
	s.must(s.Tick(k))
	s.isCreated(one(s, sub), ref)
}

// corrects: 3.3.
func (s *suite) corrects() {
	s.needsForks()
	a := s.address()
	ref := s.pay(a)
	s.pay(s.address(), ref)
	sub := s.subscribe(query.Address(a), hub.Options{Seed: hub.SeedLater})
	if got := drain(s, sub); len(got) > 0 {
		s.Fatalf("the seed has what was spent: %+v", got)
	}
	s.must(s.Fork(1))
	if s.caps.Partial {
		// The block that goes was not examined for the subscription.
		if _, _, err := sub.Poll(); !errors.Is(err, hub.ErrResync) {
			s.Fatalf("%v, want a resync", err)
		}
		return
	}
	got := drain(s, sub)
	if len(got) != 2 || got[0].Kind != chain.RolledBack || got[1].Because != chain.Correction {
		s.Fatalf("got %+v, want a rollback and a correction", got)
	}
	s.isCreated(got[1], ref)
}

// idle: 3.8.
func (s *suite) idle() {
	a := s.address()
	asked, not := s.subscribe(query.Address(a), hub.Options{Idle: true}), s.subscribe(query.Address(a), hub.Options{})
	s.must(s.Tick(2))
	if got := drain(s, not); len(got) > 0 {
		s.Errorf("not asked for: %+v", got)
	}
	got := drain(s, asked)
	if !s.caps.Idle {
		if len(got) > 0 {
			s.Errorf("not declared: %+v", got)
		}
		return
	}
	if len(got) != 2 || got[0].Kind != chain.Idle || got[1].At.Height != got[0].At.Height+1 {
		s.Fatalf("%+v, want an idle for each of two blocks", got)
	}
	ref := s.pay(a)
	for _, e := range drain(s, asked) {
		if e.Kind == chain.Created {
			s.isCreated(e, ref)
		} else if e.Kind != chain.Idle {
			s.Errorf("%+v", e)
		}
	}
}

// cancelled: 2.4, 2.5.
func (s *suite) cancelled() {
	a := s.address()
	sub := s.subscribe(query.Address(a), hub.Options{})
	s.pay(a)
	sub.Cancel()
	s.pay(a)
	if _, err := sub.Next(context.Background()); !errors.Is(err, hub.ErrCancelled) {
		s.Fatalf("%v, want ErrCancelled", err)
	}
}

// stuck: 2.1.
func (s *suite) stuck() {
	a := s.address()
	lazy, brisk := s.subscribe(query.Address(a), hub.Options{Bound: 2}), s.subscribe(query.Address(a), hub.Options{Bound: 2})
	var refs []chain.TxIn
	for range 5 {
		refs = append(refs, s.pay(a))
		s.isCreated(one(s, brisk), refs[len(refs)-1])
	}
	var over *hub.OverflowError
	if _, _, err := lazy.Poll(); !errors.As(err, &over) {
		s.Fatalf("%v, want an overflow", err)
	}
	if over.Resumable || over.Lost < 3 {
		s.Errorf("%+v: nothing was read, and three or more are lost", over)
	}
}

// closing: 2.5, 3.12.
func (s *suite) closing() {
	a := s.address()
	sub := s.subscribe(query.Address(a), hub.Options{})
	ref := s.pay(a)
	s.CloseSubscriptions()
	e, err := sub.Next(context.Background())
	s.must(err)
	s.isCreated(e, ref)
	if _, err := sub.Next(context.Background()); !errors.Is(err, io.EOF) {
		s.Errorf("%v, want io.EOF", err)
	}
	if _, err := s.SubscribeUTxOs(context.Background(), query.Address(a), hub.Options{}); !errors.Is(err, hub.ErrClosed) {
		s.Errorf("subscribed after the end: %v", err)
	}
}
