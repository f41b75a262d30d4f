package devnode_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSocket(t *testing.T) {
	path := devtest.Socket(t)
	chain := devtest.Varied(t, 1, 5)
	run := func(path string) error {
		ctx, cancel := context.WithCancel(t.Context())
		srv, err := devnode.NewServer(devnode.Config{Socket: path, Magic: 2, Chain: chain})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- srv.Run(ctx) }()
		select {
		case err := <-done:
			cancel()
			return err
		case <-srv.Ready():
		}
		st, err := os.Stat(path)
		if err != nil || st.Mode().Type() != os.ModeSocket || st.Mode().Perm() != 0o600 {
			t.Errorf("socket %v, %v", st, err)
		}
		if err := srv.Start(); err == nil {
			t.Error("started twice")
		}
		cl := connect(t, srv, 2)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := cl.read(devnode.ProtocolChainSync); !gone(err) {
			t.Errorf("the client of a server that ended sees %v", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
		if err := srv.Start(); err == nil {
			t.Error("started after its end")
		}
		return nil
	}
	if err := run(path); err != nil {
		t.Fatal(err)
	}

	// A stale socket is replaced.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := run(path); err != nil {
		t.Errorf("stale socket: %v", err)
	}

	// One that is served, and a file that is no socket, are left alone.
	srv := devtest.Start(t, devnode.Config{Socket: path, Chain: chain})
	if err := run(path); !errors.Is(err, devnode.ErrSocketInUse) {
		t.Errorf("served socket: %v", err)
	}
	connect(t, srv, forge.DefaultMagic)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(file); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("the file is now %q, %v", b, err)
	}
	if err := run(filepath.Join(t.TempDir(), "no", "folder", "s")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// A node that restarts: connections end, the path is gone, then there again
// with another inode.
func TestRestart(t *testing.T) {
	srv := devtest.Start(t, devnode.Config{Chain: devtest.Varied(t, 1, 5)})
	for range 5 {
		cl := connect(t, srv, forge.DefaultMagic)
		before, err := os.Stat(srv.Socket())
		if err != nil {
			t.Fatal(err)
		}
		srv.Stop()
		if _, err := cl.read(devnode.ProtocolChainSync); !gone(err) {
			t.Errorf("after a stop: %v", err)
		}
		if _, err := os.Stat(srv.Socket()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a stop: %v", err)
		}
		if srv.Clients() != 0 {
			t.Errorf("%d clients after a stop", srv.Clients())
		}
		if err := srv.Start(); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(srv.Socket())
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
			t.Error("the same socket as before")
		}
	}
}

// Messages longer than a segment are cut at the size of a node's, and no
// segment is longer.
func TestSegments(t *testing.T) {
	for _, size := range []int{0, 1, 100, 65535} {
		c := devtest.Generate(t, forge.Options{Seed: 1, Shape: forge.MainnetLike}, 12)
		srv := devtest.Start(t, devnode.Config{Chain: c, SegmentSize: size})
		cl := connect(t, srv, forge.DefaultMagic)
		cl.segments = nil
		cl.request(c.Len() + 1)
		for i := range c.Len() + 1 {
			r := cl.next()
			if i == 0 {
				continue
			}
			raw, err := c.Raw(i - 1)
			if err != nil || !bytes.Equal(raw, r.block) {
				t.Fatalf("block %d differs, %v", i-1, err)
			}
		}
		if size == 0 {
			size = 12288
		}
		most := 0
		for _, n := range cl.segments {
			most = max(most, n)
			if n == 0 {
				t.Error("an empty segment")
			}
		}
		if most != min(size, most) || size <= 12288 && most != size {
			t.Errorf("longest segment %d, want %d", most, size)
		}
	}
}

// A client that reads nothing is dropped after the write timeout and delays
// nobody meanwhile.
func TestSlowClient(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 1, Shape: forge.MainnetLike}, 200)
	srv := devtest.Start(t, devnode.Config{Chain: c, WriteTimeout: 300 * time.Millisecond})
	slow := connect(t, srv, forge.DefaultMagic)
	slow.request(c.Len() + 1)
	quick := connect(t, srv, forge.DefaultMagic)
	for i, r := range quick.follow(c.Len() + 1) {
		if i > 0 && r.point != c.At(i-1).Point {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	devtest.Eventually(t, "the slow client is dropped", func() bool { return srv.Clients() == 1 })
	if r := quick.find(); r.kind != notFound {
		t.Errorf("%+v", r)
	}
}

func TestFreeze(t *testing.T) {
	c := devtest.Varied(t, 1, 5)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.find(c.Tip().Point)
	srv.Freeze()
	cl.request(1)
	silent := make(chan []byte, 1)
	go func() {
		b, _ := cl.read(devnode.ProtocolChainSync)
		silent <- b
	}()
	select {
	case b := <-silent:
		t.Fatalf("a frozen server said %x", b)
	case <-time.After(50 * time.Millisecond):
	}
	srv.Thaw()
	if b := <-silent; len(b) < 2 || b[1] != backward {
		t.Errorf("after the thaw %x", b)
	}
	// A server that is frozen can be stopped.
	srv.Freeze()
	cl.request(1)
	srv.Stop()
}

func TestManyClients(t *testing.T) {
	c := devtest.Varied(t, 9, 60)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	errs := make(chan error)
	for range 20 {
		cl := connect(t, srv, forge.DefaultMagic)
		cl.find(c.At(10).Point)
		cl.request(c.Len())
		go func() {
			var last reply
			for {
				b, err := cl.read(devnode.ProtocolChainSync)
				if err != nil {
					errs <- err
					return
				}
				r, err := parseReply(b)
				if err != nil {
					errs <- err
					return
				}
				if r.kind == await {
					if last.point != last.tip.Point {
						err = errors.New("waits below the tip")
					}
					errs <- err
					return
				}
				last = r
			}
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestServeGrows(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 6, EpochBlocks: 5}, 30)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- devnode.Serve(ctx, devnode.Config{Socket: devtest.Socket(t), Magic: forge.DefaultMagic, Chain: c,
			Interval: time.Millisecond, ForkRate: 0.3, MaxDepth: 20, Seed: 1})
	}()
	for range 200 {
		select {
		case <-c.Changed():
		case err := <-done:
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c.Tip().Height < 100 {
		t.Errorf("tip %v", c.Tip())
	}
}
