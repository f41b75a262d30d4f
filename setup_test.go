package ourotail_test

import (
	"path/filepath"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
)

// served is a generated chain, the node that serves it, and what a follower of it
// needs.
type served struct {
	chain *devnode.Chain
	node  *devnode.Server
	cfg   ourotail.Config
}

func serve(t testing.TB, opts forge.Options, blocks int) served {
	t.Helper()
	c := devtest.Generate(t, opts, blocks)
	g := genesisOf(t, c.Genesis())
	node := devtest.Start(t, devnode.Config{Magic: g.Magic, Chain: c})
	return served{c, node, ourotail.Config{SocketPath: node.Socket(), Genesis: g, DataDir: filepath.Join(t.TempDir(), "data"), Memory: 64 << 20}}
}

// genesisOf writes a chain's genesis files and reads them, as a user would.
func genesisOf(t testing.TB, files *forge.Genesis) *ledger.Genesis {
	t.Helper()
	dir := t.TempDir()
	if err := files.WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	g, err := ledger.LoadGenesis(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}
