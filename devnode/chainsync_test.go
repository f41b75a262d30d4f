package devnode_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/internal/wire"
)

// A new follower starts at genesis: the first reply is a roll backward there.
func TestFirstReplyIsRollBackwardToOrigin(t *testing.T) {
	c := devtest.Varied(t, 1, 20)
	cl := connect(t, devtest.Start(t, devnode.Config{Chain: c}), forge.DefaultMagic)
	got := cl.follow(21)
	if got[0].kind != backward || !got[0].point.IsOrigin() {
		t.Errorf("first reply %+v", got[0])
	}
	for i, r := range got[1:] {
		raw, err := c.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		if r.kind != forward || !bytes.Equal(r.block, raw) || r.tip != c.Tip() {
			t.Fatalf("reply %d: kind %d, tip %v, want block %v", i, r.kind, r.tip, c.At(i))
		}
	}
}

func TestIntersection(t *testing.T) {
	c := devtest.Varied(t, 1, 40)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	unknown := chain.Point{Slot: c.At(10).Point.Slot, Hash: chain.Hash{9}}

	if r := cl.find(); r.kind != notFound || r.tip != c.Tip() {
		t.Errorf("no points: %+v", r)
	}
	// The first point given that is on the chain wins, not the newest.
	r := cl.find(unknown, c.At(5).Point, c.At(30).Point)
	if r.kind != found || r.point != c.At(5).Point || r.tip != c.Tip() {
		t.Errorf("%+v", r)
	}
	got := cl.follow(2)
	if got[0].kind != backward || got[0].point != c.At(5).Point {
		t.Errorf("after an intersection %+v", got[0])
	}
	if got[1].kind != forward || got[1].point != c.At(6).Point {
		t.Errorf("then %+v", got[1])
	}
	// Not found leaves the client where it stands.
	if r := cl.find(unknown); r.kind != notFound {
		t.Errorf("%+v", r)
	}
	if got := cl.follow(1); got[0].kind != forward || got[0].point != c.At(7).Point {
		t.Errorf("after a miss %+v", got[0])
	}
	// Origin is always there; a tip can be asked for and waited at.
	if r := cl.find(chain.Point{}); r.kind != found || !r.point.IsOrigin() {
		t.Errorf("origin: %+v", r)
	}
	if r := cl.find(c.Tip().Point); r.kind != found || r.point != c.Tip().Point {
		t.Errorf("tip: %+v", r)
	}
	if got := cl.follow(2); got[0].kind != backward || got[1].kind != await {
		t.Errorf("at the tip %+v", got)
	}
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	if r := cl.next(); r.kind != forward || r.point != c.Tip().Point {
		t.Errorf("after waiting %+v", r)
	}
}

// Boundary blocks are ordinary blocks: found by point though another block
// shares their slot, and rolled forward to.
func TestBoundaryBlocks(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 4, EpochBlocks: 3, Eras: []forge.EraSpan{{Era: chain.Byron, Epochs: 100}}}, 200)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	boundaries, shared := 0, 0
	for i := range c.Len() {
		raw, err := c.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		if raw[1] != 0 {
			continue
		}
		boundaries++
		if i+1 < c.Len() && c.At(i+1).Point.Slot == c.At(i).Point.Slot {
			shared++
		}
		if i > 0 && c.At(i).Height != c.At(i-1).Height {
			t.Errorf("boundary block at %v above %v", c.At(i), c.At(i-1))
		}
		for j := i; j < min(i+2, c.Len()); j++ {
			if r := cl.find(c.At(j).Point); r.kind != found || r.point != c.At(j).Point {
				t.Fatalf("%v is not found: %+v", c.At(j), r)
			}
			want := reply{kind: await}
			if j+1 < c.Len() {
				want = reply{kind: forward, point: c.At(j + 1).Point}
			}
			if want.kind == await {
				continue
			}
			if got := cl.follow(2); got[0].point != c.At(j).Point || got[1].kind != want.kind || got[1].point != want.point {
				t.Fatalf("after %v: %+v", c.At(j), got)
			}
		}
	}
	if boundaries < 20 || shared < 5 {
		t.Errorf("%d boundary blocks, %d of which share a slot: the test sees too few", boundaries, shared)
	}
}

