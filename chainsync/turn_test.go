package chainsync

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
)

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
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		_, _, _, err = c.Intersect(t.Context(), nil)
		wantError(t, err, ErrUsage, false, "outstanding")
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
