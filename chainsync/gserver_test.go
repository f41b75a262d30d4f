package chainsync_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"

	ouroboros "github.com/blinklabs-io/gouroboros"
	"github.com/blinklabs-io/gouroboros/cbor"
	gledger "github.com/blinklabs-io/gouroboros/ledger"
	"github.com/blinklabs-io/gouroboros/ledger/conway"
	pcommon "github.com/blinklabs-io/gouroboros/protocol/common"
	"github.com/blinklabs-io/gouroboros/protocol/localstatequery"
	"github.com/blinklabs-io/gouroboros/protocol/localtxmonitor"
	"github.com/blinklabs-io/gouroboros/protocol/localtxsubmission"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger/params"
)

// TestFactsAgainstGouroboros: parameters, mempool and submission against
// gouroboros' own server. Its Has is left out: it reads a bare id, while a node
// reads one with an era; so is its calendar, which is answered as bytes here.
func TestFactsAgainstGouroboros(t *testing.T) {
	c := inConway(t)
	pay := forge.Order{Pay: []forge.Payment{{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}}}
	tx, id, err := c.Compose(pay)
	if err != nil {
		t.Fatal(err)
	}
	var pp conway.ConwayProtocolParameters
	if _, err := cbor.Decode(devnode.AppendParams(nil, chain.Conway, 21), &pp); err != nil {
		t.Fatal(err)
	}
	// The bytes that it answers with: the newest layout, with extra configuration.
	var genesis localstatequery.GenesisConfigResult
	text := append([]byte{0x90, 0x83, 0x19, 0x07, 0xe1, 0x18, 0xfe, 0x1b, 0, 0, 0x41, 0x5a, 0x0e, 0xc6, 0x80, 0, // [2017, 254, ...]
		0x18, 42, 0, 0x82, 1, 20, 0x19, 0x08, 0x70, 0x1a, 0, 6, 0x97, 0x80, 1, 2, 0x1a, 0, 0x0f, 0x42, 0x40, 5, 6}, devnode.AppendParams(nil, chain.Shelley, 21)...)
	text = append(text, 0xa0, 0xa0, 0x82, 0xa0, 0xa0, 0x80)
	if _, err := cbor.Decode(text, &genesis); err != nil {
		t.Fatal(err)
	}
	var submitted []byte
	mismatch := &gledger.EraMismatch{OtherEra: gledger.EraInfo{Index: 5, Name: "Babbage"}, LedgerEra: gledger.EraInfo{Index: 6, Name: "Conway"}}
	path, gone := serveGouroboros(t,
		ouroboros.WithLocalStateQueryConfig(localstatequery.NewConfig(
			localstatequery.WithAcquireFunc(func(localstatequery.CallbackContext, localstatequery.AcquireTarget, bool) error { return nil }),
			localstatequery.WithReleaseFunc(func(localstatequery.CallbackContext) error { return nil }),
			localstatequery.WithQueryFunc(func(_ localstatequery.CallbackContext, q localstatequery.QueryWrapper) (any, error) {
				switch q := q.Query.(type) {
				case *localstatequery.ChainBlockNoQuery:
					return []any{1, 1234}, nil
				case *localstatequery.ChainPointQuery:
					return pcommon.NewPoint(777, bytes.Repeat([]byte{7}, 32)), nil
				case *localstatequery.BlockQuery:
					switch b := q.Query.(type) {
					case *localstatequery.HardForkQuery:
						return 6, nil
					case *localstatequery.ShelleyQuery:
						switch b.Query.(type) {
						case *localstatequery.ShelleyEpochNoQuery:
							return []any{42}, nil
						case *localstatequery.ShelleyCurrentProtocolParamsQuery:
							return []any{pp}, nil
						case *localstatequery.ShelleyGenesisConfigQuery:
							return []any{genesis}, nil
						}
					}
				}
				return nil, errors.New("no such query")
			}))),
		ouroboros.WithLocalTxMonitorConfig(localtxmonitor.NewConfig(
			localtxmonitor.WithGetMempoolFunc(func(localtxmonitor.CallbackContext) (uint64, uint32, []localtxmonitor.TxAndEraId, error) {
				return 888, 9999, []localtxmonitor.TxAndEraId{{EraId: 6, Tx: tx}}, nil
			}))),
		ouroboros.WithLocalTxSubmissionConfig(localtxsubmission.NewConfig(
			localtxsubmission.WithSubmitTxFunc(func(_ localtxsubmission.CallbackContext, tx localtxsubmission.MsgSubmitTxTransaction) error {
				if submitted != nil {
					return mismatch
				}
				submitted, _ = tx.Raw.Content.([]byte)
				return nil
			}))),
	)
	cfg := chainsync.Config{SocketPath: path, Magic: forge.DefaultMagic}
	ctx := t.Context()
	conn, err := chainsync.Dial(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := conn.AcquireTip(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Params(ctx)
	if err != nil || p.Epoch != 42 || p.At.Height != 1234 || p.At.Point.Slot != 777 || p.Era != chain.Conway {
		t.Errorf("%+v, %v", p, err)
	}
	if d, err := params.Decode(p.Era, p.Raw); err != nil || d.TxFeeFixed != forge.FeeFixed || d.MinFeeRefScriptCostPerByte.String() != "15/1" {
		t.Errorf("%+v, %v", d, err)
	}
	if g, err := s.Genesis(ctx); err != nil || g.Magic != 42 || g.K != 2160 || g.EpochSlots != 432_000 || g.SlotLength.RatString() != "1" ||
		g.ActiveSlots.RatString() != "1/20" || g.SystemStart.YearDay() != 254 || len(g.Params) == 0 || len(g.Raw) == 0 || g.Raw[0] != 0x90 {
		t.Errorf("%+v, %v", g, err)
	}
	s.Release()
	m, err := conn.Mempool(ctx)
	if err != nil || m.Slot() != 888 {
		t.Fatal(err)
	}
	if sizes, err := m.Sizes(ctx); err != nil || sizes != (chainsync.MempoolSizes{Capacity: 9999, Size: uint32(len(tx)), Txs: 1}) {
		t.Errorf("%+v %v", sizes, err)
	}
	if ids, err := m.TxIDs(ctx); err != nil || !slices.Equal(ids, []chain.TxID{id}) {
		t.Errorf("%v %v", ids, err)
	}
	m.Release()
	if got, err := conn.Submit(ctx, 0, tx); err != nil || got != id || !bytes.Equal(submitted, tx) {
		t.Errorf("%v %v: %x", got, err, submitted)
	}
	var no *chainsync.RejectedError
	if _, err := conn.Submit(ctx, chain.Conway, tx); !errors.As(err, &no) || no.Error() != "a transaction of babbage, while the ledger is in conway" {
		t.Errorf("again: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	<-gone
}

// serveGouroboros serves one connection with gouroboros' server.
func serveGouroboros(t *testing.T, opts ...ouroboros.ConnectionOptionFunc) (path string, gone <-chan struct{}) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		node, err := ouroboros.New(append(opts, ouroboros.WithConnection(conn), ouroboros.WithServer(true),
			ouroboros.WithNetworkMagic(forge.DefaultMagic), ouroboros.WithLogger(slog.New(slog.DiscardHandler)))...)
		if err != nil {
			t.Error(err)
			return
		}
		for range node.ErrorChan() { //nolint:revive // until it is closed
		}
		node.Close()
		for range node.Muxer().ErrorChan() { //nolint:revive // until it is closed
		}
		for _, p := range []interface {
			Stop()
			DoneChan() <-chan struct{}
		}{node.Handshake().Server.Protocol, node.ChainSync().Server.ProtocolInstance(), node.LocalStateQuery().Server.Protocol,
			node.LocalTxMonitor().Server.Protocol, node.LocalTxSubmission().Server.Protocol} {
			p.Stop()
			<-p.DoneChan()
		}
	}()
	return path, done
}
