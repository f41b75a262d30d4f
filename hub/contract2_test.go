package hub

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

func TestContract_2_1_OverflowCarriesTheLastCursor(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Start: Origin, Bound: 2})
	f.block("t1: g.0 > a")
	if _, err := s.Next(context.Background()); err != nil { // the seed
		t.Fatal(err)
	}
	last, err := s.Next(context.Background()) // spent
	must(t, err)
	f.block("t2: t1.0 > a a")
	var over *OverflowError
	_, _, err = s.Poll()
	if !errors.As(err, &over) || !over.Resumable || over.Lost != 4 {
		t.Fatalf("%v: %+v", err, over)
	}
	if want, _ := last.Cursor(); over.Cursor != want {
		t.Fatalf("cursor %v, want that of the last event read, %v", over.Cursor, want)
	}
	// From there a reader goes on with what was lost.
	r := f.sub(q("a"), Options{Start: Resume, After: over.Cursor})
	f.want(r, "created t1.0 by t1 @0", "spent t1.0 by t2 @1", "created t2.0 by t2 @1", "created t2.1 by t2 @1")
}

func TestContract_2_1_NothingToResumeFromInsideTheSeed(t *testing.T) {
	for read := range 3 {
		f := newFx(t)
		f.block("t1: g.0 > a a")
		s := f.sub(q("a"), Options{Seed: SeedNow, Bound: 1})
		for range read {
			_, err := s.Next(context.Background())
			must(t, err)
		}
		f.block("t2: t1.0 > a a")
		var over *OverflowError
		if _, _, err := s.Poll(); !errors.As(err, &over) || over.Resumable != (read == 2) || over.Lost != 2-read+3 {
			t.Errorf("after %d of 2 seed events: %+v", read, over)
		}
	}
}

func TestContract_2_1_OthersDoNotNotice(t *testing.T) {
	f := newFx(t)
	stuck, reads := f.sub(q("a"), Options{Bound: 1}), f.sub(q("a"), Options{Bound: 3})
	for i := range 20 {
		f.block("t" + strconv.Itoa(i) + ": > a")
		f.want(reads, "created t"+strconv.Itoa(i)+".0 by t"+strconv.Itoa(i)+" @"+strconv.Itoa(i))
	}
	if got := f.got(stuck); len(got) != 1 || !strings.HasPrefix(got[0], "end: overflow lost=2") {
		t.Fatal(got)
	}
}

func TestContract_2_3_BlocksAreBufferedThenFlushed(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Bound: 2})
	tip, err := f.SubscribeTip()
	must(t, err)
	if v, _, _ := tip.Poll(); v != chain.Origin {
		t.Fatal(v)
	}
	woken := 0
	s.Wake(func() { woken++ })
	for round := range 2 { // the second time it overflows
		b := f.next("t" + strconv.Itoa(f.fork) + ": > a a")
		f.keep(b)
		flush, err := f.BufferBlock(b)
		must(t, err)
		before := woken
		// What was there before is still given, and nothing else.
		if _, ok, err := s.Poll(); ok != (round == 1) || err != nil || woken != before {
			t.Fatal("observed before the flush")
		}
		if _, ok, _ := tip.Poll(); ok {
			t.Fatal("the tip was observed before the flush")
		}
		if f.Tip() != b.At {
			t.Fatal("the hub itself has to know")
		}
		flush()
		flush()
		if woken != before+1 {
			t.Fatalf("woken %d times", woken-before)
		}
		if v, ok, _ := tip.Poll(); !ok || v != b.At {
			t.Fatal("no tip")
		}
	}
	f = newFx(t)
	s = f.sub(q("a"), Options{})
	f.block("t1: g.0 > a")
	f.got(s)
	flush, err := f.BufferRollback(chain.Origin)
	must(t, err)
	if got := f.got(s); got != nil {
		t.Fatal(got)
	}
	flush()
	f.want(s, "rolledback @origin")
}

// soon fails the test, instead of hanging, if f does not return.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("deadlock")
	}
}