// Nothing is sent without a request, however much the chain moves; and one
// request gets one AwaitReply and one block.
func TestPullOnly(t *testing.T) {
	c := devtest.Varied(t, 1, 10)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.find(c.Tip().Point)
	if got := cl.follow(2); got[1].kind != await {
		t.Fatalf("%+v", got)
	}
	if err := c.Extend(5); err != nil {
		t.Fatal(err)
	}
	if r := cl.next(); r.kind != forward || r.point != c.At(10).Point {
		t.Fatalf("%+v", r)
	}
	for range 5 {
		if err := c.Fork(2, 3); err != nil {
			t.Fatal(err)
		}
	}
	if r := cl.find(); r.kind != notFound {
		t.Errorf("something was sent that nobody asked for: %+v", r)
	}
}

func TestPipelining(t *testing.T) {
	c := devtest.Varied(t, 2, 300)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.request(1000)
	cl.request(10)
	for i := -1; i < c.Len(); i++ {
		r := cl.next()
		if i < 0 && r.kind != backward || i >= 0 && (r.kind != forward || r.point != c.At(i).Point) {
			t.Fatalf("reply %d: %+v", i, r)
		}
	}
	if r := cl.next(); r.kind != await {
		t.Fatalf("%+v", r)
	}
	if err := c.Extend(2); err != nil {
		t.Fatal(err)
	}
	r := cl.next()
	if r.kind != forward || r.point != c.At(300).Point {
		t.Fatalf("%+v", r)
	}
	// Each request that has to wait is told so once: the second block may have
	// been there in time.
	if r = cl.next(); r.kind == await {
		r = cl.next()
	}
	if r.kind != forward || r.point != c.At(301).Point {
		t.Fatalf("%+v", r)
	}
	if r := cl.next(); r.kind != await {
		t.Fatalf("%+v", r)
	}
}

