package chainsync

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// hash is the 32 bytes of a header hash with their CBOR head.
var hash = append([]byte{0x58, 32}, bytes.Repeat([]byte{7}, 32)...)

func cat(parts ...any) (out []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = append(out, byte(p))
		case []byte:
			out = append(out, p...)
		default:
			panic(p)
		}
	}
	return out
}

func sevens() (h chain.Hash) {
	copy(h[:], hash[2:])
	return h
}

func TestParseAnswer(t *testing.T) {
	tip := []byte{0x82, 0x80, 0}
	real := cat(0x82, 0x82, 5, hash, 9) // tip at slot 5, block 9
	realTip := chain.Tip{Point: chain.Point{Slot: 5, Hash: sevens()}, Height: 9}
	for _, v := range []struct {
		name string
		in   []byte
		want answer
		err  error // nil: accepted
	}{
		{"await", cat(0x81, 1), answer{tag: 1, msg: chain.Message{Kind: chain.AwaitReply}}, nil},
		{"forward", cat(0x83, 2, 0xd8, 24, 0x42, 0x82, 7, real), answer{tag: 2, msg: chain.Message{Kind: chain.RollForward, Raw: []byte{0x82, 7}, Tip: realTip}}, nil},
		{"forward, wide integers", cat(0x98, 3, 0x19, 0, 2, 0xda, 0, 0, 0, 24, 0x5a, 0, 0, 0, 1, 0xff, 0x9a, 0, 0, 0, 2, 0x82, 0x1b, 0, 0, 0, 0, 0, 0, 0, 5, hash, 0x1a, 0, 0, 0, 9),
			answer{tag: 2, msg: chain.Message{Kind: chain.RollForward, Raw: []byte{0xff}, Tip: realTip}}, nil},
		{"forward, tip at genesis", cat(0x83, 2, 0xd8, 24, 0x41, 1, tip), answer{tag: 2, msg: chain.Message{Raw: []byte{1}, Tip: chain.Origin}}, nil},
		{"back to origin", cat(0x83, 3, 0x80, real), answer{tag: 3, msg: chain.Message{Kind: chain.RollBackward, Tip: realTip}}, nil},
		{"back to slot 0, a block", cat(0x83, 3, 0x82, 0, hash, real), answer{tag: 3, msg: chain.Message{Kind: chain.RollBackward, Point: chain.Point{Hash: sevens()}, Tip: realTip}}, nil},
		{"found", cat(0x83, 5, 0x82, 5, hash, real), answer{tag: 5, msg: chain.Message{Kind: chain.RollBackward, Point: realTip.Point, Tip: realTip}}, nil},
		{"not found", cat(0x82, 6, real), answer{tag: 6, msg: chain.Message{Tip: realTip}}, nil},
		{"not found, empty node", cat(0x82, 6, tip), answer{tag: 6, msg: chain.Message{Tip: chain.Origin}}, nil},

		{"not an array", cat(0x01), answer{}, ErrMalformed},
		{"indefinite array", cat(0x9f, 1, 0xff), answer{}, ErrMalformed},
		{"reserved head", cat(0x9c), answer{}, ErrMalformed},
		{"tag is no integer", cat(0x81, 0x41, 1), answer{}, ErrMalformed},
		{"request from the node", cat(0x81, 0), answer{}, ErrMalformed},
		{"find from the node", cat(0x82, 4, 0x80), answer{}, ErrMalformed},
		{"done from the node", cat(0x81, 7), answer{}, ErrMalformed},
		{"tag 8", cat(0x81, 8), answer{}, ErrMalformed},
		{"huge tag", cat(0x81, 0x1b, bytes.Repeat([]byte{0xff}, 8)), answer{}, ErrMalformed},
		{"await with an item", cat(0x82, 1, 0), answer{}, ErrMalformed},
		{"forward of two items", cat(0x82, 2, 0xd8, 24, 0x41, 1), answer{}, ErrMalformed},
		{"forward of four items", cat(0x84, 2, 0xd8, 24, 0x41, 1, tip, 0), answer{}, ErrMalformed},
		{"block in tag 25", cat(0x83, 2, 0xd8, 25, 0x41, 1, tip), answer{}, ErrMalformed},
		{"block without tag", cat(0x83, 2, 0x41, 1, tip), answer{}, ErrMalformed},
		{"block as text", cat(0x83, 2, 0xd8, 24, 0x61, 1, tip), answer{}, ErrMalformed},
		{"block of indefinite length", cat(0x83, 2, 0xd8, 24, 0x5f, 0x41, 1, 0xff, tip), answer{}, ErrMalformed},
		{"block too large", cat(0x83, 2, 0xd8, 24, 0x5a, 0, 1, 0, 1), answer{}, ErrTooLarge},
		{"block of 2^64-1 bytes", cat(0x83, 2, 0xd8, 24, 0x5b, bytes.Repeat([]byte{0xff}, 8)), answer{}, ErrTooLarge},
		{"point of one item", cat(0x83, 3, 0x81, 5, tip), answer{}, ErrMalformed},
		{"point of three items", cat(0x83, 3, 0x83, 5, hash, 0, tip), answer{}, ErrMalformed},
		{"point is an integer", cat(0x83, 3, 0, tip), answer{}, ErrMalformed},
		{"point is null", cat(0x83, 3, 0xf6, tip), answer{}, ErrMalformed},
		{"slot is negative", cat(0x83, 3, 0x82, 0x20, hash, tip), answer{}, ErrMalformed},
		{"hash of 31 bytes", cat(0x83, 3, 0x82, 5, 0x58, 31, hash[3:], tip), answer{}, ErrMalformed},
		{"hash of 33 bytes", cat(0x83, 3, 0x82, 5, 0x58, 33, hash[1:], tip), answer{}, ErrMalformed},
		{"hash of 2 GB", cat(0x83, 3, 0x82, 5, 0x5a, 0x7f, 0xff, 0xff, 0xff), answer{}, ErrMalformed},
		{"empty hash", cat(0x83, 3, 0x82, 0, 0x40, tip), answer{}, ErrMalformed},
		{"hash of zeros", cat(0x83, 3, 0x82, 0, 0x58, 32, make([]byte, 32), tip), answer{}, ErrMalformed},
		{"tip of one item", cat(0x83, 3, 0x80, 0x81, 0x80), answer{}, ErrMalformed},
		{"tip of three items", cat(0x83, 3, 0x80, 0x83, 0x80, 0, 0), answer{}, ErrMalformed},
		{"tip with a negative height", cat(0x83, 3, 0x80, 0x82, 0x82, 5, hash, 0x20), answer{}, ErrMalformed},
		{"tip with height 2^63", cat(0x83, 3, 0x80, 0x82, 0x82, 5, hash, 0x1b, 0x80, 0, 0, 0, 0, 0, 0, 0), answer{}, ErrMalformed},
	} {
		t.Run(v.name, func(t *testing.T) {
			// Bytes of a next message must make no difference.
			a, n, err := parseAnswer(cat(v.in, 0x83, 2), 1<<16)
			if !errors.Is(err, v.err) {
				t.Fatalf("error %v, want %v", err, v.err)
			}
			if err != nil {
				return
			}
			if n != len(v.in) || a.tag != v.want.tag || a.msg.Kind != v.want.msg.Kind || a.msg.Point != v.want.msg.Point ||
				a.msg.Tip != v.want.msg.Tip || !bytes.Equal(a.msg.Raw, v.want.msg.Raw) {
				t.Fatalf("got %+v of %d bytes, want %+v of %d", a, n, v.want, len(v.in))
			}
			for i := range v.in {
				_, need, err := parseAnswer(v.in[:i:i], 1<<16)
				if !errors.Is(err, errShort) || need <= i || need > len(v.in) {
					t.Fatalf("%d of %d bytes: %v, needs %d", i, len(v.in), err, need)
				}
			}
		})
	}
}

