package hubtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// latest: 3.11.
func (s *suite) latest() {
	if s.caps.Kinds[hub.Tips] {
		s.must(s.Tick(1))
		sub, err := s.SubscribeTips()
		s.must(err)
		first := one(s, sub)
		s.must(s.Tick(3))
		if got := one(s, sub); got.Height != first.Height+3 {
			s.Errorf("the tip is %v three blocks above %v", got, first)
		}
		sub.Cancel()
	}
	if s.caps.Kinds[hub.Params] {
		sub, err := s.SubscribeParams()
		s.must(err)
		sub.Cancel()
	}
}

// transactions: 4.3.
func (s *suite) transactions() {
	a := s.address()
	sub, err := s.SubscribeTxs(query.Involves(a), hub.Options{})
	if !s.caps.Kinds[hub.Txs] {
		if !errors.Is(err, hub.ErrUnsupported) {
			s.Fatalf("not declared, but %v", err)
		}
		return
	}
	s.must(err)
	ref := s.pay(a)
	made := one(s, sub)
	if made.Kind != chain.Included || made.Tx.ID != ref.ID || !made.LastOfBlock {
		s.Fatalf("%+v", made)
	}
	spent := s.pay(s.address(), ref)
	if e := one(s, sub); e.Tx.ID != spent.ID {
		s.Fatalf("%+v, want the transaction that spends", e)
	}
	s.pay(s.address())
	if got := drain(s, sub); len(got) > 0 {
		s.Fatalf("%+v has nothing to do with the address", got)
	}
}

// blocks: 1.1, 3.13.
func (s *suite) blocks() {
	sub, err := s.SubscribeBlocks(query.EveryBlock(), hub.Options{})
	if !s.caps.Kinds[hub.Blocks] {
		if !errors.Is(err, hub.ErrUnsupported) {
			s.Fatalf("not declared, but %v", err)
		}
		return
	}
	s.must(err)
	s.must(s.Tick(2))
	got := drain(s, sub)
	if len(got) != 2 {
		s.Fatalf("%d blocks, want 2", len(got))
	}
	for _, e := range got {
		if e.Kind != chain.Applied || len(e.Block.Block) == 0 || e.Block.At != e.At {
			s.Errorf("%+v: no raw block", e)
		}
	}
	ranged, err := s.SubscribeBlocks(query.Slots(0, got[1].At.Point.Slot+1), hub.Options{})
	s.must(err)
	s.must(s.Tick(2))
	n := 0
	for e, err := range ranged.All(context.Background()) { // ends: the chain has passed the range
		s.must(err)
		if n++; e.At.Point.Slot > got[1].At.Point.Slot+1 {
			s.Errorf("%v is outside the range", e.At)
		}
	}
	if n > 1 {
		s.Errorf("%d blocks in a range of two slots", n)
	}
}

// status: 3.10.
func (s *suite) status() {
	sub, err := s.SubscribeStatus(chain.TxID{'n', 'o'})
	if !s.caps.Kinds[hub.Statuses] {
		if !errors.Is(err, hub.ErrUnsupported) {
			s.Fatalf("not declared, but %v", err)
		}
		return
	}
	s.must(err)
	if st := one(s, sub); st.State != hub.TxNotFound && st.State != hub.TxUnknown || s.caps.Partial && st.State != hub.TxUnknown {
		s.Fatalf("%+v of a transaction that never was", st)
	}
	ref := s.pay(s.address())
	on, err := s.SubscribeStatus(ref.ID)
	s.must(err)
	st := one(s, on)
	if st.State != hub.TxConfirmed || st.At.IsOrigin() {
		s.Fatalf("%+v, want confirmed", st)
	}
	if s.caps.Horizon < 1 || errors.Is(s.Fork(1), errors.ErrUnsupported) {
		return
	}
	if got := one(s, on); got.State == hub.TxConfirmed && got.At == st.At {
		s.Fatalf("%+v after its block was taken back", got)
	}
}

// after: 3.15.
func (s *suite) after() {
	a := s.address()
	first := s.subscribe(query.Address(a), hub.Options{Idle: true, Bound: hub.Unbounded})
	r1 := s.pay(a)
	at := drain(s, first)[0].At
	r2 := s.pay(a)
	o := hub.Options{Start: hub.After, After: chain.Cursor{At: at, Place: chain.WholeBlock}}
	sub, err := s.SubscribeUTxOs(context.Background(), query.Address(a), o)
	if !s.caps.Replay {
		if !errors.Is(err, hub.ErrUnsupported) {
			s.Fatalf("not declared, but %v", err)
		}
		return
	}
	s.must(err)
	s.isCreated(one(s, sub), r2)
	r3 := s.pay(a)
	s.isCreated(one(s, sub), r3)
	_ = r1
	o.After.At = chain.At{Point: chain.Point{Slot: at.Point.Slot, Hash: chain.Hash{'?'}}, Height: at.Height}
	if _, err := s.SubscribeUTxOs(context.Background(), query.Address(a), o); err == nil {
		s.Error("started after a block that never was")
	}
}

