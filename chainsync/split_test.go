package chainsync

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

// kept is what came out of a splitter, copied.
type kept struct {
	answers []answer
	other   map[uint16][]byte // payloads by protocol number
	left    int
	err     error
}

// feed gives the splitter the bytes in reads of at most the given sizes, in
// turn, as a socket would.
func feed(s *splitter, k *kept, in []byte, sizes []int) {
	k.other = map[uint16][]byte{}
	s.other = func(proto uint16, piece []byte, left int) error {
		if piece == nil {
			if k.left != 0 {
				return fmt.Errorf("a segment begins with %d bytes missing", k.left)
			}
		} else if k.left-len(piece) != left {
			return fmt.Errorf("%d bytes left after %d of %d", left, len(piece), k.left)
		}
		k.left = left
		k.other[proto&^responderBit] = append(k.other[proto&^responderBit], piece...)
		return nil
	}
	for i := 0; len(in) > 0; i++ {
		room := s.room()
		if len(room) < minRead {
			k.err = fmt.Errorf("room for %d bytes", len(room))
			return
		}
		n := copy(room[:min(len(room), max(1, sizes[i%len(sizes)]))], in)
		in = in[n:]
		k.err = s.took(n)
		for _, a := range s.answers {
			a.msg.Raw = bytes.Clone(a.msg.Raw)
			k.answers = append(k.answers, a)
		}
		s.answers = s.answers[:0]
		if k.err != nil {
			return
		}
	}
}

// TestSplitter is the property of the splitter: however messages are cut into
// segments, mixed with those of other protocols, and read in pieces, the same
// messages come out in order, and the other payloads whole.
func TestSplitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sync []byte
		var want [][]byte
		for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				sync = append(sync, awaitReply...)
				want = append(want, nil)
			case 1:
				sync = append(sync, rollBackward(pointAt(uint64(i)), tipAt(9))...)
				want = append(want, nil)
			default:
				size := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 30_000), rapid.IntRange(0, 700_000)).Draw(t, "size")
				raw := block(uint64(i), 1, size)
				sync = append(sync, rollForward(raw, tipAt(9))...)
				want = append(want, raw)
			}
		}
		other := map[uint16][]byte{}
		var wire []byte
		cuts := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(1, 65535)), 1, 8).Draw(t, "cuts")
		for i := 0; len(sync) > 0; i++ {
			if i%3 == 2 {
				proto := uint16(6 + i%4)
				payload := bytes.Repeat([]byte{byte(i)}, i%50)
				other[proto] = append(other[proto], payload...)
				wire = append(wire, frame(proto, payload, 0)...)
			}
			n := min(cuts[i%len(cuts)], len(sync))
			if n == 0 && i%len(cuts) == len(cuts)-1 {
				n = 1 // zero-length segments only in between
			}
			wire = append(wire, frame(5, sync[:n], 65535)...)
			sync = sync[n:]
		}
		pool := &slabPool{max: 2}
		s := newSplitter(pool, 1<<20, nil)
		var k kept
		feed(s, &k, wire, rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 1<<20)), 1, 5).Draw(t, "reads"))
		if k.err != nil {
			t.Fatal(k.err)
		}
		if len(k.answers) != len(want) || s.open() {
			t.Fatalf("%d messages, want %d; open: %v", len(k.answers), len(want), s.open())
		}
		for i, raw := range want {
			if !bytes.Equal(k.answers[i].msg.Raw, raw) {
				t.Fatalf("message %d: wrong bytes", i)
			}
		}
		for proto, payload := range other {
			if !bytes.Equal(k.other[proto], payload) {
				t.Fatalf("protocol %d: %d bytes, want %d", proto, len(k.other[proto]), len(payload))
			}
		}
	})
}

