package chainsync

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// onPipe connects to a scripted node in memory, within a synctest bubble, so
// that hours of silence cost nothing.
func onPipe(t *testing.T, cfg Config, script func(*peer) error) *Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := script(&peer{conn: newBuffered(theirs)}); errors.Is(err, errPeer) {
			t.Error(err)
		}
		theirs.Close()
	}()
	t.Cleanup(func() { <-done })
	cfg.Magic = testMagic
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeout(t.Context(), cfg.HandshakeTimeout)
	defer cancel()
	c, err := handshake(ctx, t.Context(), ours, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// buffered is a net.Pipe's end that takes what the other end writes at once, as
// a socket does.
type buffered struct {
	net.Conn
	mu   sync.Mutex
	cond sync.Cond
	buf  []byte
	err  error
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{Conn: conn}
	b.cond.L = &b.mu
	go func() {
		for p := make([]byte, 4096); ; {
			n, err := conn.Read(p)
			b.mu.Lock()
			b.buf = append(b.buf, p[:n]...)
			b.err = err
			b.cond.Broadcast()
			b.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return b
}

// stop makes it take no more.
func (b *buffered) stop() { _ = b.Conn.SetReadDeadline(time.Unix(1, 0)) }

func (b *buffered) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.buf) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.cond.Wait()
	}
	n := copy(p, b.buf)
	b.buf = b.buf[n:]
	return n, nil
}

// begin shakes hands and answers an intersection at origin.
func (p *peer) begin(tip chain.Tip) error {
	if err := p.shake(); err != nil {
		return err
	}
	if _, err := p.find(); err != nil {
		return err
	}
	return p.send(5, intersectFound(chain.Point{}, tip))
}

func mustIntersect(t *testing.T, c *Conn) {
	t.Helper()
	if _, ok, _, err := c.Intersect(t.Context(), []chain.Point{{}}); err != nil || !ok {
		t.Fatalf("intersect: %v %v", ok, err)
	}
}

// TestQuietChainIsNotDead: after "await" a node may be silent for ever.
// (Pitfall: the multiplexer closed a quiet but healthy connection after 120 s.)
func TestQuietChainIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := onPipe(t, Config{}, func(p *peer) error {
			err := p.begin(tipAt(1))
			for h := uint64(1); h < 4 && err == nil; h++ {
				_, err = p.requests()
				_ = p.send(5, awaitReply)
				time.Sleep(13 * time.Hour)
				_ = p.send(5, rollForward(block(h, h*20, 100), tipAt(h)))
			}
			_ = p.hold()
			return err
		})
		defer c.Close()
		time.Sleep(time.Hour) // also before an intersection
		mustIntersect(t, c)
		time.Sleep(time.Hour) // and before the first request
		for blocks := 0; blocks < 3; {
			m, err := c.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range m.List {
				if m.Kind == chain.RollForward {
					blocks++
				}
			}
			m.Release()
		}
	})
}

// TestFrozenNode: a node that owes an answer and sends nothing is given up
// after AnswerTimeout and at most a quarter more. (Pitfall: a half-open or
// frozen node was never noticed.)
func TestFrozenNode(t *testing.T) {
	for name, script := range map[string]func(*peer) error{
		"at the intersection": func(p *peer) error { err := p.shake(); _ = p.hold(); return err },
		"at a request":        func(p *peer) error { err := p.begin(tipAt(9)); _ = p.hold(); return err },
		"after a while": func(p *peer) error {
			err := p.begin(tipAt(9000))
			for range 5 {
				n, e := p.requests()
				err = errors.Join(err, e)
				time.Sleep(50 * time.Second) // slow is not frozen
				for range n {
					_ = p.send(5, rollForward(block(1, 20, 100), tipAt(9000)))
				}
			}
			_ = p.hold()
			return err
		},
		"in the middle of a block": func(p *peer) error {
			err := p.begin(tipAt(9000))
			_, e := p.requests()
			for range 100 {
				time.Sleep(50 * time.Second)
				_ = p.send(5, rollForward(block(1, 20, 10_000), tipAt(9000))[:50])
			}
			_ = p.hold()
			return errors.Join(err, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := onPipe(t, Config{}, script)
				defer c.Close()
				time.Sleep(time.Hour)
				heard := time.Now()
				_, _, _, err := c.Intersect(t.Context(), []chain.Point{{}})
				for err == nil {
					var m chain.Messages
					if m, err = c.Next(t.Context()); err == nil {
						heard = time.Now()
						m.Release()
					}
				}
				if name == "in the middle of a block" {
					heard = heard.Add(100 * 50 * time.Second)
				}
				wantError(t, err, ErrSilent, true)
				if d := time.Since(heard); d < time.Minute || d > 76*time.Second {
					t.Errorf("given up after %v", d)
				}
			})
		})
	}
}

