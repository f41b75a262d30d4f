package mailbox

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder owns a mailbox and notes what it is told.
type recorder struct {
	box   *Delta[int]
	over  []Overflow[int]
	ended []error
}

var errOver = errors.New("over")

func (r *recorder) Overflowed(o Overflow[int]) error { r.over = append(r.over, o); return errOver }
func (r *recorder) Ended(cause error) {
	if r.box != nil {
		r.box.Pending() // deadlocks if the mailbox's lock is held
	}
	r.ended = append(r.ended, cause)
}

func owned(bound int) (*Delta[int], *recorder) {
	r := &recorder{}
	r.box = NewDelta(bound, Owner[int](r))
	return r.box, r
}

// drain reads what there is.
func drain(d *Delta[int]) (got []int, end error) {
	for {
		v, ok, err := d.Poll()
		if err != nil || !ok {
			return got, err
		}
		got = append(got, v)
	}
}

func wantValues(t *testing.T, d *Delta[int], want []int, end error) {
	t.Helper()
	got, err := drain(d)
	if !slices.Equal(got, want) || !errors.Is(err, end) {
		t.Fatalf("got %v, %v; want %v, %v", got, err, want, end)
	}
}

func TestContract_2_1_FIFOAndNeverDrops(t *testing.T) {
	d, _ := owned(0)
	var want []int
	for i := range 1000 {
		d.Offer(i, i)
		want = append(want, i, i)
	}
	wantValues(t, d, want, nil)
}

func TestContract_2_1_FailsWhenFull(t *testing.T) {
	d, r := owned(3)
	d.Offer(1, 2, 3)
	if v, _, _ := d.Poll(); v != 1 {
		t.Fatal(v)
	}
	d.Offer(4) // there is room again
	d.Offer(5, 6)
	d.Offer(7)
	wantValues(t, d, nil, errOver)
	want := Overflow[int]{Last: 1, Returned: true, Lost: 5} // 2, 3 and 4 were there, 5 and 6 did not fit; 7 came after its death
	if len(r.over) != 1 || r.over[0] != want {
		t.Fatalf("%+v, want %+v", r.over, want)
	}
}

func TestContract_2_1_LostCountsWhatComesBeforeTheFlush(t *testing.T) {
	d, r := owned(1)
	d.OfferBuffered(1)
	d.OfferBuffered(2)
	d.OfferBuffered(3, 4)
	d.Flush()
	if want := (Overflow[int]{Lost: 4}); r.over[0] != want {
		t.Fatalf("%+v, want %+v", r.over[0], want)
	}
}

func TestContract_2_1_TellsThatTheSeedWasNotRead(t *testing.T) {
	for read := range 3 {
		d, r := owned(1)
		d.SeedBuffered(2, func(i int) int { return i })
		d.Flush()
		for range read {
			d.Poll()
		}
		d.Offer(1, 2)
		if got := r.over[0].SeedUnread; got != (read < 2) {
			t.Errorf("after %d of 2: seed unread %v", read, got)
		}
	}
}

func TestContract_2_3_BufferedIsNotObservable(t *testing.T) {
	for name, buffer := range map[string]func(*Delta[int]){
		"offer":    func(d *Delta[int]) { d.OfferBuffered(2) },
		"overflow": func(d *Delta[int]) { d.OfferBuffered(2, 3, 4, 5) },
		"fail":     func(d *Delta[int]) { d.FailBuffered(io.ErrUnexpectedEOF) },
		"close":    func(d *Delta[int]) { d.CloseBuffered() },
	} {
		d, r := owned(3)
		woken := 0
		d.Offer(0, 1)
		d.Wake(func() { woken++ })
		buffer(d)
		// A Next in between behaves as before: it gets what was visible, then nothing.
		wantValues(t, d, []int{0, 1}, nil)
		if woken > 0 || len(r.ended) > 0 || len(r.over) > 0 {
			t.Errorf("%s: observed before the flush", name)
		}
		d.Flush()
		if woken != 1 {
			t.Errorf("%s: woken %d times by the flush", name, woken)
		}
		d.Flush() // idempotent
		if woken != 1 || len(r.ended) > 1 {
			t.Errorf("%s: a second flush did something", name)
		}
	}
}

func TestContract_2_3_SeedIsNotObservableBeforeTheFlush(t *testing.T) {
	d, _ := owned(0)
	d.SeedBuffered(2, func(i int) int { return i })
	d.OfferBuffered(2)
	wantValues(t, d, nil, nil)
	d.Flush()
	wantValues(t, d, []int{0, 1, 2}, nil)
}

