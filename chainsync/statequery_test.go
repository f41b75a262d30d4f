package chainsync

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
)

const protoStateQuery = 7

// ask reads one state query message; several may come in one segment.
func (p *peer) ask(want string) error { return p.hear(protoStateQuery, want) }

// hear is ask for any protocol.
func (p *peer) hear(on uint16, want string) error {
	got := ""
	for len(got) < len(want) {
		if p.left == "" {
			proto, b, err := p.segment()
			if err != nil {
				return err
			}
			if proto != on {
				return fmt.Errorf("%w: got %x on protocol %d", errPeer, b, proto)
			}
			p.left = hex.EncodeToString(b)
		}
		n := min(len(want)-len(got), len(p.left))
		got, p.left = got+p.left[:n], p.left[n:]
	}
	if got != want {
		return fmt.Errorf("%w: got %s, want %s", errPeer, got, want)
	}
	return nil
}

// states are what a client says, as a node's codec writes it, and how a node
// answers.
var (
	acquirePoint7 = "8200" + hex.EncodeToString(shortPoint(pointAt(7)))
	acquired      = []byte{0x81, 1}
	askEra        = "820382008202" + "8101"
	released      = "8105"
)

// shortPoint has its slot in the shortest form.
func shortPoint(p chain.Point) []byte {
	return append(append([]byte{0x82, 0x18, byte(p.Slot), 0x58, 32}, p.Hash[:]...), nil...)
}

func eraIs(n byte) []byte { return []byte{0x82, 4, n} }

func rawRef(b []byte, r chain.TxIn) []byte {
	b = append(append(b, 0x82, 0x58, 32), r.ID[:]...)
	if r.Index < 24 {
		return append(b, byte(r.Index))
	}
	return binary.BigEndian.AppendUint32(append(b, 0x1a), r.Index)
}

func askUTxO(era byte, refs ...chain.TxIn) string {
	b := []byte{0x82, 3, 0x82, 0, 0x82, 0, 0x82, era, 0x82, 15, 0x80 | byte(len(refs))}
	for _, r := range refs {
		b = rawRef(b, r)
	}
	return hex.EncodeToString(b)
}

// acquire plays an acquisition in the given era.
func (p *peer) acquire(era byte) error {
	if err := p.ask(acquirePoint7); err != nil {
		return err
	}
	if err := p.send(protoStateQuery, acquired); err != nil {
		return err
	}
	if err := p.ask(askEra); err != nil {
		return err
	}
	return p.send(protoStateQuery, eraIs(era))
}