// TestNodeTakesNothing: a node that does not read what we write is given up.
func TestNodeTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := onPipe(t, Config{}, func(p *peer) error {
			if err := p.shake(); err != nil {
				return err
			}
			_, err := p.find()
			p.conn.(*buffered).stop()
			_ = p.send(5, intersectFound(chain.Point{}, tipAt(9)))
			time.Sleep(time.Hour)
			return err
		})
		defer c.Close()
		mustIntersect(t, c)
		start := time.Now()
		_, err := c.Next(t.Context())
		wantError(t, err, ErrSilent, true, "took none")
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("given up after %v", d)
		}
	})
}

// TestContextEnds: a context that ends makes every call return at once; Next
// loses nothing by it, and Close never hangs.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := onPipe(t, Config{}, func(p *peer) error {
			err := p.begin(tipAt(1))
			_, e := p.requests()
			<-release
			_ = p.send(5, rollBackward(chain.Point{}, tipAt(1)))
			_ = p.hold()
			return errors.Join(err, e)
		})
		mustIntersect(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		if _, err := c.Next(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		cancel()
		close(release)
		synctest.Wait()
		if _, err := c.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a context that has ended: %v", err)
		}
		m, err := c.Next(t.Context())
		if err != nil || len(m.List) != 1 || m.List[0].Kind != chain.RollBackward {
			t.Fatalf("%+v %v", m.List, err)
		}
		m.Release()
		go c.Close()
		_, err = c.Next(t.Context())
		wantError(t, err, ErrClosed, false)
		c.Close()
		c.Close()
	})
}

// TestIntersectContextEnds: an answer that nobody waits for would confuse
// whoever asks next, so the connection is over.
func TestIntersectContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := onPipe(t, Config{}, func(p *peer) error { err := p.shake(); _ = p.hold(); return err })
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, _, err := c.Intersect(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		_, _, _, err := c.Intersect(t.Context(), nil)
		wantError(t, err, ErrClosed, false)
	})
}

// TestIntersectAgain: not found and probes leave the connection usable; Next
// does not begin where nobody agreed to. (Pitfall: intersection not found
// silently became "start at origin".)
func TestIntersectAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offered [][]byte
		c := onPipe(t, Config{}, func(p *peer) error {
			err := p.shake()
			for _, a := range [][]byte{intersectNotFound(chain.Origin), intersectNotFound(tipAt(7)), intersectFound(pointAt(3), tipAt(8))} {
				points, e := p.find()
				offered = append(offered, points)
				_ = p.send(5, a)
				err = errors.Join(err, e)
			}
			_ = p.hold()
			return err
		})
		defer c.Close()
		_, err := c.Next(t.Context())
		wantError(t, err, ErrUsage, false)
		_, _, _, err = c.Intersect(t.Context(), make([]chain.Point, MaxPoints+1))
		wantError(t, err, ErrUsage, false, "257")
		if found, ok, tip, err := c.Intersect(t.Context(), nil); err != nil || ok || !found.IsOrigin() || tip != chain.Origin {
			t.Errorf("%v %v %v %v", found, ok, tip, err)
		}
		if _, ok, tip, err := c.Intersect(t.Context(), []chain.Point{pointAt(4)}); err != nil || ok || tip != tipAt(7) {
			t.Errorf("%v %v %v", ok, tip, err)
		}
		_, err = c.Next(t.Context())
		wantError(t, err, ErrUsage, false, "no intersection")
		if found, ok, tip, err := c.Intersect(t.Context(), []chain.Point{pointAt(4), pointAt(3)}); err != nil || !ok || found != pointAt(3) || tip != tipAt(8) {
			t.Errorf("%v %v %v %v", found, ok, tip, err)
		}
		if !bytes.Equal(offered[0], []byte{0x80}) || !bytes.Contains(offered[2], hashOf(pointAt(3))) {
			t.Errorf("offered %x", offered)
		}
	})
}

