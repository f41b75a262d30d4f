package devnode_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/big"
	"slices"
	"testing"
	"time"

	ouroboros "github.com/blinklabs-io/gouroboros"
	gledger "github.com/blinklabs-io/gouroboros/ledger"
	"github.com/blinklabs-io/gouroboros/ledger/conway"
	"github.com/blinklabs-io/gouroboros/protocol/localtxsubmission"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/internal/wire"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/params"
	"github.com/ourotail/ourotail/ledger/reject"
)

// gouroborosConn connects all of gouroboros' own clients.
func gouroborosConn(t *testing.T, socket string) *ouroboros.Connection {
	t.Helper()
	conn, err := ouroboros.New(ouroboros.WithNetworkMagic(forge.DefaultMagic), ouroboros.WithNodeToNode(false),
		ouroboros.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Dial("unix", socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// inConway is a chain that begins in Conway, with blocks enough to spend from.
func inConway(t testing.TB) *devnode.Chain {
	return devtest.Generate(t, forge.Options{Seed: 4, K: 30, EpochBlocks: 8, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}},
		SystemStart: time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)}, 20)
}

var payee = append([]byte{0x60}, make([]byte, 28)...)

func compose(t testing.TB, c *devnode.Chain, spend ...chain.TxIn) ([]byte, chain.TxID) {
	t.Helper()
	raw, id, err := c.Compose(forge.Order{Spend: spend, Pay: []forge.Payment{{Address: payee, Lovelace: 3_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw, id
}

const conwayIndex = uint16(chain.Conway - chain.Byron)

// TestGouroborosSubmits: gouroboros' own clients submit a transaction, see it in
// the mempool as it is, and find it in the next block; a second time it is
// rejected in the ledger's words.
func TestGouroborosSubmits(t *testing.T) {
	c := inConway(t)
	conn := gouroborosConn(t, devtest.Start(t, devnode.Config{Chain: c}).Socket())
	submit, monitor := conn.LocalTxSubmission().Client, conn.LocalTxMonitor().Client
	capacity, size, n, err := monitor.GetSizes()
	if err != nil || capacity != devnode.MempoolCapacity || size != 0 || n != 0 {
		t.Fatalf("%d %d %d %v", capacity, size, n, err)
	}
	if err := monitor.Release(); err != nil {
		t.Fatal(err)
	}
	first, firstID := compose(t, c)
	if err := submit.SubmitTx(conwayIndex, first); err != nil {
		t.Fatal(err)
	}
	second, secondID := compose(t, c, chain.TxIn{ID: firstID}) // of an output that is in no block yet
	if err := submit.SubmitTx(conwayIndex, second); err != nil {
		t.Fatal(err)
	}
	if err := monitor.Acquire(); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]byte{first, second} {
		if got, err := monitor.NextTx(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%x, %v; want %x", got, err, want)
		}
	}
	if got, err := monitor.NextTx(); err != nil || got != nil {
		t.Errorf("a third: %x, %v", got, err)
	}
	for id, want := range map[chain.TxID]bool{firstID: true, secondID: true, {1}: false} {
		if has, err := monitor.HasTx(id[:]); err != nil || has != want {
			t.Errorf("%v: %v, %v", id, has, err)
		}
	}
	if _, size, n, err := monitor.GetSizes(); err != nil || int(size) != len(first)+len(second) || n != 2 {
		t.Errorf("%d bytes, %d transactions, %v", size, n, err)
	}
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	raw, err := c.Raw(c.Len() - 1)
	if err != nil {
		t.Fatal(err)
	}
	var b ledger.Block
	if err := b.Walk(raw); err != nil || len(b.Txs) < 2 || b.Txs[0].ID != firstID || b.Txs[1].ID != secondID {
		t.Errorf("the next block does not begin with them: %v", err)
	}
	if left := c.Mempool(); left != nil {
		t.Errorf("still in the mempool: %v", left)
	}
	err = submit.SubmitTx(conwayIndex, first)
	var rejected *localtxsubmission.TransactionRejectedError
	var byValue localtxsubmission.TransactionRejectedError
	if !errors.As(err, &rejected) && errors.As(err, &byValue) {
		rejected = &byValue
	}
	if rejected == nil {
		t.Fatalf("a second time: %v", err)
	}
	if got := reject.Text(rejected.ReasonCbor); got != "ConwayMempoolFailure: All inputs are spent. Transaction has probably already been included" {
		t.Error(got)
	}
}

// TestGouroborosAsksForParameters: parameters and calendar as gouroboros' own
// client reads them.
func TestGouroborosAsksForParameters(t *testing.T) {
	c := shortK(t, 150)
	q := gouroborosClient(t, devtest.Start(t, devnode.Config{Chain: c}).Socket())
	if err := q.AcquireVolatileTip(); err != nil {
		t.Fatal(err)
	}
	pp, err := q.GetCurrentProtocolParams()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := pp.(*conway.ConwayProtocolParameters)
	if !ok || got.MinFeeA != forge.FeePerByte || got.MaxTxSize != forge.MaxTxSize || got.ProtocolVersion.Major != 9 || len(got.CostModels[2]) != 297 ||
		got.MinFeeRefScriptCostPerByte.Cmp(big.NewRat(15, 1)) != 0 {
		t.Errorf("%T %+v", pp, pp)
	}
	epoch, err := q.GetEpochNo()
	if err != nil {
		t.Fatal(err)
	}
	eras, err := q.GetEraHistory()
	if err != nil || len(eras) != 7 {
		t.Fatalf("%d eras, %v", len(eras), err)
	}
	slot := int(c.Tip().Point.Slot)
	last := eras[6]
	if last.Begin.SlotNo > slot || last.End.SlotNo <= slot || last.Begin.EpochNo > epoch || last.End.EpochNo <= epoch || last.Params.SlotLength != 1000 {
		t.Errorf("slot %d, epoch %d, %+v", slot, epoch, last)
	}
	if want := last.Begin.EpochNo + (slot-last.Begin.SlotNo)/last.Params.EpochLength; epoch != want {
		t.Errorf("epoch %d, by the calendar %d", epoch, want)
	}
}

// TestParamsByVersion: in every era the parameters are read by a decoder of ours
// that shares no code with what writes them, with the version that the client's
// version of the protocol has in either form.
func TestParamsByVersion(t *testing.T) {
	for era := chain.Shelley; era <= chain.Dijkstra; era++ {
		for _, version := range []uint16{16, 21, 23} {
			p, err := params.Decode(era, devnode.AppendParams(nil, era, version))
			if err != nil || p.TxFeeFixed != forge.FeeFixed || p.ProtocolVersion.Major != forge.ProtocolVersion(era) {
				t.Errorf("%s, version %d: %+v, %v", era, version, p, err)
			}
		}
	}
}

// TestRefusalsByEra: each failure reads as itself in every era that can have it.
func TestRefusalsByEra(t *testing.T) {
	ttl := uint64(7)
	for _, no := range []*forge.Refusal{
		{Kind: forge.BadInputsUTxO, Refs: []chain.TxIn{{ID: chain.Hash{1}, Index: 2}}},
		{Kind: forge.OutsideValidityInterval, TTL: &ttl, Slot: 9}, {Kind: forge.MaxTxSizeUTxO, Want: 1, Have: 2}, {Kind: forge.InputSetEmpty},
		{Kind: forge.FeeTooSmall, Want: 1, Have: 2}, {Kind: forge.ValueNotConserved, In: []byte{1}, Out: []byte{2}},
	} {
		want := map[forge.RefusalKind]string{forge.BadInputsUTxO: "BadInputsUTxO", forge.OutsideValidityInterval: "OutsideValidityIntervalUTxO",
			forge.MaxTxSizeUTxO: "MaxTxSizeUTxO", forge.InputSetEmpty: "InputSetEmptyUTxO", forge.FeeTooSmall: "FeeTooSmallUTxO",
			forge.ValueNotConserved: "ValueNotConservedUTxO"}[no.Kind]
		for era := chain.Shelley; era <= chain.Conway; era++ {
			name := want
			if era == chain.Shelley && no.Kind == forge.OutsideValidityInterval {
				name = "Expired"
			}
			r, err := reject.Decode(devnode.AppendRefusal(nil, era, no))
			if err != nil || r.Era != era || len(r.Failures) != 1 || r.Failures[0].Name != name || slices.Index(r.Failures[0].Rules, "UTXO") < 0 {
				t.Errorf("%s %s: %+v, %v", era, name, r, err)
			}
		}
	}
	wrong := devnode.AppendRefusal(nil, chain.Conway, &forge.Refusal{Kind: forge.WrongEra, TxEra: chain.Babbage, Era: chain.Conway})
	if e, err := gledger.NewEraMismatchErrorFromCbor(wrong); err != nil {
		t.Errorf("gouroboros reads %v, %v", e, err)
	}
	if r, err := reject.Decode(wrong); err != nil || !r.WrongEra || r.TxEra != chain.Babbage {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestMempoolAndForks: what a fork makes impossible leaves the mempool; what was
// in a block that left the chain does not return, as with a node.
func TestMempoolAndForks(t *testing.T) {
	c := inConway(t)
	submit := func(raw []byte) {
		t.Helper()
		if _, no := c.Submit(chain.Conway, raw); no != nil {
			t.Fatal(no)
		}
	}
	first, firstID := compose(t, c)
	submit(first)
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	child, childID := compose(t, c, chain.TxIn{ID: firstID})
	c.HoldMempool(true)
	submit(child)
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	if got := c.Mempool(); !slices.Equal(got, []chain.TxID{childID}) {
		t.Fatalf("held: %v", got)
	}
	if err := c.Fork(2, 3); err != nil { // the block with its parent goes
		t.Fatal(err)
	}
	if got := c.Mempool(); got != nil {
		t.Errorf("after the fork: %v", got)
	}
	c.HoldMempool(false)
	submit(first) // it is valid again, unless the new branch spent its inputs: this seed's did not
	c.DropFromMempool(firstID)
	if got := c.Mempool(); got != nil {
		t.Errorf("dropped: %v", got)
	}
}

// TestSubmissionRefusals: what a node drops a client for.
func TestSubmissionRefusals(t *testing.T) {
	c := inConway(t)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	tx, _ := compose(t, c)
	for name, m := range map[string]struct {
		protocol uint16
		msgs     [][]byte
	}{
		"submission: no array":         {devnode.ProtocolTxSubmission, [][]byte{{0}}},
		"submission: an answer":        {devnode.ProtocolTxSubmission, [][]byte{{0x81, 1}}},
		"submission: no wrapper":       {devnode.ProtocolTxSubmission, [][]byte{append([]byte{0x82, 0, 0x82, 6}, tx...)}},
		"submission: an era too far":   {devnode.ProtocolTxSubmission, [][]byte{wire.Embedded([]byte{0x82, 0, 0x82, 9}, tx)}},
		"monitor: not acquired":        {devnode.ProtocolTxMonitor, [][]byte{{0x81, 5}}},
		"monitor: release, not held":   {devnode.ProtocolTxMonitor, [][]byte{{0x81, 3}}},
		"monitor: done while acquired": {devnode.ProtocolTxMonitor, [][]byte{{0x81, 1}, {0x81, 0}}},
		"monitor: a short id":          {devnode.ProtocolTxMonitor, [][]byte{{0x81, 1}, {0x82, 7, 0x82, 6, 0x41, 1}}},
		"monitor: an unknown message":  {devnode.ProtocolTxMonitor, [][]byte{{0x81, 1}, {0x81, 13}}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := connect(t, srv, forge.DefaultMagic)
			for i, msg := range m.msgs {
				cl.send(m.protocol, msg)
				b, err := cl.read(m.protocol)
				if last := i == len(m.msgs)-1; last && !gone(err) || !last && err != nil {
					t.Errorf("message %d: %x %v", i, b, err)
				}
			}
		})
	}
}

// TestMonitorAwaits: a client that has a snapshot and asks for another gets it
// when the mempool changes; measures say the same as sizes.
func TestMonitorAwaits(t *testing.T) {
	c := inConway(t)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	cl := connect(t, srv, forge.DefaultMagic)
	acquire := []byte{0x81, 1}
	cl.send(devnode.ProtocolTxMonitor, acquire)
	if got := cl.message(devnode.ProtocolTxMonitor); got[1] != 2 {
		t.Fatalf("%x", got)
	}
	cl.send(devnode.ProtocolTxMonitor, acquire)
	tx, _ := compose(t, c)
	if _, no := c.Submit(chain.Conway, tx); no != nil {
		t.Fatal(no)
	}
	if got := cl.message(devnode.ProtocolTxMonitor); got[1] != 2 {
		t.Fatalf("%x", got)
	}
	cl.send(devnode.ProtocolTxMonitor, []byte{0x81, 11})
	want := wire.Uint(wire.Uint(wire.Array(wire.Text([]byte{0x83, 12, 1, 0xa1}, "transaction_bytes"), 2), uint64(len(tx))), devnode.MempoolCapacity)
	if got := cl.message(devnode.ProtocolTxMonitor); !bytes.Equal(got, want) {
		t.Errorf("%s, want %s", hex.EncodeToString(got), hex.EncodeToString(want))
	}
}

// TestFolderTakesNoTransactions: a chain of blocks alone has an empty mempool,
// and rejects what is submitted in words instead of dropping the client.
func TestFolderTakesNoTransactions(t *testing.T) {
	srv := devtest.Start(t, devnode.Config{Chain: devnode.NewChain()})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.send(devnode.ProtocolTxSubmission, wire.Embedded([]byte{0x82, 0, 0x82, 6}, []byte{0x84, 0xa0, 0xa0, 0xf5, 0xf6}))
	got := cl.message(devnode.ProtocolTxSubmission)
	if r, err := reject.Decode(got[2:]); got[1] != 2 || err != nil || r.Failures[0].Name != "ConwayMempoolFailure" {
		t.Errorf("%x: %+v, %v", got, r, err)
	}
	for _, step := range [][2][]byte{{{0x81, 1}, {0x82, 2, 0}}, {{0x81, 5}, {0x81, 6}}} {
		cl.send(devnode.ProtocolTxMonitor, step[0])
		if got := cl.message(devnode.ProtocolTxMonitor); !bytes.Equal(got, step[1]) {
			t.Errorf("%x is answered with %x", step[0], got)
		}
	}
}
