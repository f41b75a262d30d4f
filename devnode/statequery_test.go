package devnode_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gledger "github.com/blinklabs-io/gouroboros/ledger"
	ocommon "github.com/blinklabs-io/gouroboros/protocol/common"
	"github.com/blinklabs-io/gouroboros/protocol/localstatequery"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/devnode/internal/wire"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
)

// gouroborosClient connects gouroboros' own state query client.
func gouroborosClient(t *testing.T, socket string) *localstatequery.Client {
	t.Helper()
	return gouroborosConn(t, socket).LocalStateQuery().Client
}

func gpoint(p chain.Point) *ocommon.Point {
	out := ocommon.NewPoint(uint64(p.Slot), p.Hash[:])
	return &out
}

// shortK makes chains whose immutable tip comes soon.
func shortK(t *testing.T, blocks int) *devnode.Chain {
	return devtest.Generate(t, forge.Options{Seed: 9, K: 30, EpochBlocks: 8, Plain: true,
		SystemStart: time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)}, blocks)
}

func TestGouroborosAsksForState(t *testing.T) {
	c := shortK(t, 120)
	q := gouroborosClient(t, devtest.Start(t, devnode.Config{Chain: c}).Socket())
	n := c.Len()
	for name, a := range map[string]struct {
		point *ocommon.Point
		tip   func() error
		at    chain.At
		err   error
	}{
		"the tip":              {tip: q.AcquireVolatileTip, at: c.Tip()},
		"the immutable tip":    {tip: q.AcquireImmutableTip, at: c.At(n - 1 - 30)},
		"a recent point":       {point: gpoint(c.At(n - 7).Point), at: c.At(n - 7)},
		"the oldest there is":  {point: gpoint(c.At(n - 1 - 30).Point), at: c.At(n - 1 - 30)},
		"one that is older":    {point: gpoint(c.At(n - 2 - 30).Point), err: localstatequery.ErrAcquireFailurePointTooOld},
		"origin":               {point: &ocommon.Point{}, err: localstatequery.ErrAcquireFailurePointTooOld},
		"a recent one of ours": {point: gpoint(chain.Point{Slot: c.Tip().Point.Slot, Hash: chain.Hash{1}}), err: localstatequery.ErrAcquireFailurePointNotOnChain},
		"one in the future":    {point: gpoint(chain.Point{Slot: c.Tip().Point.Slot + 9, Hash: chain.Hash{1}}), err: localstatequery.ErrAcquireFailurePointNotOnChain},
	} {
		for round := range 2 { // acquire, or reacquire after a success
			err := error(nil)
			if a.tip != nil {
				err = a.tip()
			} else {
				err = q.Acquire(a.point)
			}
			if !errors.Is(err, a.err) {
				t.Fatalf("%s, round %d: %v, want %v", name, round, err, a.err)
			}
			if err != nil {
				continue
			}
			p, err := q.GetChainPoint()
			if err != nil || chain.Slot(p.Slot) != a.at.Point.Slot || !bytes.Equal(p.Hash, a.at.Point.Hash[:]) {
				t.Fatalf("%s: %v %v, want %v", name, p, err, a.at)
			}
			if h, err := q.GetChainBlockNo(); err != nil || chain.Height(h) != a.at.Height {
				t.Fatalf("%s: height %d %v, want %v", name, h, err, a.at)
			}
		}
	}
	if err := q.AcquireVolatileTip(); err != nil {
		t.Fatal(err)
	}
	if s, err := q.GetSystemStart(); err != nil || s.Year.Int64() != 2021 || s.Day != 34 || s.Picoseconds.String() != "14706000000000000" {
		t.Errorf("system start %v %v", s, err)
	}
	if err := q.Release(); err != nil {
		t.Fatal(err)
	}
	if err := q.AcquireVolatileTip(); err != nil {
		t.Fatal(err)
	}
	if era, err := q.GetCurrentEra(); err != nil || era != gledger.EraIdConway {
		t.Errorf("era %d %v", era, err)
	}
}

