package chainsync

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"

	ouroboros "github.com/blinklabs-io/gouroboros"
	gsync "github.com/blinklabs-io/gouroboros/protocol/chainsync"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"
	"github.com/blinklabs-io/gouroboros/protocol/localstatequery"

	"github.com/ourotail/ourotail/chain"
)

// TestAgainstGouroboros follows a server that is gouroboros' own, and asks it
// state queries on the same connection meanwhile.
func TestAgainstGouroboros(t *testing.T) {
	const blocks = 400
	gtip := gsync.Tip{Point: pcommon.NewPoint(uint64(pointAt(blocks).Slot), hashOf(pointAt(blocks))), BlockNumber: blocks}
	next := uint64(0)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		node, err := ouroboros.New(
			ouroboros.WithConnection(conn),
			ouroboros.WithServer(true),
			ouroboros.WithNetworkMagic(testMagic),
			ouroboros.WithChainSyncConfig(gsync.NewConfig(
				gsync.WithFindIntersectFunc(func(_ gsync.CallbackContext, points []pcommon.Point) (pcommon.Point, gsync.Tip, error) {
					if len(points) == 0 {
						return pcommon.Point{}, gtip, gsync.ErrIntersectNotFound
					}
					return points[len(points)-1], gtip, nil
				}),
				gsync.WithRequestNextFunc(func(ctx gsync.CallbackContext) error {
					next++
					switch {
					case next == 1:
						return ctx.Server.RollBackward(pcommon.NewPointOrigin(), gtip)
					case next <= blocks+1:
						return ctx.Server.RollForward(6, block(next-1, next, 20_000)[2:], gtip)
					}
					return ctx.Server.AwaitReply()
				}),
			)),
			ouroboros.WithLocalStateQueryConfig(localstatequery.NewConfig(
				localstatequery.WithAcquireFunc(func(localstatequery.CallbackContext, localstatequery.AcquireTarget, bool) error { return nil }),
				localstatequery.WithQueryFunc(func(localstatequery.CallbackContext, localstatequery.QueryWrapper) (any, error) {
					return []any{1, 77}, nil
				}),
				localstatequery.WithReleaseFunc(func(localstatequery.CallbackContext) error { return nil }),
			)),
		)
		served <- err
		if err == nil {
			for range node.ErrorChan() {
			}
			node.Close()
			closeServer(node)
		}
		close(gone)
	}()
	ctx := testContext(t)
	if tip, err := func() (chain.Tip, error) {
		c, err := Dial(ctx, testConfig(path))
		if err != nil {
			return chain.Tip{}, err
		}
		defer c.Close()
		if err := <-served; err != nil {
			return chain.Tip{}, err
		}
		_, _, tip, err := c.Intersect(ctx, nil)
		if err != nil {
			return tip, err
		}
		if _, ok, _, err := c.Intersect(ctx, []chain.Point{pointAt(7), {}}); err != nil || !ok {
			t.Fatalf("%v %v", ok, err)
		}
		asked := make(chan error, 1)
		go func() {
			q := c.node.LocalStateQuery().Client
			q.Start()
			err := q.AcquireVolatileTip()
			for range 50 {
				if err == nil {
					var n int64
					if n, err = q.GetChainBlockNo(); n != 77 {
						t.Errorf("block number %d", n)
					}
				}
			}
			asked <- err
		}()
		want := uint64(0)
		for done := false; !done; {
			m, err := c.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range m.List {
				switch m.Kind {
				case chain.RollForward:
					want++
					if !bytes.Equal(m.Raw, block(want, want+1, 20_000)) || m.Tip != tipAt(blocks) {
						t.Fatalf("block %d: wrong bytes or tip %v", want, m.Tip)
					}
				case chain.AwaitReply:
					done = true
				}
			}
			m.Release()
		}
		if want != blocks {
			t.Errorf("%d blocks", want)
		}
		if err := <-asked; err != nil {
			t.Errorf("state query: %v", err)
		}
		return tip, nil
	}(); err != nil || tip != tipAt(blocks) {
		t.Errorf("%v %v", tip, err)
	}
	<-gone
}

// closeServer waits for the goroutines of gouroboros' server.
func closeServer(node *ouroboros.Connection) {
	for range node.Muxer().ErrorChan() {
	}
	for _, p := range []interface {
		Stop()
		DoneChan() <-chan struct{}
	}{node.Handshake().Server.Protocol, node.ChainSync().Server.ProtocolInstance(), node.LocalStateQuery().Server.Protocol,
		node.LocalTxMonitor().Server.Protocol, node.LocalTxSubmission().Server.Protocol} {
		p.Stop()
		<-p.DoneChan()
	}
}
