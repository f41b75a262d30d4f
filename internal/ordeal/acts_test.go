package ordeal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/follow"
)

// young is what happens while the chain can still fork at its root.
var young = []act{
	{name: "a fork at the very root", do: toOrigin},
	{name: "another", do: toOrigin},
	{name: "a fork at the root while the follower is down", do: func(d *day) error {
		d.down()
		if err := toOrigin(d); err != nil {
			return err
		}
		d.up()
		return nil
	}},
}

func toOrigin(d *day) error { return d.fork(d.k, 2) }

// acts is what may happen later.
var acts = []act{
	{name: "twenty restarts of the node, under load", do: restarts},
	{name: "silence before the handshake", do: func(d *day) error {
		return d.outage(devnode.Behaviour{MuteHandshake: true}, chainsync.ErrSilent)
	}},
	{name: "silence after the handshake", do: func(d *day) error {
		return d.outage(devnode.Behaviour{OnReply: devnode.OfKind(devnode.IntersectFound, devnode.Silence)}, chainsync.ErrSilent)
	}},
	{name: "another network for a while", do: func(d *day) error {
		magic := uint32(77)
		return d.outage(devnode.Behaviour{Magic: &magic}, chainsync.ErrWrongNetwork)
	}},
	{name: "a node of versions that we do not know", do: func(d *day) error {
		return d.outage(devnode.Behaviour{Versions: []uint16{40, 41}}, chainsync.ErrNoCommonVersion)
	}},
	{name: "a frozen connection, and health turns", do: frozenConnection},
	{name: "a frozen node, and health turns", do: frozenNode},
	{name: "a quiet chain, and health does not turn", do: func(d *day) error {
		d.health(ourotail.Healthy, "quiet")
		return nil
	}},
	{name: "a node behind us, which catches up", do: behind},
	{name: "a node behind us, which comes with another fork", do: func(d *day) error {
		if err := behindFor(d, 2+d.r.IntN(d.k/2)); err != nil {
			return err
		}
		return d.fork(1+d.r.IntN(5), 1)
	}},
	{name: "a block left out", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.Skip })},
	{name: "a block that comes twice", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.Repeat })},
	{name: "two blocks in the wrong order", do: func(d *day) error {
		h := d.n.chain.Tip().Height + 2
		left := atomic.Int64{}
		swap := devnode.Swap(d.n.chain, h)
		d.misbehave(func(r *devnode.Reply) {
			if r.Kind == devnode.RollForward && (r.At.Height == h || r.At.Height == h+1) && left.Add(1) <= 2 {
				swap(r)
			}
		})
		return d.grow(6)
	}},
	{name: "a parent that is not our head", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.WrongParent })},
	{name: "a reply that never comes", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.Silence })},
	{name: "a connection closed instead of a block", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.HangUp })},
	{name: "origin, out of nowhere", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.FalseOrigin })},
	{name: "a point of one item", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.MalformedPoint(1) })},
	{name: "a point of three items", do: disorder(func(*day, chain.Height) devnode.Fault { return devnode.MalformedPoint(3) })},
	{name: "malformed bytes at every layer", do: corruption},
	{name: "a block that does not decode, until the node is mended", do: undecodable},
	{name: "an owner who reads nothing for a while", do: func(d *day) error { return slowOwner(d, time.Second) }},
	{name: "an owner who reads nothing for 35 s", long: true, do: func(d *day) error { return slowOwner(d, 35*time.Second) }},
	{name: "forks of many depths", do: func(d *day) error {
		for _, depth := range []int{1, 2, 3 + d.r.IntN(d.k/2), 1, d.k - 1, d.k} {
			if err := d.fork(depth, 1+d.r.IntN(3)); err != nil {
				return err
			}
			d.arrive()
		}
		return nil
	}},
	{name: "two rollbacks in a row", do: func(d *day) error {
		for range 5 {
			first := 1 + d.r.IntN(d.k/3)
			if err := d.fork(first, 1); err != nil {
				return err
			}
			if d.r.IntN(2) == 0 { // between the two, or never seen
				rolled := d.took("rollback")
				d.until("the first", func() bool { return d.took("rollback") > rolled || d.f.State().Head.Point == d.n.chain.Tip().Point })
			}
			if err := d.fork(first+1+d.r.IntN(d.k/3), 2); err != nil {
				return err
			}
			d.arrive()
		}
		return nil
	}},
	{name: "a thousand rollbacks to where we are", do: nowhere},
	{name: "a fork while the node is down", do: func(d *day) error {
		d.n.Stop()
		if err := d.fork(1+d.r.IntN(d.k), 3); err != nil {
			return err
		}
		return d.n.Start()
	}},
	{name: "a fork while the follower is down", do: func(d *day) error {
		for _, depth := range []int{1, 1 + d.r.IntN(d.k), d.k} {
			d.down()
			if err := d.fork(depth, 1); err != nil {
				return err
			}
			d.up()
			d.arrive()
		}
		return nil
	}},
	{name: "a fork as soon as the follower is back", do: func(d *day) error {
		for range 3 {
			d.down()
			old := d.n.Clients()
			d.up()
			d.until("a connection", func() bool { return d.n.Clients() > old })
			if err := d.fork(1+d.r.IntN(8), 1); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "the follower stopped in the middle of much", do: func(d *day) error {
		for range 4 {
			if err := d.fork(1+d.r.IntN(d.k/2), d.k/2); err != nil {
				return err
			}
			began := d.took("commit")
			d.until("some of it", func() bool {
				return d.took("commit") > began || d.f.State().Head.Point == d.n.chain.Tip().Point
			})
			d.down()
			d.up()
		}
		return nil
	}},
	{name: "many blocks at once", do: func(d *day) error { return d.grow(150) }},
	{name: "messages in crumbs", do: func(d *day) error {
		d.misbehave(devnode.Segments(1, 2, 700, 3))
		d.n.Disconnect()
		if err := d.grow(20); err != nil {
			return err
		}
		d.arrive()
		return d.fork(5, 1)
	}},
	{name: "forks across many blocks, unwatched", do: func(d *day) error {
		for range 20 {
			if err := d.fork(1+d.r.IntN(4), 1+d.r.IntN(3)); err != nil {
				return err
			}
		}
		return nil
	}},
}

// restarts stops and starts the node twenty times while blocks come: its socket is
// another one at the same path each time.
func restarts(d *day) error {
	for i := range 20 {
		if err := d.grow(5); err != nil {
			return err
		}
		d.n.Stop()
		if _, err := os.Stat(d.n.Socket()); err == nil {
			return errors.New("the socket of a stopped node is there")
		}
		if i%4 == 3 {
			if err := d.fork(1+d.r.IntN(6), 1); err != nil {
				return err
			}
		}
		if err := d.n.Start(); err != nil {
			return err
		}
		d.until("a connection", func() bool { return d.n.Clients() > 0 })
	}
	return nil
}

// outage lets the node be of no use until the follower has said why.
func (d *day) outage(b devnode.Behaviour, why error) error {
	d.n.Behave(b)
	d.n.Disconnect()
	if err := d.fork(1+d.r.IntN(3), 4); err != nil {
		return err
	}
	d.fails(why)
	d.health(ourotail.Unhealthy, "")
	return nil
}

// frozenConnection: what is sent on the connection is swallowed, while the node
// answers others.
func frozenConnection(d *day) error {
	d.misbehave(func(r *devnode.Reply) {
		if r.Kind == devnode.RollForward || r.Kind == devnode.AwaitReply || r.Kind == devnode.RollBackward {
			r.Drop = true
		}
	})
	if err := d.fork(2, 3); err != nil {
		return err
	}
	d.until("health to turn", func() bool { return d.f.Health().Grade == ourotail.Unhealthy })
	d.n.Behave(devnode.Behaviour{})
	d.arrive()
	d.health(ourotail.Healthy, "")
	return nil
}

// frozenNode: connections stay open and nothing more is said.
func frozenNode(d *day) error {
	d.n.Freeze()
	defer d.n.Thaw()
	if err := d.fork(3, 2); err != nil {
		return err
	}
	d.until("health to turn", func() bool { return d.f.Health().Grade == ourotail.Unhealthy })
	d.n.Thaw()
	d.arrive()
	d.health(ourotail.Healthy, "")
	return nil
}

// behind: the node is started over and shows less than we have. We wait, and keep
// what we have.
func behind(d *day) error {
	rolled := d.took("rollback")
	if err := behindFor(d, 1+d.r.IntN(2*d.k)); err != nil {
		return err
	}
	if now := d.took("rollback"); now != rolled {
		return fmt.Errorf("%d rollbacks", now-rolled)
	}
	return d.grow(2)
}

func behindFor(d *day, by int) error {
	head := d.f.State().Head
	n := d.n.chain.Len()
	d.n.chain.Show(max(0, n-by))
	if d.r.IntN(2) == 0 {
		d.n.Disconnect()
	}
	d.until("the node to be behind", func() bool { return d.f.Progress().Phase == follow.NodeBehind })
	for i := max(0, n-by); i < n; i += 1 + by/3 { // it catches up
		d.n.chain.Show(i)
	}
	if now := d.f.State().Head; now != head {
		return fmt.Errorf("the head was %v, and is %v", head.At(), now.At())
	}
	d.n.chain.Show(-1)
	d.arrive()
	return nil
}

// disorder spoils one of the next blocks, once.
func disorder(fault func(*day, chain.Height) devnode.Fault) func(*day) error {
	return func(d *day) error {
		h := d.n.chain.Tip().Height + 1 + chain.Height(d.r.IntN(4))
		d.misbehave(devnode.AtHeight(h, devnode.Times(1, fault(d, h))))
		return d.grow(8)
	}
}

func corruption(d *day) error {
	for l := range devnode.LayerEnd {
		h := d.n.chain.Tip().Height + 1 + chain.Height(d.r.IntN(3))
		d.misbehave(devnode.AtHeight(h, devnode.Times(1+int64(d.r.IntN(2)), devnode.Corrupt(l))))
		if err := d.grow(5); err != nil {
			return err
		}
		d.arrive()
	}
	return nil
}

// undecodable: health is red and names the file with the bytes, for as long as the
// node keeps sending them.
func undecodable(d *day) error {
	h := d.n.chain.Tip().Height + 2
	d.misbehave(devnode.AtHeight(h, devnode.Corrupt(devnode.LayerBlock)))
	if err := d.grow(5); err != nil {
		return err
	}
	d.fails(follow.ErrUndecodable)
	var saved string
	d.until("the bytes", func() bool {
		h := d.f.Health()
		saved = h.Undecodable
		return h.Grade == ourotail.Unhealthy && saved != ""
	})
	if at := d.f.State().Head.Height; at != h-1 {
		return fmt.Errorf("the head is at %d, the block at %d does not decode", at, h)
	}
	info, err := os.Stat(saved)
	if err == nil && info.Size() == 0 {
		err = errors.New("the file is empty")
	}
	d.n.Behave(devnode.Behaviour{})
	d.arrive()
	d.health(ourotail.Healthy, "")
	return err
}

// slowOwner: the owner brakes, and more comes than any queue holds. Longer than a
// node's patience with a client that does not read, and the connection must last.
func slowOwner(d *day, pause time.Duration) error {
	var newest atomic.Int64
	d.misbehave(func(r *devnode.Reply) { newest.Store(max(newest.Load(), int64(r.Client))) })
	if err := d.grow(1); err != nil {
		return err
	}
	d.arrive()
	client := newest.Load()
	brake := make(chan struct{})
	d.mu.Lock()
	d.brake = brake
	d.mu.Unlock()
	// One block, behind which the follower waits, near the tip; then the others.
	held := d.took("braked")
	if err := d.grow(1); err != nil {
		return err
	}
	d.until("the brake", func() bool { return d.took("braked") > held })
	err := d.grow(500)
	for end := time.Now().Add(pause); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if h := d.f.Health(); strings.Contains(strings.Join(h.Reasons, " "), "frozen") {
			err = fmt.Errorf("it is the node that is called slow: %+v", h)
		}
	}
	d.mu.Lock()
	d.brake = nil
	d.mu.Unlock()
	close(brake)
	d.arrive()
	if now := newest.Load(); now != client && pause > devnode.DefaultWriteTimeout {
		return fmt.Errorf("the connection was lost: it was the client's number %d, and is %d", client, now)
	}
	return err
}

// nowhere: a thousand roll backwards to the block at which we stand. No event, no
// work.
func nowhere(d *day) error {
	rolled, undone := d.took("rollback"), d.took("undo")
	var told atomic.Int64
	h := d.n.chain.Tip().Height + 2
	d.misbehave(devnode.AtHeight(h, devnode.Times(1000, func(r *devnode.Reply) {
		told.Add(1)
		r.Kind, r.At, r.Block, r.Stay = devnode.RollBackward, d.n.chain.At(r.Index-1), nil, true
	})))
	if err := d.grow(3); err != nil {
		return err
	}
	d.arrive()
	if n := told.Load(); n < 1000 {
		return fmt.Errorf("only %d roll backwards", n)
	}
	if now := d.took("rollback"); now != rolled || d.took("undo") != undone {
		return fmt.Errorf("%d rollbacks were published", now-rolled)
	}
	return nil
}