func TestFindIntersectBytes(t *testing.T) {
	got := appendFindIntersect(nil, []chain.Point{{Slot: 300, Hash: sevens()}, {}})
	want := cat(0x82, 4, 0x82, 0x82, 0x19, 1, 44, hash, 0x80)
	if !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if got := appendFindIntersect(nil, nil); !bytes.Equal(got, cat(0x82, 4, 0x80)) {
		t.Errorf("without points: %x", got)
	}
	points := make([]chain.Point, MaxPoints)
	for i := range points {
		points[i] = chain.Point{Slot: 1 << 63, Hash: sevens()}
	}
	if n := len(appendFindIntersect(nil, points)); n > maxSegment {
		t.Errorf("%d points take %d bytes, more than a segment of %d", MaxPoints, n, maxSegment)
	}
}

func TestBlockHeight(t *testing.T) {
	for _, v := range []struct {
		raw  []byte
		want chain.Height
		ok   bool
	}{
		{block(77, 5, 100), 77, true},
		{cat(0x82, 2, 0x84, 0x82, 0x8f, 5), 5, true},
		{cat(0x82, 1, 0x84, 0x82, 0x8f, 5), 0, false}, // Byron looks otherwise
		{cat(0x82, 0, 0x84, 0x82, 0x8f, 5), 0, false},
		{cat(0x82, 7, 0x85, 0x82), 0, false},
		{cat(0x83, 7, 0x85, 0x82, 0x8a, 5), 0, false},
		{cat(0x82, 7, 0x85, 0x82, 0x8a, 0x1b, 0x80, 0, 0, 0, 0, 0, 0, 0), 0, false},
		{nil, 0, false},
	} {
		if h, ok := blockHeight(v.raw); h != v.want || ok != v.ok {
			t.Errorf("%x: %d %v, want %d %v", v.raw, h, ok, v.want, v.ok)
		}
	}
}

// FuzzParseAnswer feeds the parser foreign bytes: it must not panic, must not
// claim more than it was given, and must need no bytes that it has.
func FuzzParseAnswer(f *testing.F) {
	for _, seed := range [][]byte{awaitReply, rollForward(block(1, 2, 60), tipAt(3)), rollBackward(pointAt(1), tipAt(3)),
		intersectFound(chain.Point{}, chain.Origin), intersectNotFound(tipAt(1)), cat(0x83, 3, 0x81, 5)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, n, err := parseAnswer(b, 1<<12)
		switch {
		case errors.Is(err, errShort):
			if n <= len(b) || n > len(b)+1<<12 {
				t.Fatalf("has %d bytes, needs %d", len(b), n)
			}
		case err != nil:
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("untyped error %v", err)
			}
		case n < 2 || n > len(b) || len(a.msg.Raw) > n:
			t.Fatalf("length %d of %d", n, len(b))
		default:
			if again, m, err := parseAnswer(b[:n:n], 1<<12); err != nil || m != n || again.tag != a.tag {
				t.Fatalf("the message alone: %v", err)
			}
		}
	})
}
