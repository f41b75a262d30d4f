package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

// settling is a chain that moves what is settled into a folder, as a node does.
// It is served once start is called.
type settling struct {
	*node
	files, config, socket string
}

func newSettling(t *testing.T, opts forge.Options, blocks int) *settling {
	t.Helper()
	s := &settling{node: &node{chain: devtest.Generate(t, opts, 0)}, files: filepath.Join(t.TempDir(), "immutable"), socket: devtest.Socket(t)}
	if err := s.chain.SettleInto(s.files); err != nil {
		t.Fatal(err)
	}
	if err := s.chain.Extend(blocks); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := s.chain.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	s.config = filepath.Join(dir, "config.json")
	var err error
	if s.genesis, err = ledger.LoadGenesis(s.config); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *settling) start(t *testing.T) {
	s.Server = devtest.Start(t, devnode.Config{Magic: s.genesis.Magic, Chain: s.chain, Socket: s.socket})
}

func (s *settling) follower(t *testing.T, dir string) ourotail.Config {
	cfg := (&node{genesis: s.genesis}).settings(t, s.socket, dir)
	cfg.Immutable = s.files
	return cfg
}

// end is the newest block in the files.
func (s *settling) end(t *testing.T) chain.Link {
	t.Helper()
	block := ledger.Block{ByronEpochSlots: s.genesis.ByronEpochSlots}
	f, err := immutabledb.Open(s.files, immutabledb.Options{ChunkSlots: s.genesis.ByronEpochSlots, K: chain.Height(s.genesis.K), Link: func(raw []byte) (chain.Link, error) {
		err := block.Walk(raw)
		return block.Link, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, ok, err := f.End()
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return l
}

// TestFilesThenSocket begins with the files of a node that is not up, goes on over
// its socket when it is, and follows it through forks; readers from origin and
// seeded fold to the oracle's set, and nothing was rolled back that is in the files.
func TestFilesThenSocket(t *testing.T) {
	s := newSettling(t, forge.Options{Seed: 31, K: 20, EpochBlocks: 12}, 300)
	dir := t.TempDir()
	f := open(t, s.follower(t, dir))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all, err := f.SubscribeUTxOs(ctx, query.Everything(), hub.Options{Start: hub.Origin, Bound: hub.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	reader := NewReader(ctx, all)
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	end := s.end(t)
	devtest.Eventually(t, "the end of the files", func() bool { return f.State().Head.Point == end.Point })
	if floor := f.State().Floor; floor.Point != end.Point {
		t.Errorf("the floor is %v: undo data was kept for blocks in the files, whose end is %v", floor, end.At())
	}
	s.start(t)
	atTip := func() bool { return f.State().Head.Point == s.chain.Tip().Point }
	devtest.Eventually(t, "the tip", atTip)
	r := rand.New(rand.NewPCG(31, 31))
	for range 25 {
		depth := 1 + r.IntN(19)
		if err := s.chain.Fork(depth, depth+1+r.IntN(8)); err != nil {
			t.Fatal(err)
		}
		devtest.Eventually(t, "the tip", atTip)
	}
	if now := s.end(t); now.Height <= end.Height {
		t.Errorf("the files did not grow beyond %v", now.At())
	}
	tip := s.chain.Tip()
	want, err := s.chain.Oracle().Lines(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, "the store", setLines(t, f, query.Everything()), want)
	stop()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	f.CloseSubscriptions()
	reader.Wait()
	if problems, err := reader.Problems(); err != nil && !errors.Is(err, context.Canceled) || len(problems) > 0 {
		t.Errorf("%v %v", err, problems)
	}
	sameLines(t, "the reader", reader.Lines(), want)
	if reader.rolled == 0 {
		t.Error("no rollback was seen: the test does not test what it says")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestFilesAfterForks: a follower that was away while the node switched forks and
// settled far more than k blocks undoes its own blocks by the files alone.
func TestFilesAfterForks(t *testing.T) {
	s := newSettling(t, forge.Options{Seed: 32, K: 20, EpochBlocks: 12}, 120)
	s.start(t)
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(32, 32))
	undone := int64(0)
	for round := range 6 {
		cfg := s.follower(t, dir)
		cfg.ExitAtTip = true
		f := open(t, cfg)
		before, end := f.State().Head, s.end(t)
		if round > 0 && end.Height <= before.Height {
			t.Fatalf("the files end at %v, the head is %v: the test does not test what it says", end.At(), before.At())
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		undone += f.Progress().Rollbacks
		tip := s.chain.Tip()
		want, err := s.chain.Oracle().Lines(tip.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if head := f.State().Head; head.Point != tip.Point {
			t.Fatalf("round %d: at %v, the node's tip is %v", round, head.At(), tip)
		}
		sameLines(t, "the store", setLines(t, f, query.Everything()), want)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.chain.Fork(1+r.IntN(19), 20+r.IntN(10)); err != nil {
			t.Fatal(err)
		}
		if err := s.chain.Extend(60); err != nil { // settles the fork
			t.Fatal(err)
		}
	}
	if undone < 3 {
		t.Errorf("only %d rollbacks: the test does not test what it says", undone)
	}
}

// TestFilesKilledAnywhere kills a follower with SIGKILL while it reads the files, at
// their end and on the socket, with forks between: the set is the oracle's at the
// head that it reports, every time.
func TestFilesKilledAnywhere(t *testing.T) {
	kills := 16
	if testing.Short() {
		kills = 8
	}
	s := newSettling(t, forge.Options{Seed: 33, K: 30, EpochBlocks: 40}, 300)
	s.start(t)
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(33, 33))
	whole, cut, files := 0, 0, 0
	head := chain.Link{Height: chain.OriginHeight}
	longest := 40 * time.Millisecond
	for range kills {
		if head.Height < s.end(t).Height {
			files++
		}
		cmd := exec.CommandContext(t.Context(), self, s.socket, s.config, dir)
		cmd.Env = append(os.Environ(), childEnv+"=1", filesEnv+"="+s.files)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(longest))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			whole++
			longest = longest * 2 / 3
			if err := errors.Join(s.chain.Fork(1+r.IntN(28), 40), s.chain.Extend(80)); err != nil {
				t.Fatal(err)
			}
		} else {
			cut++
			longest = min(longest*8/5, 2*time.Second) // until some finish
		}
		d, err := ourotail.OpenDir(dir, nil)
		if err != nil {
			if cut > 0 && whole == 0 { // killed before there was a store
				continue
			}
			t.Fatal(err)
		}
		head = d.State().Head
		v := d.View()
		got := linesOf(t, v, query.Everything())
		v.Close()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		want, err := s.chain.Oracle().Lines(head.Point.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 && head.Point.IsOrigin() {
			continue // killed before the genesis outputs were written
		}
		sameLines(t, fmt.Sprintf("killed at %v", head.At()), got, want)
	}
	t.Logf("%d killed, %d came to the end, %d starts found blocks in the files", cut, whole, files)
	if cut < kills/4 || files == 0 {
		t.Errorf("only %d of %d were killed: the test does not test what it says", cut, kills)
	}
}

// TestFilesOfAnotherChain: whatever is wrong with the folder is said, by name, and
// nothing is touched.
func TestFilesOfAnotherChain(t *testing.T) {
	s := newSettling(t, forge.Options{Seed: 34, K: 20, EpochBlocks: 12}, 120)
	other := newSettling(t, forge.Options{Seed: 35, K: 20, EpochBlocks: 12}, 200)
	s.start(t)
	run := func(dir, files string) (chain.Link, error) {
		cfg := s.follower(t, dir)
		cfg.Immutable, cfg.ExitAtTip = files, true
		f, err := ourotail.Open(t.Context(), cfg)
		if err != nil {
			return chain.Link{}, err
		}
		err = f.Run(t.Context())
		return f.State().Head, errors.Join(err, f.Close())
	}
	// Nothing there yet: the node, which does not know these files, is asked.
	empty := t.TempDir()
	if head, err := run(empty, other.files); !errors.Is(err, immutabledb.ErrNotOurs) || !head.Point.IsOrigin() {
		t.Errorf("at origin, head %v: %v", head.At(), err)
	}
	dir := t.TempDir()
	want, err := run(dir, s.files)
	if err != nil || want.Point != s.chain.Tip().Point {
		t.Fatal(want.At(), err)
	}
	if head, err := run(dir, other.files); !errors.Is(err, immutabledb.ErrNotOurs) || head != want {
		t.Errorf("head %v, was %v: %v", head.At(), want.At(), err)
	}
	// The node away: the head is not in the files.
	cfg := s.follower(t, dir)
	cfg.Immutable, cfg.ExitAtTip, cfg.SocketPath = other.files, true, filepath.Join(dir, "no.socket")
	f := open(t, cfg)
	err = f.Run(t.Context())
	if head := f.State().Head; !errors.Is(err, immutabledb.ErrNotOurs) || head != want || !strings.Contains(err.Error(), want.At().String()) {
		t.Errorf("head %v, was %v: %v", head.At(), want.At(), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	// No folder: said before a data directory is made.
	none := filepath.Join(t.TempDir(), "data")
	if _, err := run(none, filepath.Join(dir, "nowhere")); !errors.Is(err, immutabledb.ErrMissing) {
		t.Error(err)
	}
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
}

// TestFilesDamaged: a damaged chunk ends following with its name and place; what
// lies below it is kept, and once the file is mended it goes on.
func TestFilesDamaged(t *testing.T) {
	s := newSettling(t, forge.Options{Seed: 36, K: 20, EpochBlocks: 12}, 200)
	s.start(t)
	path := filepath.Join(s.files, "00001.chunk")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := s.follower(t, t.TempDir())
	cfg.ExitAtTip = true
	f := open(t, cfg)
	err = f.Run(t.Context())
	var bad *immutabledb.Error
	if !errors.As(err, &bad) || bad.Kind != immutabledb.ErrDamaged || bad.File != "00001.chunk" || bad.Offset < 0 {
		t.Errorf("run: %v", err)
	}
	if head := f.State().Head; head.Point.IsOrigin() || uint64(head.Point.Slot) > 2*s.genesis.ByronEpochSlots {
		t.Errorf("head %v", head.At())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1 // the node has the same files
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f = open(t, cfg)
	if err := f.Run(t.Context()); err != nil || f.State().Head.Point != s.chain.Tip().Point {
		t.Errorf("head %v: %v", f.State().Head.At(), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestFilesPreviewDigests comes to the digest of a real chain by its files alone:
// the node is never up.
func TestFilesPreviewDigests(t *testing.T) {
	files := devtest.Shared(t, "preview", "immutable")
	g, err := ledger.Network("preview")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := (&node{genesis: g}).settings(t, filepath.Join(dir, "no.socket"), filepath.Join(dir, "data"))
	cfg.Immutable, cfg.ExitAtTip = files, true
	f := open(t, cfg)
	if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no.socket") {
		t.Errorf("without a node at the end of the files: %v", err)
	}
	utxos, digest := digests(t, f)
	if got := utxos; got != "c9a91846761e32b385b1efab5082882d14fed5669dff9ab4313738f0b61ee9cd" ||
		digest.Accumulator != "f6ac324b4d0e5c4a8f839072bba0865c" || f.State().Head.Height != 40356 {
		t.Errorf("outputs %s, accumulator %s, head %v", got, digest.Accumulator, f.State().Head.At())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