// TestOutOfTurn: whatever the node says when it is not its turn, or to a
// question that was not asked, ends the connection with its name.
func TestOutOfTurn(t *testing.T) {
	after := func(msgs ...[]byte) func(*peer) error {
		return func(p *peer) error {
			err := p.begin(tipAt(9))
			if _, e := p.requests(); e != nil {
				return e
			}
			for _, m := range msgs {
				_ = p.send(5, m)
			}
			_ = p.hold()
			return err
		}
	}
	to := func(answers ...[]byte) func(*peer) error {
		return func(p *peer) error {
			err := p.shake()
			if _, e := p.find(); e != nil {
				return e
			}
			for _, a := range answers {
				_ = p.send(5, a)
			}
			_ = p.hold()
			return err
		}
	}
	rb := rollBackward(chain.Point{}, tipAt(9))
	for _, v := range []struct {
		name   string
		script func(*peer) error
		kind   error
		says   string
	}{
		{"found a point that was not offered", to(intersectFound(pointAt(8), tipAt(9))), ErrProtocol, "not offered"},
		{"block instead of an intersection", to(rollForward(block(1, 1, 100), tipAt(9))), ErrProtocol, "RollForward unasked"},
		{"await instead of an intersection", to(awaitReply), ErrProtocol, "AwaitReply unasked"},
		{"intersection twice", to(intersectFound(chain.Point{}, tipAt(9)), intersectNotFound(tipAt(9))), ErrProtocol, "IntersectNotFound unasked"},
		{"intersection instead of a block", after(intersectFound(chain.Point{}, tipAt(9))), ErrProtocol, "IntersectFound unasked"},
		{"await twice", after(awaitReply, awaitReply), ErrProtocol, "AwaitReply twice"},
		{"two answers to one request", func(p *peer) error {
			err := p.begin(tipAt(9))
			_, e := p.requests()
			_ = p.send(5, cat(rb, rb))
			_ = p.hold()
			return errors.Join(err, e)
		}, ErrProtocol, "RollBackward unasked"},
		{"point that looks like origin", after(cat(0x83, 3, 0x81, 0, 0x82, 0x80, 0)), ErrMalformed, "point of 1 items"},
		{"handshake again", func(p *peer) error {
			err := p.begin(tipAt(9))
			_ = p.send(0, acceptance(testMagic))
			_ = p.hold()
			return err
		}, ErrProtocol, "second handshake"},
		{"block-fetch", func(p *peer) error { err := p.begin(tipAt(9)); _ = p.send(3, rb); _ = p.hold(); return err }, ErrProtocol, "protocol 3"},
		{"state query that nobody began", func(p *peer) error { err := p.begin(tipAt(9)); _ = p.send(7, rb); _ = p.hold(); return err }, ErrProtocol, "protocol ID 7"},
	} {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := onPipe(t, Config{}, v.script)
				defer c.Close()
				_, _, _, err := c.Intersect(t.Context(), []chain.Point{{}})
				for err == nil {
					var m chain.Messages
					if m, err = c.Next(t.Context()); err == nil {
						m.Release()
					}
				}
				wantError(t, err, v.kind, false, v.says)
			})
		})
	}
}

// limited closes a connection after a number of bytes.
type limited struct {
	net.Conn
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p[:min(len(p), l.left)])
	if l.left -= n; l.left == 0 {
		l.Conn.Close()
		return n, io.ErrClosedPipe
	}
	return n, err
}

// TestNodeDiesAnywhere: the node goes away after every number of bytes. What
// came whole is delivered, then the error says that it went.
func TestNodeDiesAnywhere(t *testing.T) {
	stream := cat(rollBackward(chain.Point{}, tipAt(9)), rollForward(block(1, 20, 60), tipAt(9)), rollForward(block(2, 40, 60), tipAt(9)), awaitReply)
	ends := []int{0, len(rollBackward(chain.Point{}, tipAt(9)))}
	ends = append(ends, ends[1]+len(rollForward(block(1, 20, 60), tipAt(9))))
	ends = append(ends, 2*ends[2]-ends[1], len(stream))
	before := len(frame(0, acceptance(testMagic), 0)) + len(frame(5, intersectFound(chain.Point{}, tipAt(9)), 0))
	total := before + 8 + len(stream)
	for n := 1; n <= total; n++ {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go func() {
				p := &peer{conn: &limited{newBuffered(theirs), n}}
				defer theirs.Close()
				if p.begin(tipAt(9)) != nil {
					return
				}
				for want := 4; want > 0; { // the window opens with each answer; here they all come at once
					r, err := p.requests()
					if err != nil {
						return
					}
					want -= r
					if r > 0 && want < 4 {
						break
					}
				}
				_ = p.send(5, stream)
			}()
			cfg := Config{Magic: testMagic}.withDefaults()
			got := 0
			c, err := handshake(t.Context(), t.Context(), ours, cfg)
			if err == nil {
				c.mu.Lock()
				c.window.size, c.window.ahead = 100, -1
				c.mu.Unlock()
				_, _, _, err = c.Intersect(t.Context(), []chain.Point{{}})
				for err == nil {
					var m chain.Messages
					if m, err = c.Next(t.Context()); err == nil {
						got += len(m.List)
						m.Release()
					}
				}
				c.Close()
			}
			want := 0
			for want+1 < len(ends) && n >= before+8+ends[want+1] {
				want++
			}
			if got != want || !errors.Is(err, ErrDisconnected) || !Retryable(err) {
				t.Fatalf("after %d of %d bytes: %d messages, want %d; %v", n, total, got, want, err)
			}
		})
	}
}

