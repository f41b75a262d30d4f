package devnode_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	ouroboros "github.com/blinklabs-io/gouroboros"
	"github.com/blinklabs-io/gouroboros/protocol/chainsync"
	ocommon "github.com/blinklabs-io/gouroboros/protocol/common"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// recorder is a chain as the gouroboros client's callbacks tell it.
type recorder struct {
	mu     sync.Mutex
	blocks []recorded
	backs  int
	err    error
}

type recorded struct {
	raw   []byte
	point chain.Point
}

func (r *recorder) forward(_ chainsync.CallbackContext, tag uint, raw []byte, _ chainsync.Tip) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	block := append([]byte{0x82, byte(tag)}, raw...)
	h, err := immutable.ReadHeader(block, 4320)
	if err != nil {
		r.err = err
		return err
	}
	if n := len(r.blocks); n > 0 && h.Parent != r.blocks[n-1].point.Hash {
		r.err = fmt.Errorf("%v does not follow %v", h.Point, r.blocks[n-1].point)
	}
	r.blocks = append(r.blocks, recorded{block, h.Point})
	return nil
}

func (r *recorder) backward(_ chainsync.CallbackContext, p ocommon.Point, _ chainsync.Tip) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backs++
	for n := len(r.blocks); n > 0 && !bytes.Equal(r.blocks[n-1].point.Hash[:], p.Hash); n-- {
		r.blocks = r.blocks[:n-1]
	}
	return nil
}

// tip is the last block's hash.
func (r *recorder) tip(t testing.TB) chain.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		t.Fatal(r.err)
	}
	if len(r.blocks) == 0 {
		return chain.Hash{}
	}
	return r.blocks[len(r.blocks)-1].point.Hash
}

// gouroborosFollow follows the chain from origin with the gouroboros client
// until it is at the tip and the chain has stopped moving.
func gouroborosFollow(t testing.TB, c *devnode.Chain, socket string, magic uint32, moving <-chan struct{}) *recorder {
	t.Helper()
	rec := &recorder{}
	cfg := chainsync.NewConfig(chainsync.WithRollForwardRawFunc(rec.forward),
		chainsync.WithRollBackwardFunc(rec.backward), chainsync.WithPipelineLimit(100))
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
	<-moving
	devtest.Eventually(t, "gouroboros is at the tip", func() bool {
		select {
		case err := <-conn.ErrorChan():
			t.Fatalf("after %d blocks: %v", len(rec.blocks), err)
		default:
		}
		return rec.tip(t) == c.Tip().Point.Hash
	})
	if len(rec.blocks) != c.Len() {
		t.Errorf("the client has %d blocks, the chain %d", len(rec.blocks), c.Len())
	}
	return rec
}

func TestGouroborosFollowsImmutable(t *testing.T) {
	c := devtest.Preview(t, -1)
	srv := devtest.Start(t, devnode.Config{Magic: 2, Chain: c})
	still := make(chan struct{})
	close(still)
	rec := gouroborosFollow(t, c, srv.Socket(), 2, still)
	if c.Len() != 40357 || c.Tip().Height != 40356 {
		t.Errorf("tip %v", c.Tip())
	}
	for i := 0; i < len(rec.blocks); i += 997 {
		raw, err := c.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(rec.blocks[i].raw, raw) {
			t.Fatalf("block %d differs", i)
		}
	}
}

// The chain grows and forks while the client follows.
func TestGouroborosFollowsForks(t *testing.T) {
	c := devtest.Varied(t, 7, 50)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	moving := make(chan struct{})
	go func() {
		defer close(moving)
		for i := range 60 {
			if err := errors.Join(c.Extend(3), c.Fork(1+i%40, 3+i%40)); err != nil {
				t.Error(err)
			}
		}
	}()
	rec := gouroborosFollow(t, c, srv.Socket(), forge.DefaultMagic, moving)
	t.Logf("%d blocks, %d roll backwards", len(rec.blocks), rec.backs)
}