func TestContract_2_4_WakeMayDoAnything(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{})
	var other *UTxOSubscription
	s.Wake(func() {
		if other != nil {
			return
		}
		var err error
		other, err = f.SubscribeUTxO(q("a"), Options{}) // subscribes
		must(t, err)
		f.Tip()
		f.want(s, "created t1.0 by t1 @0") // reads
		s.Cancel()                         // cancels
	})
	soon(t, func() { f.block("t1: > a") })
	f.want(s, "end: cancelled")
	if n := f.Subscribers(); n != 1 {
		t.Fatalf("%d subscriptions", n)
	}
	f.block("t2: > a")
	f.want(other, "created t2.0 by t2 @1")
}

func TestContract_2_5_EveryDeathUnregistersAndTells(t *testing.T) {
	for name, end := range map[string]func(*fx, *UTxOSubscription){
		"cancel":   func(_ *fx, s *UTxOSubscription) { s.Cancel() },
		"overflow": func(f *fx, _ *UTxOSubscription) { f.covering("a", "t1: > a a a") },
		"gap":      func(f *fx, _ *UTxOSubscription) { f.covering("b") },
		"close":    func(f *fx, _ *UTxOSubscription) { f.CloseAll() },
		"fail":     func(f *fx, _ *UTxOSubscription) { f.FailAll(errModel) },
		"resync":   func(f *fx, _ *UTxOSubscription) { f.RollbackTo(pt('?', -1)) },
	} {
		told := 0
		f := newFx(t, partial, func(c *Config) { c.Changed = func() { told++ } })
		for range 4 {
			f.covering("a")
		}
		s := f.sub(q("a"), Options{Bound: 2})
		f.covering("a")
		if len(f.Sources()) != 1 || told != 1 {
			t.Fatalf("%s: sources %v, told %d times", name, f.Sources(), told)
		}
		woken := 0
		s.Wake(func() {
			if woken++; told < 2 {
				t.Errorf("%s: the reader woke before the provider was told", name)
			}
		})
		end(f, s)
		if n := f.Subscribers(); n != 0 || len(f.Sources()) != 0 || told != 2 || woken != 1 {
			t.Errorf("%s: %d subscriptions, sources %v, told %d times, woken %d", name, n, f.Sources(), told, woken)
		}
		s.Cancel()
		if told != 2 {
			t.Errorf("%s: told again", name)
		}
	}
}

func TestContract_2_5_CloseDeliversFirst(t *testing.T) {
	f := newFx(t)
	s := f.sub(q("a"), Options{Start: Origin})
	f.block("t1: > a")
	f.CloseAll()
	f.want(s, "seed g.0 @origin", "created t1.0 by t1 @0", "end: closed")
}

func TestContract_2_6_AWalletLargerThanTheBound(t *testing.T) {
	f := newFx(t)
	f.block("t1: g.0 > a a a a a a")
	s := f.sub(q("a"), Options{Seed: SeedNow, Bound: 1})
	f.block("t2: t1.0")
	if got := f.got(s); len(got) != 7 {
		t.Fatal(got)
	}
}

// exportedFunc is an exported function or method of an exported type.
var exportedFunc = regexp.MustCompile(`^func (\([a-z]+ \*?[A-Z]\w*(\[\w+\])?\) )?[A-Z]`)

// Contract 2.7: only the hub knows mailboxes, so nobody else's signature can
// name one; and none of the hub's own does.
func TestContract_2_7_NobodyNamesAMailbox(t *testing.T) {
	root := ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return nil // somebody else's test will say
		}
		for _, i := range file.Imports {
			// A command exports nothing; ours measures what a mailbox takes.
			if strings.HasSuffix(i.Path.Value, `/mailbox"`) && filepath.Dir(path) != filepath.Join(root, "hub") && file.Name.Name != "main" {
				t.Errorf("%s imports the mailboxes", path)
			}
		}
		return nil
	})
	must(t, err)
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		src, err := os.ReadFile(name)
		must(t, err)
		for _, line := range strings.Split(string(src), "\n") {
			if exportedFunc.MatchString(line) && strings.Contains(line, "mailbox.") && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