// TestSlowReader: whoever takes nothing for a long time makes us ask for no
// more, but never makes the node wait in a write. (Pitfall: the node drops a
// client that does not read for 30 s.)
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, all = 20_000, 2000
		sent := 0
		c := onPipe(t, Config{QueueBytes: 1 << 20}, func(p *peer) error {
			if err := p.begin(tipAt(1 << 20)); err != nil {
				return err
			}
			for sent < all {
				n, err := p.requests()
				if err != nil {
					return err
				}
				for range n {
					start := time.Now()
					if err := p.send(5, rollForward(block(uint64(sent), 1, size), tipAt(1<<20))); err != nil {
						return err
					}
					if d := time.Since(start); d != 0 {
						t.Errorf("block %d: the node waited %v", sent, d)
					}
					sent++
				}
			}
			return p.hold()
		})
		defer c.Close()
		mustIntersect(t, c)
		got := 0
		for got < all {
			m, err := c.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range m.List {
				if h, _ := blockHeight(m.Raw); int(h) != got {
					t.Fatalf("block %d at %d", h, got)
				}
				got++
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if ahead := (sent - got) * size; ahead > 1<<20+2*size {
				t.Fatalf("%d bytes ahead", ahead)
			}
			m.Release()
		}
	})
}

// TestBytesLiveUntilRelease: what a batch holds stays as it is while later
// ones come and go, and after Close.
func TestBytesLiveUntilRelease(t *testing.T) {
	const all = 3000
	path := serve(t, func(p *peer) error {
		err := p.begin(tipAt(1 << 20))
		for sent := 0; sent < all && err == nil; {
			var n int
			n, err = p.requests()
			for range n {
				_ = p.send(5, rollForward(block(uint64(sent), 1, 100+sent*13%30_000), tipAt(1<<20)))
				sent++
			}
		}
		_ = p.hold()
		return err
	})
	c, err := Dial(testContext(t), testConfig(path))
	if err != nil {
		t.Fatal(err)
	}
	mustIntersect(t, c)
	var heldBatches []chain.Messages
	got := 0
	check := func(m chain.Messages) {
		for _, m := range m.List {
			h, _ := blockHeight(m.Raw)
			if !bytes.Equal(m.Raw, block(uint64(h), 1, 100+int(h)*13%30_000)) {
				t.Fatalf("block %d was overwritten", h)
			}
		}
		m.Release()
		m.Release() // a second time does nothing
	}
	for got < all {
		m, err := c.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		got += len(m.List)
		heldBatches = append(heldBatches, m)
		if len(heldBatches) > 5 {
			check(heldBatches[0])
			heldBatches = heldBatches[1:]
		}
	}
	c.Close()
	for _, m := range heldBatches {
		check(m)
	}
}

// TestSlabsAreReused: a long run in bounded memory.
func TestSlabsAreReused(t *testing.T) {
	const all = 4000
	path := serve(t, func(p *peer) error {
		err := p.begin(tipAt(1 << 20))
		msg := frame(5, rollForward(block(5, 1, 32_000), tipAt(1<<20)), 0)
		for sent := 0; sent < all && err == nil; {
			var n int
			n, err = p.requests()
			for range n {
				_, _ = p.conn.Write(msg)
				sent++
			}
		}
		_ = p.hold()
		return err
	})
	cfg := testConfig(path)
	cfg.QueueBytes = 1 << 20
	c, err := Dial(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustIntersect(t, c)
	seen := map[*byte]bool{} // distinct slabs, by where blocks begin in them
	for got := 0; got < all; {
		m, err := c.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		for _, s := range c.slabs {
			seen[&s.buf[0]] = true
		}
		c.mu.Unlock()
		got += len(m.List)
		m.Release()
	}
	if max := 2 * (cfg.QueueBytes/slabSize + 4); len(seen) > max {
		t.Errorf("%d slabs, want at most %d for %d bytes of queue", len(seen), max, cfg.QueueBytes)
	}
}

// TestNothingLeaks: descriptors do not pile up, whatever the end. (Goroutines
// are checked by TestMain.)
func TestNothingLeaks(t *testing.T) {
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc/self/fd to count descriptors in")
		}
		return len(e)
	}
	paths := []string{
		serve(t, func(p *peer) error { _ = p.begin(tipAt(1)); return p.hold() }),
		serve(t, func(p *peer) error { _ = p.begin(tipAt(1)); return nil }),
		serve(t, func(p *peer) error { _, _ = p.proposal(); _ = p.send(0, acceptance(1)); return p.hold() }),
		serve(t, func(*peer) error { return nil }),
	}
	before := count()
	for i := range 200 {
		c, err := Dial(testContext(t), testConfig(paths[i%len(paths)]))
		if err == nil {
			_, _, _, _ = c.Intersect(testContext(t), []chain.Point{{}})
			c.Close()
		}
	}
	if after := count(); after > before+2*len(paths) { // the servers' own ends close a little later
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
