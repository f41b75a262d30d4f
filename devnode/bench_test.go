package devnode_test

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
)

// drain asks for everything at once and discards what comes, so that nearly
// all of the work is the server's.
func drain(b *testing.B, srv *devnode.Server, magic uint32, n int, bytes int64) {
	cl := connect(b, srv, magic)
	for left := n + 1; left > 0; left -= 30000 {
		cl.request(min(left, 30000))
	}
	if _, err := io.CopyN(io.Discard, cl.conn, bytes); err != nil {
		b.Fatal(err)
	}
	cl.conn.Close()
}

// cpu is the time that all threads of the process have run, the client's side
// included.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func serveAll(b *testing.B, c *devnode.Chain, magic uint32) {
	srv := devtest.Start(b, devnode.Config{Chain: c, Magic: magic})
	size := int64(0)
	for i := range c.Len() {
		raw, err := c.Raw(i)
		if err != nil {
			b.Fatal(err)
		}
		size += int64(len(raw))
	}
	b.SetBytes(size)
	start := cpu(b)
	for b.Loop() {
		drain(b, srv, magic, c.Len(), size)
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N)/float64(c.Len()), "cpu-ns/block")
}

func BenchmarkServePreview(b *testing.B) { serveAll(b, devtest.Preview(b, -1), 2) }

func BenchmarkServeMainnetLike(b *testing.B) {
	serveAll(b, devtest.Generate(b, forge.Options{Shape: forge.MainnetLike}, 1000), forge.DefaultMagic)
}
