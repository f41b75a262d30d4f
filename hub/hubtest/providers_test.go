package hubtest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/hub/hubtest"
	"github.com/ourotail/ourotail/query"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract_5_5_EmulatorConforms(t *testing.T) {
	hubtest.Run(t, func(*testing.T) hubtest.Fixture { return hubtest.NewEmulator() })
}

func TestContract_5_5_MeteredConforms(t *testing.T) {
	hubtest.Run(t, func(t *testing.T) hubtest.Fixture { return metered(t, hubtest.NewEmulator()) })
}

func metered(t *testing.T, e *hubtest.Emulator) *hubtest.Metered {
	m, err := hubtest.NewMetered(e)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func pay(t *testing.T, f hubtest.Fixture, addr string) chain.TxIn {
	t.Helper()
	id, err := f.Submit(hubtest.Tx{Pay: []hubtest.Pay{{Address: []byte(addr), Lovelace: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	return chain.TxIn{ID: id}
}

// Contract 2.5: a subscription that ended by any route stops costing work.
func TestContract_2_5_DeadSubscriptionsCostNoProbes(t *testing.T) {
	for name, end := range map[string]func(*hubtest.Metered, hub.Stream[chain.UTxOEvent]){
		"cancelled": func(_ *hubtest.Metered, s hub.Stream[chain.UTxOEvent]) { s.Cancel() },
		"overflowed": func(m *hubtest.Metered, _ hub.Stream[chain.UTxOEvent]) {
			for range 3 {
				pay(t, m, "a")
			}
		},
	} {
		m := metered(t, hubtest.NewEmulator())
		s, err := m.SubscribeUTxOs(context.Background(), query.Address([]byte("a")), hub.Options{Bound: 1})
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Tick(1)
		src := chain.Source{Kind: chain.SourceAddress, Key: "a"}
		if m.Probes[src] != 1 {
			t.Fatalf("%s: %d probes while it lives", name, m.Probes[src])
		}
		end(m, s)
		before := m.Probes[src]
		_ = m.Tick(5)
		if n := m.Probes[src] - before; n != 0 {
			t.Errorf("%s: %d probes for nobody", name, n)
		}
	}
}

// Contract 1.4: one block per height with the union of what was probed, and
// every height.
func TestContract_1_4_EveryHeightOnceWithTheUnion(t *testing.T) {
	m := metered(t, hubtest.NewEmulator())
	union := query.AnyOf(query.Address([]byte("a")), query.Address([]byte("b")))
	s, err := m.SubscribeUTxOs(context.Background(), union, hub.Options{Idle: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []chain.EventKind{chain.Created, chain.Idle, chain.Created, chain.Idle}
	pay(t, m, "a")
	pay(t, m, "c")
	pay(t, m, "b")
	_ = m.Tick(1)
	if m.Heights != 4 || m.Silent != 2 {
		t.Errorf("%d heights, %d silent", m.Heights, m.Silent)
	}
	for i, kind := range want {
		e, ok, err := s.Poll()
		if !ok || err != nil || e.Kind != kind || e.At.Height != chain.Height(i) {
			t.Fatalf("event %d: %+v, %v, %v", i, e, ok, err)
		}
	}
}

// The metered provider's answers are those of the complete one.
func TestMeteredAgreesWithComplete(t *testing.T) {
	e := hubtest.NewEmulator()
	m := metered(t, e)
	q := query.AnyOf(query.Address([]byte("a")), query.AllOf(query.Address([]byte("b")), query.MinLovelace(1)))
	o := hub.Options{Bound: hub.Unbounded}
	whole, err := e.SubscribeUTxOs(context.Background(), q, o)
	if err != nil {
		t.Fatal(err)
	}
	part, err := m.SubscribeUTxOs(context.Background(), q, o)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var live []chain.TxIn
	for range 200 {
		switch r.IntN(6) {
		case 0:
			if err := m.Fork(1 + r.IntN(3)); err != nil {
				t.Fatal(err)
			}
			live = nil
		default:
			var spend []chain.TxIn
			if len(live) > 0 && r.IntN(2) == 0 {
				spend, live = live[:1], live[1:]
			}
			id, err := m.Submit(hubtest.Tx{Spend: spend, Pay: []hubtest.Pay{{Address: []byte{"abc"[r.IntN(3)]}, Lovelace: uint64(r.IntN(2))}}})
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, chain.TxIn{ID: id})
		}
	}
	n := 0
	for {
		a, okA, errA := whole.Poll()
		b, okB, errB := part.Poll()
		if okA != okB || errA != nil || errB != nil || okA && a.ID() != b.ID() {
			t.Fatalf("event %d: complete %v %v %v, metered %v %v %v", n, a, okA, errA, b, okB, errB)
		}
		if !okA {
			break
		}
		n++
	}
	if n < 100 {
		t.Fatalf("only %d events", n)
	}
}

func TestEmulatorRefusesWhatIsNotThere(t *testing.T) {
	e := hubtest.NewEmulator()
	if _, err := e.Submit(hubtest.Tx{Spend: []chain.TxIn{{Index: 7}}}); !errors.Is(err, hubtest.ErrInput) {
		t.Fatal(err)
	}
	if err := e.Rollback(1); err == nil {
		t.Fatal("rolled back what was never applied")
	}
}