// origin: 1.7, 5.3.
func (s *suite) origin() {
	a := s.address()
	ref := s.pay(a)
	sub, err := s.SubscribeUTxOs(context.Background(), query.Address(a), hub.Options{Start: hub.Origin})
	var older *hub.OlderError
	switch {
	case !s.caps.Replay:
		if !errors.Is(err, hub.ErrUnsupported) {
			s.Fatalf("not declared, but %v", err)
		}
	case errors.As(err, &older):
		if older.Oldest.IsOrigin() {
			s.Errorf("out of reach, but the oldest point is said to be origin")
		}
	default:
		s.must(err)
		s.isCreated(one(s, sub), ref)
	}
}

// folds: Reliable. Whatever happens, what a reader makes of its events is the set.
func (s *suite) folds() {
	r := rand.New(rand.NewPCG(1, 2))
	addrs := [][]byte{s.address(), s.address(), s.address()}
	type reader struct {
		q    query.UTxO
		sub  hub.Stream[chain.UTxOEvent]
		fold Fold
	}
	var readers []*reader
	begin := func(q query.UTxO) *reader {
		return &reader{q: q, sub: s.subscribe(q, hub.Options{Seed: hub.SeedLater, Bound: hub.Unbounded})}
	}
	for _, a := range addrs {
		readers = append(readers, begin(query.Address(a)))
	}
	readers = append(readers, begin(query.AnyOf(query.Address(addrs[0]), query.Address(addrs[1]))))
	var live []chain.TxIn
	forks := s.caps.Horizon >= 4
	for range 60 {
		switch r.IntN(8) {
		case 0:
			s.must(s.Tick(1 + r.IntN(2)))
		case 1:
			if !forks {
				continue
			}
			if err := s.Fork(1 + r.IntN(2)); errors.Is(err, errors.ErrUnsupported) {
				forks = false
			} else {
				s.must(err)
			}
			live = nil
			for _, a := range addrs {
				rows, err := s.Set(query.Address(a))
				s.must(err)
				for _, u := range rows {
					live = append(live, u.Ref)
				}
			}
		default:
			var spend []chain.TxIn
			if len(live) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(live))
				spend = append(spend, live[i])
				live = slices.Delete(live, i, i+1)
			}
			live = append(live, s.pay(addrs[r.IntN(len(addrs))], spend...))
		}
		for i, x := range readers {
			for {
				e, ok, err := x.sub.Poll()
				if errors.Is(err, hub.ErrResync) && s.caps.Partial {
					readers[i] = begin(x.q) // its seed is below what was examined for it
					break
				}
				s.must(err)
				if !ok {
					break
				}
				x.fold.Take(e)
			}
		}
	}
	for _, x := range readers {
		for _, e := range drain(s, x.sub) {
			x.fold.Take(e)
		}
		want, err := s.Set(x.q)
		s.must(err)
		have := x.fold.Set()
		for _, u := range want {
			if have[u.Ref] == nil {
				s.Errorf("%v: the fold lacks %v", x.q, u.Ref)
			}
			delete(have, u.Ref)
		}
		for ref := range have {
			s.Errorf("%v: the fold has %v, which is not in the set", x.q, ref)
		}
	}
}

// Fold is a reader that knows nothing but its events (contract 4.1). The zero
// value is one that has none yet.
type Fold struct{ log []chain.UTxOEvent }

// Take takes an event.
func (f *Fold) Take(e chain.UTxOEvent) {
	switch e.Kind {
	case chain.Created, chain.Spent:
		f.log = append(f.log, e)
	case chain.RolledBack:
		f.log = slices.DeleteFunc(f.log, func(x chain.UTxOEvent) bool { return x.At.Height > e.At.Height })
	}
}

// Set returns the outputs that the events leave.
func (f *Fold) Set() map[chain.TxIn]*chain.UTxO {
	set := map[chain.TxIn]*chain.UTxO{}
	for _, e := range f.log {
		if e.Kind == chain.Created {
			set[e.UTxO.Ref] = e.UTxO
		} else {
			delete(set, e.UTxO.Ref)
		}
	}
	return set
}
