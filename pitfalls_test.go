package ourotail_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/internal/model"
	"github.com/ourotail/ourotail/query"
)

// stand is a follower before a list of blocks, in virtual time.
type stand struct {
	t     *testing.T
	list  *model.List
	hooks ourotail.Hooks
	cfg   ourotail.Config
	*ourotail.Follower
	cancel context.CancelFunc
	ran    chan error
}

// onStand runs a test within a bubble.
func onStand(t *testing.T, k, blocks int, test func(t *testing.T, s *stand)) {
	t.Helper()
	dir := t.TempDir()
	f, err := forge.New(forge.Options{Seed: 3, K: k, EpochBlocks: 9})
	if err != nil {
		t.Fatal(err)
	}
	g := genesisOf(t, f.Genesis())
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, list: model.NewList(f), cfg: ourotail.Config{SocketPath: "list", Genesis: g, DataDir: filepath.Join(dir, "data"), Memory: 64 << 20}}
		s.hooks = ourotail.Hooks(s.list.Hooks())
		s.replace(0, blocks)
		s.open()
		defer s.close()
		test(t, s)
	})
}

func (s *stand) open() {
	s.t.Helper()
	var err error
	if s.Follower, err = ourotail.OpenWith(s.t.Context(), s.cfg, s.hooks); err != nil {
		s.t.Fatal(err)
	}
}

// run lets the follower run, and some time pass.
func (s *stand) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.cancel, s.ran = cancel, make(chan error, 1)
	go func() { s.ran <- s.Run(ctx) }()
	s.wait(time.Minute)
}

func (s *stand) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stand) stop() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	return <-s.ran
}

func (s *stand) close() {
	if s.Follower == nil {
		return
	}
	_ = s.stop()
	s.CloseSubscriptions()
	if err := s.Follower.Close(); err != nil {
		s.t.Error(err)
	}
	s.Follower = nil
}

func (s *stand) replace(n, m int) {
	s.t.Helper()
	if err := s.list.Replace(n, m); err != nil {
		s.t.Fatal(err)
	}
}

// atTip checks that the follower is at the node's tip.
func (s *stand) atTip() {
	s.t.Helper()
	if head := s.State().Head; head.At() != s.list.Tip() {
		s.t.Fatalf("at %v, the node's tip is %v (%v)", head.At(), s.list.Tip(), s.Progress().LastError)
	}
}

// mains are the chain's main blocks above a height.
func (s *stand) mains(above chain.Height) (out []chain.At) {
	for _, b := range s.list.Blocks() {
		if !b.Boundary && b.Height > above {
			out = append(out, b.At())
		}
	}
	return out
}

// read takes every event that is there.
func read[E any](t *testing.T, sub hub.Subscription[E]) (out []E) {
	t.Helper()
	for {
		e, ok, err := sub.Poll()
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		out = append(out, e)
	}
}

