package devnode_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// Each fault does to the order of blocks what its name says.
func TestFaultsOfOrder(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 1, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 8)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	for name, f := range map[string]struct {
		fault devnode.Fault
		want  []chain.Height // of the roll forwards; -2 is a roll backward to origin
	}{
		"none":         {nil, []chain.Height{0, 1, 2, 3, 4, 5, 6}},
		"skip":         {devnode.AtHeight(2, devnode.Skip), []chain.Height{0, 1, 3, 4, 5, 6, 7}},
		"repeat":       {devnode.AtHeight(2, devnode.Times(1, devnode.Repeat)), []chain.Height{0, 1, 2, 2, 3, 4, 5}},
		"swap":         {devnode.Swap(c, 2), []chain.Height{0, 1, 3, 2, 4, 5, 6}},
		"false origin": {devnode.AtHeight(2, devnode.Times(1, devnode.FalseOrigin)), []chain.Height{0, 1, -2, 2, 3, 4, 5}},
		"sequence":     {devnode.AtHeight(2, devnode.Sequence(devnode.Repeat, nil)), []chain.Height{0, 1, 2, 2, 3, 4, 5}},
		"two": {devnode.All(devnode.AtHeight(1, devnode.Skip), devnode.AtHeight(3, devnode.Skip)),
			[]chain.Height{0, 2, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			srv.Behave(devnode.Behaviour{OnReply: f.fault})
			cl := connect(t, srv, forge.DefaultMagic)
			var got []chain.Height
			for _, r := range cl.follow(len(f.want) + 1)[1:] {
				if r.kind == backward && r.point.IsOrigin() {
					got = append(got, -2)
					continue
				}
				h, err := immutable.ReadHeader(r.block, 4320)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, h.Height)
			}
			if !slices.Equal(got, f.want) {
				t.Errorf("heights %v, want %v", got, f.want)
			}
		})
	}
}

func TestFaultsOfTiming(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 1, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 8)
	srv := devtest.Start(t, devnode.Config{Chain: c})

	srv.Behave(devnode.Behaviour{OnReply: devnode.AtHeight(1, devnode.HangUp)})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.follow(2)
	cl.request(1)
	if b, err := cl.read(devnode.ProtocolChainSync); !gone(err) {
		t.Errorf("hang up: %x, %v", b, err)
	}

	srv.Behave(devnode.Behaviour{OnReply: devnode.AtHeight(1, devnode.Silence)})
	cl = connect(t, srv, forge.DefaultMagic)
	cl.follow(2)
	cl.request(2)
	if r := cl.next(); r.point != c.At(2).Point {
		t.Errorf("after a silence %+v", r)
	}

	srv.Behave(devnode.Behaviour{OnReply: devnode.AtHeight(1, devnode.Segments(1, 3, 7))})
	cl = connect(t, srv, forge.DefaultMagic)
	cl.follow(2)
	cl.segments = nil
	if r := cl.follow(1)[0]; r.point != c.At(1).Point || !slices.Equal(cl.segments[:4], []int{1, 3, 7, 7}) {
		t.Errorf("segments %v", cl.segments)
	}

	srv.Behave(devnode.Behaviour{OnReply: devnode.AtHeight(1, devnode.Slow(30*time.Millisecond))})
	cl = connect(t, srv, forge.DefaultMagic)
	cl.follow(2)
	start := time.Now()
	if cl.follow(1); time.Since(start) < 30*time.Millisecond {
		t.Error("not slow")
	}
	// A slow server can be stopped.
	srv.Behave(devnode.Behaviour{OnReply: devnode.Slow(time.Hour)})
	cl.request(1)
	srv.Stop()
}

func TestWrongParent(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 1, EpochBlocks: 4}, 60)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	srv.Behave(devnode.Behaviour{OnReply: devnode.OfKind(devnode.RollForward, devnode.WrongParent)})
	cl := connect(t, srv, forge.DefaultMagic)
	for i, r := range cl.follow(c.Len() + 1)[1:] {
		raw, err := c.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		good, err := immutable.ReadHeader(raw, 4320)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := immutable.ReadHeader(r.block, 4320)
		if err != nil {
			t.Fatal(err)
		}
		if bad.Parent == good.Parent || bad.Point.Hash == good.Point.Hash || bad.Height != good.Height || bad.Point.Slot != good.Point.Slot {
			t.Errorf("%v %v: %+v", good.At(), good.Era, bad)
		}
	}
}

// Every layer can be broken, and is broken: what arrives is not the message.
func TestCorrupt(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 1, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 8)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	good, err := c.Raw(3)
	if err != nil {
		t.Fatal(err)
	}
	for l := range devnode.LayerEnd {
		t.Run(l.String(), func(t *testing.T) {
			srv.Behave(devnode.Behaviour{OnReply: devnode.AtHeight(3, devnode.Corrupt(l))})
			cl := connect(t, srv, forge.DefaultMagic)
			cl.follow(4)
			cl.request(1)
			cl.segments = nil
			b, err := cl.read(devnode.ProtocolChainSync)
			switch l {
			case devnode.LayerSegment:
				if len(cl.buf[0x63]) == 0 {
					t.Error("no segment of another protocol")
				}
			case devnode.LayerEmpty:
				if cl.segments[0] != 0 {
					t.Error("no empty segment")
				}
			default:
				want := (&devnode.Reply{Kind: devnode.RollForward, At: c.At(3), Tip: c.Tip(), Block: good}).Encode(nil)
				if bytes.Equal(b, want) {
					t.Errorf("%v: nothing is wrong with what arrived", err)
				}
			}
		})
	}
	for _, n := range []int{1, 3} {
		srv.Behave(devnode.Behaviour{OnReply: devnode.AtHeight(3, devnode.MalformedPoint(n))})
		cl := connect(t, srv, forge.DefaultMagic)
		cl.follow(4)
		cl.request(1)
		if b := cl.message(devnode.ProtocolChainSync); b[1] != backward || b[2] != 0x80|byte(n) {
			t.Errorf("point of %d items: %x", n, b[:8])
		}
	}
}
