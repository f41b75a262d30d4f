package ordeal

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
)

// The long forms, as make crash and make chaos run them.
var (
	long = flag.Bool("long", false, "hundreds of kills, thousands of blocks")
	seed = flag.Uint64("seed", 0, "do again what a run with this seed did; 0 for the seed of every day")
)

// random is the source of all choices, and says how to have them again.
func random(t *testing.T, salt uint64) (*rand.Rand, uint64) {
	s := *seed
	switch {
	case s != 0:
	case *long:
		s = rand.Uint64N(1 << 32)
	default:
		s = 7
	}
	t.Logf("seed %d: the flag -seed makes the same choices again", s)
	return rand.New(rand.NewPCG(s, salt)), s
}

// node is a served chain and the genesis that belongs to it.
type node struct {
	*devnode.Server
	chain   *devnode.Chain
	genesis *ledger.Genesis
	config  string // path of its configuration
}

func generated(t *testing.T, cfg devnode.Config, opts forge.Options, blocks int) *node {
	t.Helper()
	c := devtest.Generate(t, opts, blocks)
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	n := &node{chain: c, config: filepath.Join(dir, "config.json")}
	var err error
	if n.genesis, err = ledger.LoadGenesis(n.config); err != nil {
		t.Fatal(err)
	}
	cfg.Chain, cfg.Magic = c, n.genesis.Magic
	n.Server = devtest.Start(t, cfg)
	return n
}

// dataDir returns a folder for databases: in memory where that can be had, since a
// kill leaves what the page cache has, and a disk shared with other tests only
// makes them slow. With real it is on disk.
func dataDir(t *testing.T, real bool) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); real || err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "ourotail-ordeal-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
