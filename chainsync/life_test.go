package chainsync

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
)

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

// TestInboxBrakes: what gouroboros does not read is bounded, and closing lets
// everybody go.
func TestInboxBrakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox(nil)
		puts := 0
		var last error
		go func() {
			for last == nil {
				if last = b.put(make([]byte, inboxLimit/4)); last == nil {
					puts++
				}
			}
		}()
		synctest.Wait()
		if puts != 5 {
			t.Errorf("%d puts", puts)
		}
		if n, err := b.Read(make([]byte, inboxLimit)); n != inboxLimit || err != nil {
			t.Errorf("%d %v", n, err)
		}
		synctest.Wait()
		if puts != 9 {
			t.Errorf("%d puts", puts)
		}
		b.Close()
		synctest.Wait()
		if !errors.Is(last, errInboxShut) {
			t.Errorf("got %v", last)
		}
		if rest, err := io.ReadAll(b); len(rest) != 5*inboxLimit/4 || err != nil {
			t.Errorf("%d bytes %v", len(rest), err)
		}
	})
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
