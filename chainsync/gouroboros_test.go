package chainsync

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"

	ouroboros "github.com/blinklabs-io/gouroboros"
	"github.com/blinklabs-io/gouroboros/cbor"
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
				localstatequery.WithQueryFunc(func(_ localstatequery.CallbackContext, q localstatequery.QueryWrapper) (any, error) {
					block, ok := q.Query.(*localstatequery.BlockQuery)
					if !ok {
						return nil, errPeer
					}
					switch b := block.Query.(type) {
					case *localstatequery.HardForkQuery:
						return 6, nil
					case *localstatequery.ShelleyQuery:
						u, ok := b.Query.(*localstatequery.ShelleyUtxoByTxinQuery)
						if !ok || b.Era != 6 {
							return nil, errPeer
						}
						var list []byte
						for _, in := range u.TxIns {
							list = rawRef(list, chain.TxIn{ID: chain.Hash(in.TxId), Index: in.OutputIndex})
							list = append(list, 0x82, 0x41, byte(in.OutputIndex), 7)
						}
						return cbor.RawMessage(append(append([]byte{0x81, 0xbf}, list...), 0xff)), nil
					}
					return nil, errPeer
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
			err := func() error {
				for round := range 50 {
					st, err := c.Acquire(ctx, pointAt(7))
					if err != nil {
						return err
					}
					refs := []chain.TxIn{{ID: chain.Hash{1}, Index: 1}, {ID: chain.Hash{2}, Index: uint32(round)}}
					got, err := st.UTxOByTxIn(ctx, refs)
					st.Release()
					if err != nil {
						return err
					}
					if st.Era() != chain.Conway || len(got) != 2 || !bytes.Equal(got[refs[1]], []byte{0x82, 0x41, byte(round), 7}) {
						t.Errorf("%v: %x", st.Era(), got)
					}
				}
				return nil
			}()
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