func dialTest(t *testing.T, script func(*peer) error) *Conn {
	t.Helper()
	path := serve(t, func(p *peer) error {
		if err := p.shake(); err != nil {
			return err
		}
		return script(p)
	})
	c, err := Dial(testContext(t), testConfig(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var (
	refA = chain.TxIn{ID: chain.Hash{0xa}, Index: 3}
	refB = chain.TxIn{ID: chain.Hash{0xb}}
)

// TestUTxOByTxIn: what is written and read, byte by byte, in segments of any
// size, with maps of both kinds.
func TestUTxOByTxIn(t *testing.T) {
	outA, outB := []byte{0x82, 0x43, 1, 2, 3, 0x18, 99}, []byte{0xa2, 0, 0x41, 7, 1, 0xbf, 0x41, 1, 2, 0xff}
	list := append(append(rawRef(append(rawRef(nil, refA), outA...), refB), outB...), nil...)
	for _, cut := range []int{0, 1, 7} {
		for _, answer := range [][]byte{
			append([]byte{0x82, 4, 0x81, 0xa2}, list...),
			append(append([]byte{0x82, 4, 0x81, 0xbf}, list...), 0xff),
		} {
			c := dialTest(t, func(p *peer) error {
				p.cut = cut
				for range 2 {
					if err := p.acquire(6); err != nil {
						return err
					}
					if err := p.ask(askUTxO(6, refA, refB)); err != nil {
						return err
					}
					if err := p.send(protoStateQuery, answer); err != nil {
						return err
					}
					if err := p.ask(released); err != nil {
						return err
					}
				}
				return p.hold()
			})
			ctx := testContext(t)
			for range 2 {
				s, err := c.Acquire(ctx, pointAt(7))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.Acquire(ctx, pointAt(7)); !errors.Is(err, ErrUsage) {
					t.Errorf("a second one: %v", err)
				}
				got, err := s.UTxOByTxIn(ctx, []chain.TxIn{refA, refB, refA})
				if err != nil || len(got) != 2 || !bytes.Equal(got[refA], outA) || !bytes.Equal(got[refB], outB) || s.Era() != chain.Conway || s.At() != pointAt(7) {
					t.Fatalf("%x %v in %v", got, err, s.Era())
				}
				s.Release()
			}
		}
	}
}

// TestManyReferences are asked in steps.
func TestManyReferences(t *testing.T) {
	steps := 0
	c := dialTest(t, func(p *peer) error {
		if err := p.acquire(6); err != nil {
			return err
		}
		for range 3 {
			if _, _, err := p.segment(); err != nil {
				return err
			}
			steps++
			if err := p.send(protoStateQuery, []byte{0x82, 4, 0x81, 0xa0}); err != nil {
				return err
			}
		}
		return p.hold()
	})
	s, err := c.Acquire(testContext(t), pointAt(7))
	if err != nil {
		t.Fatal(err)
	}
	refs := make([]chain.TxIn, 2*MaxRefs+1)
	for i := range refs {
		refs[i].Index = uint32(i)
	}
	if got, err := s.UTxOByTxIn(testContext(t), refs); err != nil || len(got) != 0 || steps != 3 {
		t.Errorf("%d outputs, %v, %d steps", len(got), err, steps)
	}
	s.Release()
}

// TestPointRefused: the connection is as good as before.
func TestPointRefused(t *testing.T) {
	c := dialTest(t, func(p *peer) error {
		for _, why := range []byte{0, 1} {
			if err := p.ask(acquirePoint7); err != nil {
				return err
			}
			if err := p.send(protoStateQuery, []byte{0x82, 2, why}); err != nil {
				return err
			}
		}
		if err := p.acquire(0); err != nil {
			return err
		}
		return p.hold()
	})
	ctx := testContext(t)
	for _, want := range []error{ErrPointTooOld, ErrPointNotOnChain} {
		if _, err := c.Acquire(ctx, pointAt(7)); !errors.Is(err, want) || !strings.Contains(err.Error(), pointAt(7).String()) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	s, err := c.Acquire(ctx, pointAt(7))
	if err != nil || s.Era() != chain.Byron {
		t.Fatalf("%v %v", s, err)
	}
	if _, err := s.UTxOByTxIn(ctx, []chain.TxIn{refA}); !errors.Is(err, ErrNoQuery) {
		t.Errorf("in byron: %v", err)
	}
	s.Release()
}

// TestStateQueryGoneWrong: every answer that is none has its kind, and is never
// taken for one.
func TestStateQueryGoneWrong(t *testing.T) {
	answer := func(b ...byte) []byte { return append([]byte{0x82, 4}, b...) }
	one := append(rawRef([]byte{0x81, 0xa1}, refA), 0x01)
	for name, c := range map[string]struct {
		says []byte // nil: nothing, and the connection is closed
		kind error
		text string
	}{
		"another era":             {answer(0x82, 0x82, 6, 0x61, 'C', 0x82, 7, 0x61, 'D'), ErrEra, "it is in D, the query was for C"},
		"closed":                  {nil, ErrDisconnected, ""},
		"no list":                 {answer(1), ErrMalformed, ""},
		"a list of three":         {answer(0x83, 1, 1, 1), ErrMalformed, ""},
		"no map":                  {answer(0x81, 1), ErrMalformed, ""},
		"not asked for":           {answer(append(rawRef([]byte{0x81, 0xa1}, chain.TxIn{Index: 9}), 1)...), ErrMalformed, "not asked"},
		"twice":                   {answer(append(append([]byte{0x81, 0xa2}, one[2:]...), one[2:]...)...), ErrMalformed, "twice"},
		"a short id":              {answer(0x81, 0xa1, 0x82, 0x41, 1, 0, 1), ErrMalformed, "1 bytes"},
		"a long id":               {answer(append([]byte{0x81, 0xa1, 0x82, 0x58, 33}, make([]byte, 35)...)...), ErrTooLarge, ""},
		"a reference of one item": {answer(0x81, 0xa1, 0x81, 1, 1), ErrMalformed, ""},
		"a large index":           {answer(append(append([]byte{0x81, 0xa1, 0x82, 0x58, 32}, refA.ID[:]...), 0x1b, 1, 0, 0, 0, 0, 0, 0, 0, 1)...), ErrMalformed, ""},
		"not CBOR":                {answer(0xfc), ErrProtocol, ""},
		"a refusal of a query":    {[]byte{0x82, 2, 0}, ErrProtocol, ""},
		"acquired again":          {acquired, ErrProtocol, ""},
		"a question from a node":  {[]byte{0x81, 5}, ErrProtocol, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialTest(t, func(p *peer) error {
				if err := p.acquire(6); err != nil {
					return err
				}
				if err := p.ask(askUTxO(6, refA)); err != nil || c.says == nil {
					return err
				}
				if err := p.send(protoStateQuery, c.says); err != nil {
					return err
				}
				return p.hold()
			})
			ctx := testContext(t)
			s, err := conn.Acquire(ctx, pointAt(7))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.UTxOByTxIn(ctx, []chain.TxIn{refA})
			var e *Error
			if !errors.Is(err, c.kind) || !errors.As(err, &e) || e.Op != "query" || !strings.Contains(err.Error(), c.text) || got != nil {
				t.Errorf("%x %v, want %v", got, err, c.kind)
			}
			s.Release()
			if c.kind == ErrEra {
				return
			}
			if _, err := conn.Acquire(ctx, pointAt(7)); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
}

// TestEraGoneWrong: the answer to the question that Acquire asks itself.
func TestEraGoneWrong(t *testing.T) {
	for _, says := range [][]byte{eraIs(8), eraIs(0x40), {0x82, 2, 7}, {0x82, 2, 0x18, 200}} {
		c := dialTest(t, func(p *peer) error {
			if err := p.ask(acquirePoint7); err != nil {
				return err
			}
			if says[1] == 4 {
				if err := p.send(protoStateQuery, acquired); err != nil {
					return err
				}
				if err := p.ask(askEra); err != nil {
					return err
				}
			}
			if err := p.send(protoStateQuery, says); err != nil {
				return err
			}
			return p.hold()
		})
		if _, err := c.Acquire(testContext(t), pointAt(7)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", says, err)
		}
	}
}

// TestSilentOrLeft: a node that owes an answer, and a caller that leaves.
func TestSilentOrLeft(t *testing.T) {
	path := serve(t, func(p *peer) error {
		if err := p.shake(); err != nil {
			return err
		}
		return p.hold()
	})
	cfg := testConfig(path)
	cfg.AnswerTimeout = 20 * time.Millisecond
	for range 2 {
		c, err := Dial(testContext(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(testContext(t))
		want := ErrSilent
		if cfg.AnswerTimeout > time.Second {
			want = context.Canceled
			time.AfterFunc(time.Millisecond, cancel)
		}
		if _, err := c.Acquire(ctx, pointAt(7)); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		cancel()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Acquire(testContext(t), pointAt(7)); err == nil {
			t.Error("acquired on a closed connection")
		}
		cfg.AnswerTimeout = time.Minute
	}
}

// TestLargeAnswer: more than may wait unread; then the other protocol on the same
// connection.
func TestLargeAnswer(t *testing.T) {
	const size = 3 << 20
	c := dialTest(t, func(p *peer) error {
		if err := p.acquire(6); err != nil {
			return err
		}
		if err := p.ask(askUTxO(6, refA)); err != nil {
			return err
		}
		b := rawRef([]byte{0x82, 4, 0x81, 0xa1}, refA)
		b = binary.BigEndian.AppendUint32(append(b, 0x5a), size)
		if err := p.send(protoStateQuery, append(b, make([]byte, size)...)); err != nil {
			return err
		}
		if _, err := p.find(); err != nil {
			return err
		}
		if err := p.send(5, intersectFound(pointAt(3), tipAt(9))); err != nil {
			return err
		}
		return p.hold()
	})
	ctx := testContext(t)
	s, err := c.Acquire(ctx, pointAt(7))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.UTxOByTxIn(ctx, []chain.TxIn{refA})
	if err != nil || len(got[refA]) != size+5 {
		t.Fatalf("%d bytes, %v", len(got[refA]), err)
	}
	if _, ok, tip, err := c.Intersect(ctx, []chain.Point{pointAt(3)}); !ok || err != nil || tip != tipAt(9) {
		t.Errorf("%v %v %v", ok, tip, err)
	}
	s.Release()
}

// FuzzUTxOAnswer: whatever a node answers, it is read or refused.
func FuzzUTxOAnswer(f *testing.F) {
	f.Add(append(rawRef([]byte{0x81, 0xa1}, refA), 0x01))
	f.Add(append(append(rawRef([]byte{0x81, 0xbf}, refA), 0x82, 0x40, 1), 0xff))
	f.Add([]byte{0x82, 0x82, 6, 0x61, 'C', 0x82, 7, 0x61, 'D'})
	f.Fuzz(func(t *testing.T, b []byte) {
		out := map[chain.TxIn][]byte{}
		err := parseUTxO(b, map[chain.TxIn]struct{}{refA: {}, refB: {}}, out)
		if err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrEra) {
			t.Fatal(err)
		}
		for ref, raw := range out {
			if ref != refA && ref != refB || len(raw) == 0 || !bytes.Contains(b, raw) {
				t.Errorf("%v: %x", ref, raw)
			}
		}
	})
}