// TestGouroborosFindsOutputs: all outputs of the set, and none that was spent.
func TestGouroborosFindsOutputs(t *testing.T) {
	c := shortK(t, 120)
	q := gouroborosClient(t, devtest.Start(t, devnode.Config{Chain: c}).Socket())
	set, err := c.Oracle().Set(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Oracle().Effects(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var spent []chain.TxIn
	for _, tx := range e.Txs {
		for _, o := range tx.Spent {
			spent = append(spent, o.Ref)
		}
	}
	refs := slices.Collect(maps.Keys(set))
	for _, r := range append(refs[:min(200, len(refs)):200], spent...) {
		in := gledger.ShelleyTransactionInput{TxId: gledger.Blake2b256(r.ID), OutputIndex: r.Index}
		got, err := q.GetUTxOByTxIn([]gledger.TransactionInput{in})
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		want, unspent := set[r]
		out, found := got.Results[localstatequery.UtxoId{Hash: gledger.Blake2b256(r.ID), Idx: int(r.Index)}]
		if found != unspent || len(got.Results) > 1 {
			t.Fatalf("%v: found %v, unspent %v", r, found, unspent)
		}
		if unspent && out.Amount().Uint64() != want.Lovelace {
			t.Errorf("%v: %v, want %d", r, out.Amount(), want.Lovelace)
		}
	}
}

// query sends a state query and returns the answer inside [4, answer].
func (c *client) query(q []byte) []byte {
	c.t.Helper()
	c.send(devnode.ProtocolStateQuery, append(wire.Uint(wire.Array(nil, 2), 3), q...))
	b := c.message(devnode.ProtocolStateQuery)
	if len(b) < 2 || b[0] != 0x82 || b[1] != 4 {
		c.t.Fatalf("answer %x", b)
	}
	return b[2:]
}

func (c *client) acquire(p chain.Point) []byte {
	c.t.Helper()
	c.send(devnode.ProtocolStateQuery, devnode.AppendPoint(wire.Uint(wire.Array(nil, 2), 0), p))
	return c.message(devnode.ProtocolStateQuery)
}

func utxoQuery(era chain.Era, refs ...chain.TxIn) []byte {
	b := wire.Uint(wire.Array(nil, 2), 0)
	b = wire.Uint(wire.Array(b, 2), 0)
	b = wire.Uint(wire.Array(b, 2), uint64(era-chain.Byron))
	b = wire.Uint(wire.Array(b, 2), 15)
	b = wire.Array(b, len(refs))
	for _, r := range refs {
		b = wire.Uint(wire.Bytes(wire.Array(b, 2), r.ID[:]), uint64(r.Index))
	}
	return b
}

// readUTxO reads [{reference => output}].
func readUTxO(t *testing.T, b []byte) map[chain.TxIn][]byte {
	t.Helper()
	if b[0] != 0x81 {
		t.Fatalf("answer %.40x", b)
	}
	m, err := wire.Read(b, 1)
	if err != nil || m.Major != wire.MajorMap {
		t.Fatalf("answer %.40x: %v", b, err)
	}
	out := map[chain.TxIn][]byte{}
	off := m.Next
	for i := uint64(0); m.Indef && b[off] != wire.Break || !m.Indef && i < m.Arg; i++ {
		_, next, err := wire.ReadArray(b, off)
		if err != nil {
			t.Fatal(err)
		}
		id, next, err := wire.ReadBytes(b, next)
		if err != nil {
			t.Fatal(err)
		}
		ix, next, err := wire.ReadUint(b, next)
		if err != nil {
			t.Fatal(err)
		}
		if off, err = wire.Skip(b, next); err != nil {
			t.Fatal(err)
		}
		out[chain.TxIn{ID: chain.Hash(id), Index: uint32(ix)}] = b[next:off]
	}
	if m.Indef != (len(out) > 23) {
		t.Errorf("a map of %d pairs, indefinite: %v", len(out), m.Indef)
	}
	return out
}

// TestOutputsOfEveryEra asks for the whole set at the end of every era, through
// the rules of decoding of that era.
func TestOutputsOfEveryEra(t *testing.T) {
	opts := forge.Options{Seed: 4, EpochBlocks: 8, Eras: []forge.EraSpan{{Era: chain.Byron, Epochs: 2}, {Era: chain.Shelley, Epochs: 1},
		{Era: chain.Allegra, Epochs: 1}, {Era: chain.Mary, Epochs: 1}, {Era: chain.Alonzo, Epochs: 2}, {Era: chain.Babbage, Epochs: 3},
		{Era: chain.Conway, Epochs: 4}, {Era: chain.Dijkstra}}}
	c := devtest.Generate(t, opts, 160)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	path, err := c.Oracle().Path(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	cl := connect(t, srv, forge.DefaultMagic)
	eras, cropped := 0, 0
	for i, l := range path {
		if i+1 < len(path) && path[i+1].Era == l.Era || l.Era == chain.Byron {
			continue
		}
		eras++
		if got := cl.acquire(l.Point); !bytes.Equal(got, []byte{0x81, 1}) {
			t.Fatalf("%v: %x", l.At(), got)
		}
		set, err := c.Oracle().Set(l.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		answer := readUTxO(t, cl.query(utxoQuery(l.Era, slices.SortedFunc(maps.Keys(set), chain.TxIn.Compare)...)))
		if len(answer) != len(set) {
			t.Errorf("%v: %d outputs, want %d", l.Era, len(answer), len(set))
		}
		for ref, raw := range answer {
			out, err := ledger.DecodeOutput(l.Era, raw)
			if err != nil {
				t.Fatalf("%v in %v: %v: %x", ref, l.Era, err, raw)
			}
			want := set[ref]
			got, line := strings.SplitN(string(canon.AppendUTxO(nil, ref, &out)), " ", 3), strings.SplitN(want.Line(), " ", 3)
			if crop := len(want.Address) - len(out.Address); crop > 0 && want.Era > chain.Byron && want.Era < chain.Babbage && bytes.HasPrefix(want.Address, out.Address) {
				cropped++
				got[1] = line[1]
			}
			if !slices.Equal(got, line) {
				t.Errorf("%v: %v\n  want %v", l.Era, got, line)
			}
		}
		cl.send(devnode.ProtocolStateQuery, []byte{0x81, 5})
	}
	if eras != 7 || cropped == 0 {
		t.Errorf("%d eras, %d addresses with trailing bytes: the test does not see all it should", eras, cropped)
	}
}

// TestQueryOfAnotherEra: the answer names both, as the node's does.
func TestQueryOfAnotherEra(t *testing.T) {
	c := devtest.Varied(t, 5, 120)
	cl := connect(t, devtest.Start(t, devnode.Config{Chain: c}), forge.DefaultMagic)
	cl.acquire(c.Tip().Point)
	got := cl.query(utxoQuery(chain.Mary))
	if want := "828203" + "644d617279" + "8206" + "66436f6e776179"; hex.EncodeToString(got) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

// TestStateOutlivesAFork: what was acquired stays as it was.
func TestStateOutlivesAFork(t *testing.T) {
	c := devtest.Varied(t, 6, 120)
	cl := connect(t, devtest.Start(t, devnode.Config{Chain: c}), forge.DefaultMagic)
	tip := c.Tip()
	set, err := c.Oracle().Set(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	cl.acquire(tip.Point)
	if err := c.Fork(20, 25); err != nil {
		t.Fatal(err)
	}
	refs := slices.Collect(maps.Keys(set))
	if got := readUTxO(t, cl.query(utxoQuery(chain.Conway, refs...))); len(got) != len(set) {
		t.Errorf("%d outputs, want %d", len(got), len(set))
	}
	cl.send(devnode.ProtocolStateQuery, devnode.AppendPoint([]byte{0x82, 6}, tip.Point))
	if got := cl.message(devnode.ProtocolStateQuery); !bytes.Equal(got, []byte{0x82, 2, 1}) {
		t.Errorf("reacquire: %x", got)
	}
}

// TestStateQueryRefusals: what a node drops a client for, and what this server
// cannot answer.
func TestStateQueryRefusals(t *testing.T) {
	c := devtest.Varied(t, 5, 120)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	acquired := []byte{0x81, 8}
	ask := func(q ...byte) []byte { return append([]byte{0x82, 3}, q...) }
	twice := utxoQuery(chain.Conway, chain.TxIn{Index: 1}, chain.TxIn{Index: 1})
	for name, msgs := range map[string][][]byte{
		"a query with nothing acquired": {ask(0x81, 3)},
		"acquired twice":                {acquired, acquired},
		"reacquired without":            {{0x81, 9}},
		"released without":              {{0x81, 5}},
		"done while acquired":           {acquired, {0x81, 7}},
		"a message nobody knows":        {{0x81, 12}},
		"an answer from a client":       {{0x81, 1}},
		"a point of one item":           {{0x82, 0, 0x81, 1}},
		"a query that is no array":      {acquired, ask(3)},
		"an unknown query":              {acquired, ask(0x81, 9)},
		"stake, which it has not got":   {acquired, ask(0x82, 0, 0x82, 0, 0x82, 6, 0x81, 5)},
		"an era there is not":           {acquired, ask(utxoQuery(12)...)},
		"a reference twice":             {acquired, ask(twice...)},
		"a short id":                    {acquired, ask(0x82, 0, 0x82, 0, 0x82, 6, 0x82, 15, 0x81, 0x82, 0x41, 1, 0)},
		"an index of 17 bits":           {acquired, ask(utxoQuery(chain.Conway, chain.TxIn{Index: 1 << 16})...)},
	} {
		t.Run(name, func(t *testing.T) {
			cl := connect(t, srv, forge.DefaultMagic)
			for i, m := range msgs {
				cl.send(devnode.ProtocolStateQuery, m)
				b, err := cl.read(devnode.ProtocolStateQuery)
				if last := i == len(msgs)-1; last && !gone(err) || !last && err != nil {
					t.Errorf("message %d: %x %v", i, b, err)
				}
			}
		})
	}
}

// TestFolderHasNoLedger: a chain of blocks alone answers what blocks tell, and
// drops whoever asks for outputs.
func TestFolderHasNoLedger(t *testing.T) {
	c := devtest.Varied(t, 5, 60)
	plain := devnode.NewChain()
	for i := range c.Len() {
		raw, err := c.Raw(i)
		if err != nil {
			t.Fatal(err)
		}
		h, err := immutable.ReadHeader(raw, 4320)
		if err != nil {
			t.Fatal(err)
		}
		if err := plain.Append(devnode.Block{Link: h.Link, Raw: raw}); err != nil {
			t.Fatal(err)
		}
	}
	cl := connect(t, devtest.Start(t, devnode.Config{Chain: plain, Magic: 42}), 42)
	if got := cl.acquire(c.Tip().Point); !bytes.Equal(got, []byte{0x81, 1}) {
		t.Fatalf("%x", got)
	}
	if got, want := cl.query([]byte{0x81, 3}), devnode.AppendPoint(nil, c.Tip().Point); !bytes.Equal(got, want) {
		t.Errorf("point %x, want %x", got, want)
	}
	era, err := c.Oracle().Effects(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if got := cl.query([]byte{0x82, 0, 0x82, 2, 0x81, 1}); !bytes.Equal(got, []byte{byte(era.Era) - 1}) {
		t.Errorf("era %x", got)
	}
	cl.send(devnode.ProtocolStateQuery, append([]byte{0x82, 3}, utxoQuery(era.Era)...))
	if b, err := cl.read(devnode.ProtocolStateQuery); !gone(err) {
		t.Errorf("%x %v", b, err)
	}
}

// TestLyingAboutOutputs: hidden, changed and invented.
func TestLyingAboutOutputs(t *testing.T) {
	c := devtest.Varied(t, 5, 120)
	srv := devtest.Start(t, devnode.Config{Chain: c})
	set, err := c.Oracle().Set(c.Tip().Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	refs := slices.SortedFunc(maps.Keys(set), chain.TxIn.Compare)[:3]
	invented := chain.TxIn{ID: chain.Hash{9}}
	srv.Behave(devnode.Behaviour{OnUTxO: func(at chain.At, ref chain.TxIn, out []byte) []byte {
		switch {
		case at != c.Tip():
			t.Errorf("asked at %v", at)
		case ref == refs[0]:
			return nil
		case ref == refs[1], ref == invented:
			return []byte{0x82, 0x40, 1}
		}
		return out
	}})
	cl := connect(t, srv, forge.DefaultMagic)
	cl.acquire(c.Tip().Point)
	got := readUTxO(t, cl.query(utxoQuery(chain.Conway, append(refs, invented)...)))
	if _, there := got[refs[0]]; there || len(got) != 3 || len(got[refs[1]]) != 3 || len(got[invented]) != 3 || len(got[refs[2]]) < 30 {
		t.Errorf("%x", got)
	}
}

// TestGouroborosAsksForTheGenesis: its client reads what devnode serves in both layouts.
func TestGouroborosAsksForTheGenesis(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 9, K: 30, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}},
		SystemStart: time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)}, 4)
	for _, version := range []uint16{20, 21} {
		q := gouroborosClient(t, devtest.Start(t, devnode.Config{Chain: c, Versions: []uint16{version}}).Socket())
		g, err := q.GetGenesisConfig()
		if err != nil {
			t.Fatal(err)
		}
		if g.NetworkMagic != int(forge.DefaultMagic) || g.SecurityParam != 30 || g.SlotLength != 1_000_000 || g.Start.Day != 34 ||
			fmt.Sprint(g.ActiveSlotsCoeff) != "[1 20]" || g.MaxLovelaceSupply != 45_000_000_000_000_000 || g.ProtocolParams.MinFeeB != 155381 ||
			g.ProtocolParams.MinPoolCost != 340_000_000 {
			t.Errorf("version %d: %+v", version, g)
		}
	}
}
