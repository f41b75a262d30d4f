package chainsync

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// TestSlowReader: whoever takes nothing for a long time makes us ask for no
// more, but never makes the node wait in a write. (Pitfall: the node drops a
// client that does not read for 30 s.)
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, all = 20_000, 2000
		sent := 0
		c := onPipe(t, Config{QueueBytes: 1 << 20}, func(p *peer) error {
			if err := p.begin(tipAt(1 << 20)); err != nil {
				return err
			}
			for sent < all {
				n, err := p.requests()
				if err != nil {
					return err
				}
				for range n {
					start := time.Now()
					if err := p.send(5, rollForward(block(uint64(sent), 1, size), tipAt(1<<20))); err != nil {
						return err
					}
					if d := time.Since(start); d != 0 {
						t.Errorf("block %d: the node waited %v", sent, d)
					}
					sent++
				}
			}
			return p.hold()
		})
		defer c.Close()
		mustIntersect(t, c)
		got := 0
		for got < all {
			m, err := c.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range m.List {
				if h, _ := blockHeight(m.Raw); int(h) != got {
					t.Fatalf("block %d at %d", h, got)
				}
				got++
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if ahead := (sent - got) * size; ahead > 1<<20+2*size {
				t.Fatalf("%d bytes ahead", ahead)
			}
			m.Release()
		}
	})
}

// TestBytesLiveUntilRelease: what a batch holds stays as it is while later
// ones come and go, and after Close.
func TestBytesLiveUntilRelease(t *testing.T) {
	const all = 3000
	path := serve(t, func(p *peer) error {
		err := p.begin(tipAt(1 << 20))
		for sent := 0; sent < all && err == nil; {
			var n int
			n, err = p.requests()
			for range n {
				_ = p.send(5, rollForward(block(uint64(sent), 1, 100+sent*13%30_000), tipAt(1<<20)))
				sent++
			}
		}
		_ = p.hold()
		return err
	})
	c, err := Dial(testContext(t), testConfig(path))
	if err != nil {
		t.Fatal(err)
	}
	mustIntersect(t, c)
	var heldBatches []chain.Messages
	got := 0
	check := func(m chain.Messages) {
		for _, m := range m.List {
			h, _ := blockHeight(m.Raw)
			if !bytes.Equal(m.Raw, block(uint64(h), 1, 100+int(h)*13%30_000)) {
				t.Fatalf("block %d was overwritten", h)
			}
		}
		m.Release()
		m.Release() // a second time does nothing
	}
	for got < all {
		m, err := c.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		got += len(m.List)
		heldBatches = append(heldBatches, m)
		if len(heldBatches) > 5 {
			check(heldBatches[0])
			heldBatches = heldBatches[1:]
		}
	}
	c.Close()
	for _, m := range heldBatches {
		check(m)
	}
}

// TestSlabsAreReused: a long run in bounded memory.
func TestSlabsAreReused(t *testing.T) {
	const all = 4000
	path := serve(t, func(p *peer) error {
		err := p.begin(tipAt(1 << 20))
		msg := frame(5, rollForward(block(5, 1, 32_000), tipAt(1<<20)), 0)
		for sent := 0; sent < all && err == nil; {
			var n int
			n, err = p.requests()
			for range n {
				_, _ = p.conn.Write(msg)
				sent++
			}
		}
		_ = p.hold()
		return err
	})
	cfg := testConfig(path)
	cfg.QueueBytes = 1 << 20
	c, err := Dial(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustIntersect(t, c)
	seen := map[*byte]bool{} // distinct slabs, by where blocks begin in them
	for got := 0; got < all; {
		m, err := c.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		for _, s := range c.slabs {
			seen[&s.buf[0]] = true
		}
		c.mu.Unlock()
		got += len(m.List)
		m.Release()
	}
	if max := 2 * (cfg.QueueBytes/slabSize + 4); len(seen) > max {
		t.Errorf("%d slabs, want at most %d for %d bytes of queue", len(seen), max, cfg.QueueBytes)
	}
}

// TestNothingLeaks: descriptors do not pile up, whatever the end. (Goroutines
// are checked by TestMain.)
func TestNothingLeaks(t *testing.T) {
	count := func() int {
		e, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc/self/fd to count descriptors in")
		}
		return len(e)
	}
	paths := []string{
		serve(t, func(p *peer) error { _ = p.begin(tipAt(1)); return p.hold() }),
		serve(t, func(p *peer) error { _ = p.begin(tipAt(1)); return nil }),
		serve(t, func(p *peer) error { _, _ = p.proposal(); _ = p.send(0, acceptance(1)); return p.hold() }),
		serve(t, func(*peer) error { return nil }),
	}
	before := count()
	for i := range 200 {
		c, err := Dial(testContext(t), testConfig(paths[i%len(paths)]))
		if err == nil {
			_, _, _, _ = c.Intersect(testContext(t), []chain.Point{{}})
			c.Close()
		}
	}
	if after := count(); after > before+2*len(paths) { // the servers' own ends close a little later
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