func TestContract_2_3_FlushIsCheap(t *testing.T) {
	d, _ := owned(0)
	if n := testing.AllocsPerRun(100, d.Flush); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestContract_2_4_NextEnds(t *testing.T) {
	ctx := context.Background()
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		end    func(*Delta[int])
		values []int
		err    error
	}{
		"close delivers first":                 {(*Delta[int]).Close, []int{1, 2}, io.EOF},
		"fail drops":                           {func(d *Delta[int]) { d.Fail(cause) }, nil, cause},
		"cancel drops":                         {(*Delta[int]).Cancel, nil, ErrCancelled},
		"close, then cancel":                   {func(d *Delta[int]) { d.Close(); d.Cancel() }, nil, ErrCancelled},
		"fail, then close":                     {func(d *Delta[int]) { d.Fail(cause); d.Close(); d.Cancel() }, nil, cause},
		"cancel before the flush of a failure": {func(d *Delta[int]) { d.FailBuffered(cause); d.Cancel(); d.Flush() }, nil, ErrCancelled},
	} {
		d, r := owned(0)
		d.Offer(1, 2)
		c.end(d)
		var got []int
		for {
			v, err := d.Next(ctx)
			if err != nil {
				if !errors.Is(err, c.err) {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			got = append(got, v)
		}
		if !slices.Equal(got, c.values) {
			t.Errorf("%s: %v", name, got)
		}
		if len(r.ended) != 1 {
			t.Errorf("%s: ended %v", name, r.ended)
		}
		d.Offer(3)
		if v, ok, err := d.Poll(); ok || err == nil {
			t.Errorf("%s: a dead mailbox gave %d", name, v)
		}
	}
}

func TestContract_2_4_CancelledContextLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := owned(0)
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan error)
		go func() {
			_, err := d.Next(ctx)
			done <- err
		}()
		synctest.Wait()
		cancel(stop)
		if err := <-done; !errors.Is(err, stop) {
			t.Fatal(err)
		}
		d.Offer(1)
		// What is there is given even with a context that has ended: nobody waits.
		if v, err := d.Next(ctx); v != 1 || err != nil {
			t.Fatal(v, err)
		}
		if _, err := d.Next(ctx); !errors.Is(err, stop) {
			t.Fatal(err)
		}
	})
}

func TestContract_2_4_NextWaits(t *testing.T) {
	for name, end := range map[string]func(*Delta[int]){
		"value": func(d *Delta[int]) { d.Offer(1) }, "close": (*Delta[int]).Close,
		"fail": func(d *Delta[int]) { d.Fail(io.ErrUnexpectedEOF) }, "cancel": (*Delta[int]).Cancel,
		"overflow": func(d *Delta[int]) { d.Offer(1, 2, 3) },
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _ := owned(2)
			woke := false
			go func() {
				_, _ = d.Next(context.Background())
				woke = true
			}()
			synctest.Wait()
			if woke {
				t.Errorf("%s: did not wait", name)
			}
			end(d)
			synctest.Wait()
			if !woke {
				t.Errorf("%s: still waits", name)
				d.Cancel()
			}
		})
	}
}

func TestContract_2_4_Iterator(t *testing.T) {
	d, _ := owned(0)
	d.Offer(1, 2, 3)
	for v, err := range d.All(context.Background()) {
		if v != 1 || err != nil {
			t.Fatal(v, err)
		}
		break // leaves the rest
	}
	d.Close()
	var got []int
	for v, err := range d.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	if !slices.Equal(got, []int{2, 3}) {
		t.Fatal(got)
	}
	f, _ := owned(0)
	f.Fail(errOver)
	n := 0
	for _, err := range f.All(context.Background()) {
		if n++; !errors.Is(err, errOver) {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Fatalf("the end was yielded %d times", n)
	}
}

func TestContract_2_4_WakeRunsOnTheFlusher(t *testing.T) {
	for name, f := range map[string]func(*Delta[int]){
		"flush": func(d *Delta[int]) { d.OfferBuffered(1); d.Flush() }, "close": (*Delta[int]).Close,
		"fail": func(d *Delta[int]) { d.Fail(errOver) }, "cancel": (*Delta[int]).Cancel,
	} {
		d, _ := owned(0)
		inside, ran := false, false
		d.Wake(func() { ran = inside }) // a race, or false, on any other goroutine
		inside = true
		f(d)
		inside = false
		if !ran {
			t.Errorf("%s: not woken on its goroutine", name)
		}
	}
}

func TestContract_2_4_WakeReenters(t *testing.T) {
	d, r := owned(0)
	var got []int
	depth, deepest := 0, 0
	d.Wake(func() {
		depth++
		deepest = max(deepest, depth)
		vs, err := drain(d)
		got = append(got, vs...)
		if len(got) == 1 {
			d.Offer(2) // offers, flushes
		}
		if len(got) == 2 && err == nil {
			d.Cancel()
		}
		depth--
	})
	d.Offer(1)
	if !slices.Equal(got, []int{1, 2}) || deepest != 1 || len(r.ended) != 1 {
		t.Fatalf("got %v, nested %d, ended %v", got, deepest, r.ended)
	}
}

func TestContract_2_4_WakeNeverTwiceAtOnce(t *testing.T) {
	d, _ := owned(0)
	var mu sync.Mutex
	running, sum := 0, 0
	d.Wake(func() {
		mu.Lock()
		running++
		if running > 1 {
			t.Error("two at once")
		}
		mu.Unlock()
		vs, _ := drain(d)
		mu.Lock()
		for _, v := range vs {
			sum += v
		}
		running--
		mu.Unlock()
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				d.Offer(1)
			}
		})
	}
	wg.Wait()
	if sum != 2000 {
		t.Fatalf("read %d of 2000: a wake-up was lost", sum)
	}
}

