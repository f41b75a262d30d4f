package devnode_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	ouroboros "github.com/blinklabs-io/gouroboros"
	"github.com/blinklabs-io/gouroboros/protocol/chainsync"
	ocommon "github.com/blinklabs-io/gouroboros/protocol/common"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// shared returns the path of a file of the folder of shared test data beside
// the repository, and skips the test where it is absent.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("OUROTAIL_SHARED")
	for dir, _ := os.Getwd(); root == "" && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			root = filepath.Join(filepath.Dir(dir), "shared")
		}
	}
	p := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("shared test data is not here (OUROTAIL_SHARED names it): %v", err)
	}
	return p
}

// startServer runs a server until the test ends.
func startServer(t testing.TB, cfg devnode.Config) *devnode.Server {
	t.Helper()
	if cfg.Socket == "" {
		cfg.Socket = filepath.Join(t.TempDir(), "s")
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
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(cfg.Socket); err == nil {
			t.Error("the socket is still there after the server ended")
		}
	})
	return srv
}

// recorder is what a client saw.
type recorder struct {
	blocks []recorded
	backs  []chain.Point
	tip    chan struct{} // closed when the last block is the wanted one
	want   chain.Point
}

type recorded struct {
	tag  uint
	raw  []byte
	slot uint64
	hash []byte
}

// gouroborosFollow follows the chain from origin with the gouroboros client
// until it has seen want.
func gouroborosFollow(t testing.TB, socket string, magic uint32, rec *recorder, onBlock func()) {
	t.Helper()
	rec.tip = make(chan struct{})
	seen := false
	cfg := chainsync.NewConfig(
		chainsync.WithRollForwardRawFunc(func(_ chainsync.CallbackContext, tag uint, raw []byte, _ chainsync.Tip) error {
			rec.blocks = append(rec.blocks, recorded{tag: tag, raw: bytes.Clone(raw)})
			if onBlock != nil {
				onBlock()
			}
			h, err := immutable.ReadHeader(append([]byte{0x82, byte(tag)}, raw...), 4320)
			if err != nil {
				return err
			}
			if h.Point.Hash == rec.want.Hash && !seen {
				seen = true
				close(rec.tip)
			}
			return nil
		}),
		chainsync.WithRollBackwardFunc(func(_ chainsync.CallbackContext, p ocommon.Point, _ chainsync.Tip) error {
			var at chain.Point
			copy(at.Hash[:], p.Hash)
			at.Slot = chain.Slot(p.Slot)
			rec.backs = append(rec.backs, at)
			return nil
		}),
		chainsync.WithPipelineLimit(100),
	)
	conn, err := ouroboros.New(ouroboros.WithNetworkMagic(magic), ouroboros.WithChainSyncConfig(cfg),
		ouroboros.WithNodeToNode(false), ouroboros.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Dial("unix", socket); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.ChainSync().Client.Sync([]ocommon.Point{ocommon.NewPointOrigin()}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-rec.tip:
	case err := <-conn.ErrorChan():
		t.Fatalf("after %d blocks: %v", len(rec.blocks), err)
	case <-time.After(2 * time.Minute):
		t.Fatalf("not at the tip after %d blocks", len(rec.blocks))
	}
}

func TestGouroborosFollowsImmutable(t *testing.T) {
	c, err := devnode.OpenImmutable(shared(t, "preview", "immutable"), immutable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	srv := startServer(t, devnode.Config{Magic: 2, Chain: c})
	rec := &recorder{want: c.Tip().Point}
	start := time.Now()
	gouroborosFollow(t, srv.Socket(), 2, rec, nil)
	t.Logf("%d blocks in %v", len(rec.blocks), time.Since(start))
	if len(rec.blocks) != c.Len() || c.Len() != 40357 {
		t.Errorf("%d blocks seen, the chain has %d", len(rec.blocks), c.Len())
	}
	if c.Tip().Height != 40356 {
		t.Errorf("tip %v", c.Tip())
	}
	for i := 0; i < len(rec.blocks); i += 997 {
		raw, err := c.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		if got := append([]byte{0x82, byte(rec.blocks[i].tag)}, rec.blocks[i].raw...); !bytes.Equal(got, raw) {
			t.Fatalf("block %d differs", i)
		}
	}
}

func TestGouroborosFollowsForks(t *testing.T) {
	c, err := devnode.Generate(forge.Options{Seed: 7, EpochBlocks: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Extend(50); err != nil {
		t.Fatal(err)
	}
	srv := startServer(t, devnode.Config{Magic: forge.DefaultMagic, Chain: c})
	errs := make(chan error, 1)
	go func() {
		var err error
		for i := range 40 {
			err = errors.Join(err, c.Extend(3), c.Fork(1+i, 2+i))
		}
		errs <- err
	}()
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	rec := &recorder{want: c.Tip().Point}
	gouroborosFollow(t, srv.Socket(), forge.DefaultMagic, rec, nil)
	if len(rec.blocks) != c.Len() {
		t.Errorf("%d blocks seen, the chain has %d", len(rec.blocks), c.Len())
	}
}
