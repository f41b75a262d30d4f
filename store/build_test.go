package store

import (
	"context"
	"errors"
	"testing"
)

// halfBuilt begins the indexes and stops behind the first slice.
func halfBuilt(t *testing.T, s *Store) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := s.BuildIndexes(ctx, func(done float64) {
		if done > 0.5 {
			stop()
		}
	})
	if st := s.State().Index; !errors.Is(err, context.Canceled) || !st.Started || st.Built || st.Done <= 0.5 {
		t.Fatal(st, err)
	}
}

// buildSome is a first pass that is cancelled behind some slices, if it has more.
func buildSome(s *Store, slices int) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err := s.BuildIndexes(ctx, func(done float64) {
		if done > 0.5 {
			if slices--; slices <= 0 {
				stop()
			}
		}
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// TestBuildAmongWrites: whatever is committed and rolled back between two slices of
// the first pass, and though it is cancelled and begun again, the indexes come to
// exactly what the outputs ask for. As much where more outputs lost their entries
// than are kept in memory.
func TestBuildAmongWrites(t *testing.T) {
	for seed := range uint64(8) {
		sc := newScript(seed)
		s := mustOpen(t, sc.options(t.TempDir()))
		if err := s.Genesis(sc.w.genesis); err != nil {
			t.Fatal(err)
		}
		play := func() {
			op := sc.next()
			if err := op.run(s, sc.w); err != nil {
				t.Fatal(err)
			}
			sc.apply(op, op.steps())
		}
		verify := func() {
			if err := sc.w.verify(s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for range 40 {
			play()
		}
		slices := 0
		for _, last := range []int{3, 5, 1 << 30} {
			ctx, stop := context.WithCancel(t.Context())
			err := s.BuildIndexes(ctx, func(done float64) {
				if done == 1 {
					return
				}
				if seed%2 == 1 {
					s.build.gone, s.build.many = nil, true
				}
				play()
				if slices++; slices%last == last-1 {
					stop()
				}
			})
			stop()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			verify()
		}
		if !s.State().Index.Built || slices < 5 {
			t.Errorf("seed %d: %+v after %d slices", seed, s.State().Index, slices)
		}
		play()
		verify()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
