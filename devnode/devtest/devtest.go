// Package devtest starts devnode servers for the tests of other packages.
package devtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// Start runs a server until the test ends, on a socket of its own unless the
// configuration names one. The magic defaults to that of generated chains.
func Start(t testing.TB, cfg devnode.Config) *devnode.Server {
	t.Helper()
	if cfg.Socket == "" {
		cfg.Socket = Socket(t)
	}
	if cfg.Magic == 0 {
		cfg.Magic = forge.DefaultMagic
	}
	srv, err := devnode.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Run(t.Context()) }()
	select {
	case <-srv.Ready():
	case err := <-done:
		t.Fatal(err)
	}
	// The test's context ends just before its cleanups run.
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return srv
}

// Socket returns a path for a socket in a folder that goes with the test. It
// is short: a socket's path has room for 107 bytes.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dev")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "node.socket")
}

// Generate returns a generated chain of n blocks.
func Generate(t testing.TB, opts forge.Options, n int) *devnode.Chain {
	t.Helper()
	c, err := devnode.Generate(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Extend(n); err != nil {
		t.Fatal(err)
	}
	return c
}

// Varied returns a varied chain of n blocks with short epochs, so that a
// hundred blocks see every era.
func Varied(t testing.TB, seed uint64, n int) *devnode.Chain {
	t.Helper()
	return Generate(t, forge.Options{Seed: seed, EpochBlocks: 8}, n)
}

// Preview returns the chain of the shared preview folder up to a height; a
// negative height is all of it. The test is skipped where the folder is absent.
func Preview(t testing.TB, until chain.Height) *devnode.Chain {
	t.Helper()
	var opts immutable.Options
	if until >= 0 {
		opts.UntilHeight = &until
	}
	c, err := devnode.OpenImmutable(Shared(t, "preview", "immutable"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Shared returns the path of a file of the folder of shared test data, which
// lies beside the repository or where OUROTAIL_SHARED says, and skips the test
// where it is absent.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("OUROTAIL_SHARED")
	for dir, _ := os.Getwd(); root == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = filepath.Join(filepath.Dir(dir), "shared")
		}
	}
	p := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("shared test data is not here (OUROTAIL_SHARED names its folder): %v", err)
	}
	return p
}

// Eventually waits until ok holds and fails the test after five minutes, which a
// machine busy with other things may need. It is for what no channel announces,
// such as the number of clients.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within five minutes", what)
		}
		time.Sleep(time.Millisecond)
	}
}