// A fork is one roll backward to the common point, then the new branch; a
// client below the fork hears nothing of it, nor does one that never asked
// while its block was away and is back.
func TestForks(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 3, EpochBlocks: 8, K: 100}, 120)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	high, low := connect(t, srv, forge.DefaultMagic), connect(t, srv, forge.DefaultMagic)
	high.find(c.Tip().Point)
	low.find(c.At(50).Point)
	high.follow(1)
	low.follow(1)
	keep := c.At(c.Len() - 1 - 30)
	if err := c.Fork(30, 33); err != nil {
		t.Fatal(err)
	}
	got := high.follow(34)
	if got[0].kind != backward || got[0].tip != c.Tip() {
		t.Fatalf("%+v", got[0])
	}
	at, ok := c.Find(got[0].point)
	if !ok || c.At(at).Height != keep.Height {
		t.Fatalf("rolled back to %v, want height %d", got[0].point, keep.Height)
	}
	for i, r := range got[1:] {
		if r.kind != forward || r.point != c.At(at+1+i).Point {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	if r := low.follow(1)[0]; r.kind != forward || r.point != c.At(51).Point {
		t.Errorf("a client below the fork got %+v", r)
	}
	// Two forks before the client asks are one roll backward, to the deeper.
	if err := c.Fork(5, 6); err != nil {
		t.Fatal(err)
	}
	deeper := c.Tip().Height - 20
	if err := c.Fork(20, 22); err != nil {
		t.Fatal(err)
	}
	if err := c.Fork(3, 4); err != nil {
		t.Fatal(err)
	}
	got = high.follow(2)
	if at, _ := c.Find(got[0].point); got[0].kind != backward || c.At(at).Height != deeper || got[1].point != c.At(at+1).Point {
		t.Errorf("after three forks %+v, want height %d", got, deeper)
	}
}

// A fork may go down to origin.
func TestForkToOrigin(t *testing.T) {
	c := devtest.Varied(t, 5, 30)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.find(c.Tip().Point)
	cl.follow(1)
	if err := c.Fork(int(c.Tip().Height)+1, 40); err != nil {
		t.Fatal(err)
	}
	for i, r := range cl.follow(41) {
		if i == 0 && (r.kind != backward || !r.point.IsOrigin()) || i > 0 && r.point.Hash != c.At(i-1).Point.Hash {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	if err := c.Fork(int(c.Tip().Height)+2, 1); !errors.Is(err, forge.ErrTooDeep) {
		t.Errorf("below origin: %v", err)
	}
	if err := c.Extend(1); err != nil {
		t.Errorf("after a fork that failed: %v", err)
	}
}

func TestNodeBehind(t *testing.T) {
	c := devtest.Varied(t, 1, 50)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	head := c.Tip()
	c.Show(20)
	cl := connect(t, srv, forge.DefaultMagic)
	if r := cl.find(head.Point, c.At(10).Point); r.point != c.At(10).Point || r.tip != c.At(19) {
		t.Errorf("%+v", r)
	}
	c.Show(-1)
	if r := cl.find(head.Point); r.kind != found || r.tip != head {
		t.Errorf("%+v", r)
	}
}

func TestBrokenClients(t *testing.T) {
	srv := devtest.Start(t, devnode.Config{Chain: devtest.Varied(t, 1, 5)})
	for name, msg := range map[string][]byte{
		"a server's message":    {0x81, 1},
		"an unknown message":    {0x81, 9},
		"too many items":        {0x82, 0, 0},
		"not an array":          {0x18, 0x20},
		"reserved bytes":        {0xff},
		"points that are none":  {0x82, 4, 0x81, 0x01},
		"a short hash":          {0x82, 4, 0x81, 0x82, 1, 0x42, 1, 2},
		"a point of three":      append([]byte{0x82, 4, 0x81, 0x83, 1, 0x58, 32}, append(make([]byte, 32), 0)...),
		"a point of one":        {0x82, 4, 0x81, 0x81, 1},
		"a count beyond reason": {0x82, 4, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			cl := connect(t, srv, forge.DefaultMagic)
			cl.send(devnode.ProtocolChainSync, msg)
			if name == "a count beyond reason" {
				cl.conn.(interface{ CloseWrite() error }).CloseWrite()
			}
			if b, err := cl.read(devnode.ProtocolChainSync); err == nil {
				t.Errorf("answered %x", b)
			}
		})
	}
	// Odd but legal.
	for name, msg := range map[string][]byte{
		"an indefinite message":        {0x9f, 4, 0x80, 0xff},
		"integers in eight bytes":      {0x82, 0x1b, 0, 0, 0, 0, 0, 0, 0, 4, 0x80},
		"an indefinite list of origin": {0x82, 4, 0x9f, 0x80, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			cl := connect(t, srv, forge.DefaultMagic)
			cl.send(devnode.ProtocolChainSync, msg)
			if r := cl.next(); r.kind != notFound && r.kind != found {
				t.Errorf("%+v", r)
			}
		})
	}
	// A message in many segments.
	cl := connect(t, srv, forge.DefaultMagic)
	msg := devnode.AppendPoint(wire.Array(wire.Uint(wire.Array(nil, 2), 4), 1), srv.Chain().At(3).Point)
	for _, b := range msg {
		cl.send(devnode.ProtocolChainSync, []byte{b})
	}
	if r := cl.next(); r.kind != found || r.point != srv.Chain().At(3).Point {
		t.Errorf("%+v", r)
	}
	// Done ends chain-sync and leaves the connection alone.
	cl.send(devnode.ProtocolChainSync, []byte{0x81, 7})
	devtest.Eventually(t, "the client is still there", func() bool { return srv.Clients() == 1 })
}
