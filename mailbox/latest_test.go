package mailbox

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

func TestContract_2_2_NewerWins(t *testing.T) {
	l := NewLatest[int](nil)
	for i := range 5 {
		l.Offer(i)
	}
	if v, ok, err := l.Poll(); v != 4 || !ok || err != nil {
		t.Fatal(v, ok, err)
	}
	if _, ok, _ := l.Poll(); ok || l.Pending() != 0 {
		t.Fatal("given twice")
	}
}

func TestContract_2_2_BufferedIsNotObservable(t *testing.T) {
	ended := 0
	l := NewLatest[int](func(error) { ended++ })
	l.Offer(1)
	woken := 0
	l.Wake(func() { woken++ })
	l.OfferBuffered(2)
	l.FailBuffered(errOver)
	if v, ok, err := l.Poll(); v != 1 || !ok || err != nil {
		t.Fatal(v, ok, err)
	}
	if _, ok, err := l.Poll(); ok || err != nil || woken+ended > 0 {
		t.Fatal("observed before the flush")
	}
	l.Flush()
	l.Flush()
	if _, ok, err := l.Poll(); ok || !errors.Is(err, errOver) || woken != 1 || ended != 1 {
		t.Fatal(ok, err, woken, ended)
	}
}

func TestContract_2_2_Ends(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*Latest[int])
		value bool
		err   error
	}{
		"close":             {(*Latest[int]).Close, true, io.EOF},
		"fail":              {func(l *Latest[int]) { l.Fail(errOver) }, false, errOver},
		"cancel":            {(*Latest[int]).Cancel, false, ErrCancelled},
		"close then cancel": {func(l *Latest[int]) { l.Close(); l.Cancel() }, false, ErrCancelled},
	} {
		ended := 0
		l := NewLatest[int](func(error) { ended++ })
		l.Offer(1)
		c.end(l)
		v, err := l.Next(context.Background())
		if c.value && (v != 1 || err != nil) || !c.value && !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, v, err)
		}
		l.Offer(2)
		if _, err := l.Next(context.Background()); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if ended != 1 {
			t.Errorf("%s: told %d times", name, ended)
		}
	}
}

func TestLatestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLatest[int](nil)
		got := 0
		go func() {
			for v, err := range l.All(context.Background()) {
				if err != nil {
					return
				}
				got = v
			}
		}()
		synctest.Wait()
		l.Offer(3)
		synctest.Wait()
		if got != 3 {
			t.Fatal(got)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		l.Close()
		synctest.Wait()
		if _, err := l.Next(ctx); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}
