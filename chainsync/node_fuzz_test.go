package chainsync

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// FuzzNode: whatever a node writes to the socket once a version is agreed, be it
// segments, halves of them or noise, ends in messages and a typed error. It neither
// hangs nor leaves anything behind.
func FuzzNode(f *testing.F) {
	found := frame(5, intersectFound(chain.Point{}, tipAt(9)), 0)
	f.Add([]byte{})
	f.Add(found)
	f.Add(cat(found, frame(5, rollBackward(chain.Point{}, tipAt(9)), 0), frame(5, rollForward(block(1, 20, 60), tipAt(9)), 7)))
	f.Add(cat(found, frame(5, awaitReply, 0), frame(5, awaitReply, 0)))
	f.Add(cat(frame(5, intersectNotFound(tipAt(3)), 0), frame(7, awaitReply, 0)))
	f.Add(cat(found, frame(0, acceptance(testMagic), 0)))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				p := &peer{conn: newBuffered(theirs)}
				if p.shake() == nil {
					_, _ = p.conn.Write(said)
					_ = p.hold()
				}
				theirs.Close()
			}()
			c, err := handshake(t.Context(), t.Context(), ours, Config{Magic: testMagic}.withDefaults())
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if _, _, _, err = c.Intersect(ctx, []chain.Point{{}}); err == nil {
					err = readOn(ctx, t, c)
				}
				cancel()
				c.Close()
			}
			if e := new(Error); !errors.As(err, &e) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("untyped: %v", err)
			}
			<-gone
		})
	})
}

// readOn reads until the end.
func readOn(ctx context.Context, t *testing.T, c *Conn) error {
	for {
		m, err := c.Next(ctx)
		if err != nil {
			return err
		}
		for _, m := range m.List {
			if m.Kind > chain.AwaitReply || (m.Kind == chain.RollForward) != (m.Raw != nil) {
				t.Errorf("message %+v", m)
			}
		}
		m.Release()
	}
}