func (s *stand) blocks(o hub.Options) hub.Subscription[chain.BlockEvent] {
	s.t.Helper()
	o.Bound = hub.Unbounded
	sub, err := s.SubscribeBlocks(query.EveryBlock(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

// TestReconnectIsNoReorgAndSkipsOrRepeatsNothing: twenty times the connection
// ends and the chain grows meanwhile. A reader gets every block once and no
// rollback; none is counted.
func TestReconnectIsNoReorgAndSkipsOrRepeatsNothing(t *testing.T) {
	onStand(t, 20, 60, func(t *testing.T, s *stand) {
		s.run()
		s.atTip()
		from := s.State().Head.Height
		sub := s.blocks(hub.Options{})
		for i := range 20 {
			s.list.HangUp()
			if i%3 > 0 {
				s.replace(0, i%4)
			}
			s.wait(time.Minute)
			s.atTip()
		}
		var got []chain.At
		for _, e := range read(t, sub) {
			if e.Kind != chain.Applied {
				t.Fatalf("%v to %v", e.Kind, e.At)
			}
			got = append(got, e.At)
		}
		if want := s.mains(from); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if n := s.Progress().Rollbacks; n != 0 {
			t.Errorf("%d rollbacks are counted", n)
		}
	})
}

// TestRestartIsNoReorg: nor does a restart count or tell of one.
func TestRestartIsNoReorg(t *testing.T) {
	onStand(t, 20, 60, func(t *testing.T, s *stand) {
		s.run()
		for range 5 {
			s.close()
			s.open()
			sub := s.blocks(hub.Options{})
			s.run()
			s.atTip()
			if got := read(t, sub); len(got) > 0 || s.Progress().Rollbacks != 0 {
				t.Fatalf("%d events, %d rollbacks", len(got), s.Progress().Rollbacks)
			}
		}
	})
}

// TestRollbackComesBeforeTheNewForksFirstBlock: whatever is read at whatever
// moment, each block stands on the one before it or a rollback lies between; at
// depth 3, a buffer half full when the chain forks loses no block.
func TestRollbackComesBeforeTheNewForksFirstBlock(t *testing.T) { forks(t, 0) }

// TestConfirmationsLoseNoBlockToARollback is the same for a reader three blocks
// below the tip, when its buffer is half full.
func TestConfirmationsLoseNoBlockToARollback(t *testing.T) { forks(t, 3) }

func forks(t *testing.T, depth chain.Height) {
	onStand(t, 30, 70, func(t *testing.T, s *stand) {
		s.run()
		parents := map[chain.Point]chain.Hash{}
		note := func() {
			for _, b := range s.list.Blocks() {
				parents[b.Point] = b.Parent
			}
		}
		note()
		sub := s.blocks(hub.Options{Confirmations: depth})
		first := s.State().Head.Height - depth
		var chainOf []chain.At // what the reader has
		told := 0
		for n := 1; n <= 12; n++ {
			s.replace(n, n+1+n%3)
			note()
			s.wait(time.Second)
			for _, e := range read(t, sub) {
				if e.Kind == chain.RolledBack {
					told++
					for len(chainOf) > 0 && chainOf[len(chainOf)-1].Height > e.At.Height {
						chainOf = chainOf[:len(chainOf)-1]
					}
					first = min(first, e.At.Height)
					continue
				}
				if k := len(chainOf); k > 0 && parents[e.At.Point] != chainOf[k-1].Point.Hash {
					t.Fatalf("%v behind %v", e.At, chainOf[k-1])
				}
				chainOf = append(chainOf, e.At)
			}
		}
		s.atTip()
		want := s.mains(first)
		if want = want[:len(want)-int(depth)]; !slices.Equal(chainOf, want) {
			t.Errorf("%v, want %v", chainOf, want)
		}
		if told < 12-int(depth) || told == 12 && depth > 0 {
			t.Errorf("%d rollbacks of 12 forks were told at depth %d", told, depth)
		}
	})
}

// TestRestartInTheMiddleOfAReplayThenAFork: a reader has taken half of the past
// when the follower stops, and the part where it stands leaves the chain. What it
// goes on with tells it.
func TestRestartInTheMiddleOfAReplayThenAFork(t *testing.T) {
	onStand(t, 30, 25, func(t *testing.T, s *stand) {
		s.run()
		sub := s.blocks(hub.Options{Start: hub.Origin})
		var have []chain.At
		var at chain.Cursor
		for len(have) < 20 { // of 24 or so
			e, ok, err := sub.Poll()
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			have = append(have, e.At)
			at, _ = e.Cursor()
		}
		s.close()
		s.replace(12, 15)
		s.open()
		if _, err := s.SubscribeBlocks(query.EveryBlock(), hub.Options{Start: hub.After, After: at}); err != nil {
			t.Fatalf("before the fork is known: %v", err)
		}
		s.run()
		s.atTip()
		s.close()
		s.open() // a process that never saw the fork
		s.run()
		for _, e := range read(t, s.blocks(hub.Options{Start: hub.Resume, After: at, Bound: hub.Unbounded})) {
			if e.Kind == chain.RolledBack {
				have = slices.DeleteFunc(have, func(a chain.At) bool { return a.Height > e.At.Height })
				continue
			}
			have = append(have, e.At)
		}
		if want := s.mains(chain.OriginHeight); !slices.Equal(have, want) {
			t.Errorf("%v, want %v", have, want)
		}
	})
}

// TestForkOfTheWholeChainWithinK: a chain of k blocks behind the genesis boundary
// block is replaced as a whole, and readers are told.
func TestForkOfTheWholeChainWithinK(t *testing.T) {
	const k = 6
	onStand(t, k, k+1, func(t *testing.T, s *stand) { // the boundary block, and k others
		s.run()
		s.atTip()
		if s.State().Head.Height != k || !s.list.Blocks()[0].Boundary {
			t.Fatalf("the head is %v: the test does not test what it says", s.State().Head.At())
		}
		sub := s.blocks(hub.Options{Start: hub.Origin})
		read(t, sub)
		s.replace(k, k+2)
		s.wait(time.Minute)
		s.atTip()
		got := read(t, sub)
		if len(got) != k+3 || got[0].Kind != chain.RolledBack || !got[0].At.IsOrigin() {
			t.Errorf("%d events, the first is %v to %v", len(got), got[0].Kind, got[0].At)
		}
	})
}

// TestEveryTroubleIsRetriedWithPatience: whatever a dial ends with, once there was
// a connection it is tried again, not hot, and goes on when the trouble is over.
func TestEveryTroubleIsRetriedWithPatience(t *testing.T) {
	for _, kind := range []error{chainsync.ErrNoSocket, chainsync.ErrRefused, chainsync.ErrPermission, chainsync.ErrNotSocket, chainsync.ErrConnect, chainsync.ErrSilent,
		chainsync.ErrWrongNetwork, chainsync.ErrNoCommonVersion, chainsync.ErrHandshake, chainsync.ErrDisconnected, chainsync.ErrProtocol, chainsync.ErrMalformed, chainsync.ErrTooLarge} {
		t.Run(kind.Error(), func(t *testing.T) {
			onStand(t, 10, 20, func(t *testing.T, s *stand) {
				var bad atomic.Bool
				var mu sync.Mutex
				var dials []time.Time // guarded by mu
				inner := s.hooks.Dial
				s.close()
				s.hooks.Dial = func(ctx context.Context) (follow.Conn, error) {
					if !bad.Load() {
						return inner(ctx)
					}
					mu.Lock()
					defer mu.Unlock()
					dials = append(dials, time.Now())
					return nil, &chainsync.Error{Op: "connect", Path: "list", Kind: kind}
				}
				s.open()
				s.run()
				s.atTip()
				bad.Store(true)
				s.list.HangUp()
				s.replace(0, 5)
				s.wait(10 * time.Minute)
				mu.Lock()
				made := slices.Clone(dials)
				mu.Unlock()
				if n := len(made); n < 15 || n > 60 {
					t.Errorf("%d dials in ten minutes", n)
				}
				for i := 1; i < len(made); i++ {
					if d := made[i].Sub(made[i-1]); d < 100*time.Millisecond || d < time.Second && !chainsync.Retryable(&chainsync.Error{Kind: kind}) {
						t.Errorf("dial %d came %v after the one before", i, d)
					}
				}
				if h := s.Health(); h.Grade != ourotail.Unhealthy || !strings.Contains(h.LastError, kind.Error()) {
					t.Errorf("health says %+v", h)
				}
				bad.Store(false)
				s.wait(2 * time.Minute)
				s.atTip()
				if h := s.Health(); h.LastError != "" || !h.Connected {
					t.Errorf("health says %+v", h)
				}
			})
		})
	}
}

// TestOnlyAPersonCanMendItIsSaidAtOnce: before the first connection, what waiting
// does not mend ends the run.
func TestOnlyAPersonCanMendItIsSaidAtOnce(t *testing.T) {
	onStand(t, 10, 20, func(t *testing.T, s *stand) {
		s.close()
		s.hooks.Dial = func(context.Context) (follow.Conn, error) {
			return nil, &chainsync.Error{Op: "handshake", Path: "list", Kind: chainsync.ErrWrongNetwork}
		}
		s.open()
		if err := s.Run(t.Context()); !errors.Is(err, chainsync.ErrWrongNetwork) {
			t.Errorf("got %v", err)
		}
	})
}

// TestUndecodableBlockTurnsHealthAndIsKept: the block is named, its bytes are in
// the data directory, attempts are far apart, and following goes on when a node
// sends it whole.
func TestUndecodableBlockTurnsHealthAndIsKept(t *testing.T) {
	onStand(t, 10, 30, func(t *testing.T, s *stand) {
		var dials atomic.Int32
		inner := s.hooks.Dial
		bad := s.list.Blocks()[25]
		var whole atomic.Bool
		s.close()
		s.hooks.Dial = func(ctx context.Context) (follow.Conn, error) {
			dials.Add(1)
			c, err := inner(ctx)
			return &cutting{Conn: c, at: bad, whole: &whole}, err
		}
		s.open()
		s.run()
		s.wait(10 * time.Minute)
		h := s.Health()
		kept, err := os.ReadFile(h.Undecodable)
		name := fmt.Sprintf("after-height-%d.cbor", s.list.Blocks()[24].Height)
		if h.Grade != ourotail.Unhealthy || err != nil || !slices.Equal(kept, bad.Raw[:len(bad.Raw)-1]) || filepath.Base(h.Undecodable) != name {
			t.Errorf("health says %+v, %d bytes are kept (%v)", h, len(kept), err)
		}
		if head := s.State().Head; head.At() != s.list.Blocks()[24].At() {
			t.Errorf("the head is %v", head.At())
		}
		if n := dials.Load(); n > 40 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		whole.Store(true)
		s.wait(2 * time.Minute)
		s.atTip()
		if h := s.Health(); h.Undecodable != "" || h.LastError != "" {
			t.Errorf("health says %+v", h)
		}
	})
}

// cutting is a connection that cuts one block short.
type cutting struct {
	follow.Conn
	at    forge.Block
	whole *atomic.Bool
}

func (c *cutting) Next(ctx context.Context) (chain.Messages, error) {
	m, err := c.Conn.Next(ctx)
	for i := range m.List {
		if raw := m.List[i].Raw; slices.Equal(raw, c.at.Raw) && !c.whole.Load() {
			m.List[i].Raw = raw[:len(raw)-1]
		}
	}
	return m, err
}