// TestEveryCut cuts a stream of messages in two segments, and in two reads, at
// every byte.
func TestEveryCut(t *testing.T) {
	msgs := cat(rollBackward(chain.Point{}, tipAt(4)), rollForward(block(1, 20, 90), tipAt(4)), awaitReply, rollForward(block(2, 40, 70), tipAt(4)))
	check := func(what string, at int, wire []byte, sizes []int) {
		s := newSplitter(&slabPool{}, 1<<16, nil)
		var k kept
		feed(s, &k, wire, sizes)
		if k.err != nil || len(k.answers) != 4 || !bytes.Equal(k.answers[1].msg.Raw, block(1, 20, 90)) || !bytes.Equal(k.answers[3].msg.Raw, block(2, 40, 70)) {
			t.Fatalf("%s cut at %d: %d messages, %v", what, at, len(k.answers), k.err)
		}
	}
	for i := range msgs {
		check("segments", i, cat(frame(5, msgs[:i], 0), frame(5, msgs[i:], 0)), []int{1 << 20})
	}
	wire := frame(5, msgs, 0)
	for i := 1; i < len(wire); i++ {
		check("reads", i, wire, []int{i, len(wire)})
	}
	check("segments and reads of one byte", 1, frame(5, msgs, 1), []int{1})
}

func TestSplitterRefuses(t *testing.T) {
	fromUs := frame(5, awaitReply, 0)
	fromUs[4] &^= 0x80
	for name, v := range map[string]struct {
		wire []byte
		err  error
	}{
		"segment in our direction": {fromUs, ErrProtocol},
		"malformed message":        {frame(5, []byte{0x83, 3, 0x81}, 0), ErrMalformed},
		"block beyond the limit":   {frame(5, cat(0x83, 2, 0xd8, 24, 0x5a, 0, 1, 0, 1), 0), ErrTooLarge},
	} {
		s := newSplitter(&slabPool{}, 1<<16, nil)
		var k kept
		feed(s, &k, cat(frame(5, awaitReply, 0), v.wire), []int{1 << 20})
		if !errors.Is(k.err, v.err) || len(k.answers) != 1 {
			t.Errorf("%s: %v after %d messages", name, k.err, len(k.answers))
		}
	}
}

// TestClaimsCostNothing: a message that claims 60 MB and sends little must not
// make us hold more than a few slabs.
func TestClaimsCostNothing(t *testing.T) {
	s := newSplitter(&slabPool{}, 64<<20, nil)
	var k kept
	claim := cat(0x83, 2, 0xd8, 24, 0x5a, 3, 0x93, 0x87, 0, make([]byte, 400_000))
	feed(s, &k, frame(5, claim, 0), []int{12288})
	if k.err != nil || len(s.slab.buf) > 4*(400_000+minRead) {
		t.Errorf("%v; slab of %d bytes for 400,000", k.err, len(s.slab.buf))
	}
}

// FuzzSplitter feeds foreign bytes cut in two ways: no panic, and the same
// messages and the same kind of error either way.
func FuzzSplitter(f *testing.F) {
	f.Add(frame(5, rollForward(block(1, 1, 40), tipAt(1)), 7), 3)
	f.Add(cat(frame(5, awaitReply, 0), frame(7, []byte("abc"), 0), frame(5, rollBackward(pointAt(1), tipAt(1)), 0)), 1)
	f.Add(cat(frame(5, nil, 0), frame(5, awaitReply, 1)), 2)
	f.Fuzz(func(t *testing.T, wire []byte, size int) {
		if len(wire) > 1<<16 {
			return
		}
		var one, two kept
		feed(newSplitter(&slabPool{}, 1<<12, nil), &one, wire, []int{1 << 20})
		feed(newSplitter(&slabPool{}, 1<<12, nil), &two, wire, []int{1 + size&0xff})
		if len(one.answers) != len(two.answers) || (one.err == nil) != (two.err == nil) {
			t.Fatalf("%d messages, %v; cut: %d messages, %v", len(one.answers), one.err, len(two.answers), two.err)
		}
		for i := range one.answers {
			if !bytes.Equal(one.answers[i].msg.Raw, two.answers[i].msg.Raw) {
				t.Fatalf("message %d differs", i)
			}
		}
	})
}
