package e2e

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	ouroboros "github.com/blinklabs-io/gouroboros"
	"github.com/blinklabs-io/gouroboros/cbor"
	gledger "github.com/blinklabs-io/gouroboros/ledger"
	gconway "github.com/blinklabs-io/gouroboros/ledger/conway"
	gsync "github.com/blinklabs-io/gouroboros/protocol/chainsync"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"
	"github.com/blinklabs-io/gouroboros/protocol/localstatequery"
	"github.com/blinklabs-io/gouroboros/protocol/localtxsubmission"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger/params"
)

// TestFollowerOfGouroboros: a follower of a node that is gouroboros' own server, at
// origin, has its parameters and calendar, and submits to it.
func TestFollowerOfGouroboros(t *testing.T) {
	n := conway(t, 5)
	tx, id := n.compose(t)
	path := filepath.Join(t.TempDir(), "s")
	g := &gouroborosNode{t: t}
	g.serve(path)
	f := open(t, n.settings(t, path, t.TempDir()))
	keepRunning(t, f)
	sub, err := f.SubscribeParams()
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Cancel()
	got := next(t, sub)
	if p, err := params.Decode(got.Era, got.Raw); err != nil || got.Epoch != 42 || got.At.Height != 1234 || p.TxFeeFixed != forge.FeeFixed {
		t.Errorf("%+v, %+v, %v", got, p, err)
	}
	status := follows(t, f, id)
	next(t, status)
	if got, err := f.Submit(t.Context(), tx); err != nil || got != id {
		t.Fatal(got, err)
	}
	if st := next(t, status); st.State != hub.TxPending {
		t.Errorf("%+v", st)
	}
	status.Cancel() // its server reads ids in the mempool as no node does
	var no *chainsync.RejectedError
	if _, err := f.Submit(t.Context(), tx); !errors.As(err, &no) || no.Error() != "a transaction of babbage, while the ledger is in conway" {
		t.Error(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !bytes.Equal(g.submitted, tx) {
		t.Errorf("it was given %x", g.submitted)
	}
}

// gouroborosNode is a node at origin that knows parameters, and takes the first
// transaction only.
type gouroborosNode struct {
	t         *testing.T
	mu        sync.Mutex
	submitted []byte
}

func (g *gouroborosNode) serve(path string) {
	l, err := net.Listen("unix", path)
	if err != nil {
		g.t.Fatal(err)
	}
	var all sync.WaitGroup
	g.t.Cleanup(all.Wait)
	g.t.Cleanup(func() { l.Close() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			node, err := ouroboros.New(append(g.answers(), ouroboros.WithConnection(conn), ouroboros.WithServer(true),
				ouroboros.WithNetworkMagic(forge.DefaultMagic), ouroboros.WithLogger(slog.New(slog.DiscardHandler)))...)
			if err != nil {
				continue // it hung up
			}
			all.Go(func() {
				for range node.ErrorChan() { //nolint:revive // until it is closed
				}
				node.Close()
			})
		}
	})
}

func (g *gouroborosNode) answers() []ouroboros.ConnectionOptionFunc {
	origin := gsync.Tip{Point: pcommon.NewPointOrigin()}
	told := false
	return []ouroboros.ConnectionOptionFunc{
		ouroboros.WithChainSyncConfig(gsync.NewConfig(
			gsync.WithFindIntersectFunc(func(gsync.CallbackContext, []pcommon.Point) (pcommon.Point, gsync.Tip, error) {
				return pcommon.NewPointOrigin(), origin, nil
			}),
			gsync.WithRequestNextFunc(func(ctx gsync.CallbackContext) error {
				if told {
					return ctx.Server.AwaitReply()
				}
				told = true
				return ctx.Server.RollBackward(pcommon.NewPointOrigin(), origin)
			}))),
		ouroboros.WithLocalStateQueryConfig(localstatequery.NewConfig(
			localstatequery.WithAcquireFunc(func(localstatequery.CallbackContext, localstatequery.AcquireTarget, bool) error { return nil }),
			localstatequery.WithReleaseFunc(func(localstatequery.CallbackContext) error { return nil }),
			localstatequery.WithQueryFunc(func(_ localstatequery.CallbackContext, q localstatequery.QueryWrapper) (any, error) {
				return g.answer(q)
			}))),
		ouroboros.WithLocalTxSubmissionConfig(localtxsubmission.NewConfig(
			localtxsubmission.WithSubmitTxFunc(func(_ localtxsubmission.CallbackContext, tx localtxsubmission.MsgSubmitTxTransaction) error {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.submitted != nil {
					return &gledger.EraMismatch{OtherEra: gledger.EraInfo{Index: 5, Name: "Babbage"}, LedgerEra: gledger.EraInfo{Index: 6, Name: "Conway"}}
				}
				g.submitted, _ = tx.Raw.Content.([]byte)
				return nil
			}))),
	}
}

func (g *gouroborosNode) answer(q localstatequery.QueryWrapper) (any, error) {
	switch q := q.Query.(type) {
	case *localstatequery.SystemStartQuery:
		return []any{2020, 1, 0}, nil
	case *localstatequery.ChainBlockNoQuery:
		return []any{1, 1234}, nil
	case *localstatequery.ChainPointQuery:
		return pcommon.NewPoint(777, bytes.Repeat([]byte{7}, 32)), nil
	case *localstatequery.BlockQuery:
		switch b := q.Query.(type) {
		case *localstatequery.HardForkQuery:
			if _, ok := b.Query.(*localstatequery.HardForkEraHistoryQuery); ok {
				return []any{[]any{[]any{0, 0, 0}, nil, []any{100, 1000, []any{0, 50, []any{0}}, 50}}}, nil
			}
			return 6, nil
		case *localstatequery.ShelleyQuery:
			switch b.Query.(type) {
			case *localstatequery.ShelleyEpochNoQuery:
				return []any{42}, nil
			case *localstatequery.ShelleyCurrentProtocolParamsQuery:
				var pp gconway.ConwayProtocolParameters
				if _, err := cbor.Decode(devnode.AppendParams(nil, chain.Conway, 21), &pp); err != nil {
					return nil, err
				}
				return []any{pp}, nil
			}
		}
	}
	return nil, errors.New("no such query")
}