func TestContract_2_5_EndedExactlyOnce(t *testing.T) {
	ends := map[string]func(*Delta[int]){
		"cancel": (*Delta[int]).Cancel, "close": (*Delta[int]).Close,
		"fail": func(d *Delta[int]) { d.Fail(errOver) }, "overflow": func(d *Delta[int]) { d.Offer(1, 2, 3) },
	}
	for first, f := range ends {
		for second, g := range ends {
			d, r := owned(2)
			f(d)
			if len(r.ended) != 1 {
				t.Fatalf("%s: told %d times", first, len(r.ended))
			}
			g(d)
			d.Flush()
			if len(r.ended) != 1 {
				t.Errorf("%s, %s: told %d times", first, second, len(r.ended))
			}
		}
	}
}

func TestContract_2_6_SeedDoesNotSpendTheBound(t *testing.T) {
	d, r := owned(2)
	d.SeedBuffered(10, func(i int) int { return i })
	d.OfferBuffered(10, 11)
	d.Flush()
	if len(r.over) > 0 {
		t.Fatal("overflowed")
	}
	wantValues(t, d, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, nil)
	d.Offer(1, 2, 3)
	if len(r.over) != 1 {
		t.Fatal("the bound no longer holds")
	}
}

func TestPending(t *testing.T) {
	d, _ := owned(0)
	d.SeedBuffered(2, func(i int) int { return i })
	d.OfferBuffered(7)
	if n := d.Pending(); n != 3 {
		t.Fatal(n)
	}
	d.Flush()
	d.Poll()
	if v, returned, drained := d.Last(); d.Pending() != 2 || v != 0 || !returned || drained {
		t.Fatal(v, returned, drained)
	}
}

// A mailbox against a plain list, under random calls.
func TestDeltaModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.IntRange(0, 4).Draw(t, "bound")
		d, r := owned(bound)
		var visible, buffered []int
		var end, pending error
		last, lost, n := 0, 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				var vs []int
				for range rapid.IntRange(1, 3).Draw(t, "n") {
					n++
					vs = append(vs, n)
				}
				d.OfferBuffered(vs...)
				switch {
				case end != nil || pending != nil && !errors.Is(pending, errOver):
				case pending != nil:
					lost += len(vs)
				case bound > 0 && len(visible)+len(buffered)+len(vs) > bound:
					pending, lost = errOver, len(vs)
				default:
					buffered = append(buffered, vs...)
				}
			},
			"close": func(*rapid.T) { d.CloseBuffered(); pending = first(pending, io.EOF) },
			"fail":  func(*rapid.T) { d.FailBuffered(io.ErrNoProgress); pending = first(pending, io.ErrNoProgress) },
			"cancel": func(*rapid.T) {
				d.Cancel()
				if end == nil || end == io.EOF && len(visible) > 0 {
					end, visible, buffered = ErrCancelled, nil, nil
				}
			},
			"flush": func(t *rapid.T) {
				d.Flush()
				if end != nil {
					return
				}
				if errors.Is(pending, errOver) {
					o := r.over[len(r.over)-1]
					if o.Lost != len(visible)+len(buffered)+lost || o.Returned != (last > 0) || o.Last != last {
						t.Fatalf("%+v", o)
					}
				}
				visible, buffered, end = append(visible, buffered...), nil, pending
				if end != nil && end != io.EOF {
					visible = nil
				}
			},
			"read": func(t *rapid.T) {
				v, ok, err := d.Poll()
				if len(visible) == 0 {
					if ok || !errors.Is(err, end) {
						t.Fatalf("got %d, %v; want the end %v", v, err, end)
					}
					return
				}
				if !ok || err != nil || v != visible[0] {
					t.Fatalf("got %d, %v, %v; want %d", v, ok, err, visible[0])
				}
				last, visible = v, visible[1:]
			},
			"": func(t *rapid.T) {
				if d.Pending() != len(visible)+len(buffered) {
					t.Fatalf("pending %d, want %d and %d", d.Pending(), len(visible), len(buffered))
				}
				if told := len(r.ended) > 0; told != (end != nil) || len(r.ended) > 1 {
					t.Fatalf("told %v, end %v", r.ended, end)
				}
			},
		})
	})
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func TestIdleMailboxIsSmall(t *testing.T) {
	d, _ := owned(0)
	d.Offer(make([]int, 1000)...)
	drain(d)
	if d.ring != nil {
		t.Fatalf("keeps %d slots", len(d.ring))
	}
}
