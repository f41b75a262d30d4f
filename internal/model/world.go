package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/ledger"
)

// Hooks stand between a follower and the world.
type Hooks struct {
	Dial    func(ctx context.Context) (follow.Conn, error)
	Tip     func(ctx context.Context) (chain.Tip, error)
	Storage func(follow.Store) follow.Store
	Retry   func(err error, failures int) (wait time.Duration, again bool)
	// MaxBlocks bounds the blocks of a batch; 0 for the default.
	MaxBlocks int
}

// Options say which run it is.
type Options struct {
	Seed  uint64
	Steps int
	// Open opens a follower with hooks.
	Open func(ctx context.Context, cfg ourotail.Config, h Hooks) (*ourotail.Follower, error)
	// Each, if set, is told of every step.
	Each func(line string)
}

// Report tells what a run was.
type Report struct {
	Steps     int
	Blocks    int            // forged, those of branches that were left included
	Events    int            // taken by readers
	Rollbacks int            // told to readers
	Lives     int            // followers opened
	Kills     map[string]int // by step
	Lies      map[string]int
	Fatal     int // runs that ended for a good reason
	Overflows int
	Fresh     int // readers that had to start over
	Settled   int
	Virtual   time.Duration
	Trace     string // a hash over everything that was seen, in order
}

// Add adds another run to the sums.
func (r *Report) Add(o Report) {
	r.Steps += o.Steps
	r.Blocks += o.Blocks
	r.Events += o.Events
	r.Rollbacks += o.Rollbacks
	r.Lives += o.Lives
	r.Fatal += o.Fatal
	r.Overflows += o.Overflows
	r.Fresh += o.Fresh
	r.Settled += o.Settled
	r.Virtual += o.Virtual
	r.Kills, r.Lies = sum(r.Kills, o.Kills), sum(r.Lies, o.Lies)
}

func sum(a, b map[string]int) map[string]int {
	if a == nil {
		a = map[string]int{}
	}
	for k, n := range b {
		a[k] += n
	}
	return a
}

type world struct {
	t      *testing.T
	o      Options
	rnd    *rand.Rand
	report Report
	trace  hash.Hash
	lines  []string // the last steps
	began  time.Time

	k       chain.Height
	chainOf forge.Options
	archive bool
	roomy   bool  // memtables are as large as the settings make them
	tables  int64 // size of memtables if ordinary blocks are to be too large for a transaction
	forge   *forge.Forge
	oracle  *forge.Oracle
	grown   []int // how the chain came to be: blocks made, or taken back if negative
	genesis *ledger.Genesis
	wallet  [][]byte
	raw     map[chain.Point][]byte
	linksMu sync.Mutex // against the follower's goroutine; the driver alone writes
	links   map[chain.Hash]chain.Link
	// Guarded by linksMu too: how many blocks were undone, and where each of them
	// stood in that order.
	undone   int
	undoneAt map[chain.Point]int
	node     *node
	trouble  time.Time // since when the node is not as it should be; zero if it is

	base    string
	dir     string
	life    *life
	readers []*reader
	serial  int
}

// Run plays one run and fails the test where something is wrong. It is called
// within a synctest bubble.
func Run(t *testing.T, o Options) Report {
	t.Helper()
	w := &world{t: t, o: o, rnd: rand.New(rand.NewPCG(o.Seed, 0)), trace: sha256.New(), began: time.Now(), raw: map[chain.Point][]byte{}, links: map[chain.Hash]chain.Link{}, undoneAt: map[chain.Point]int{}}
	w.report.Kills = map[string]int{}
	w.make()
	defer w.clean()
	w.open()
	for range o.Steps {
		w.report.Steps++
		w.step()
		w.look()
		if w.report.Steps%25 == 0 {
			w.settle()
		}
	}
	w.settle()
	w.stop(false)
	w.report.Virtual = time.Since(w.began)
	w.report.Lies = map[string]int{}
	for l, n := range w.node.told {
		w.report.Lies[l.String()] = n
	}
	w.report.Trace = hex.EncodeToString(w.trace.Sum(nil))[:16]
	return w.report
}

func (w *world) make() {
	w.t.Helper()
	k := []int{3, 6, 12, 25}[w.rnd.IntN(4)]
	w.k = chain.Height(k)
	w.archive = w.rnd.IntN(4) == 0
	if w.rnd.IntN(5) == 0 {
		w.tables = 1 << 17 // a seventh of which a transaction holds
	}
	w.roomy = w.rnd.IntN(6) == 0
	w.chainOf = forge.Options{Seed: w.o.Seed, K: k, EpochBlocks: 3 + w.rnd.IntN(6), SystemStart: time.Now().Truncate(time.Second)}
	switch w.rnd.IntN(4) {
	case 0:
		w.chainOf.Eras = []forge.EraSpan{{Era: chain.Byron}}
	case 1:
		w.chainOf.Eras = []forge.EraSpan{{Era: chain.Byron, Epochs: 2}, {Era: chain.Shelley, Epochs: 1}, {Era: chain.Allegra, Epochs: 1}, {Era: chain.Babbage, Epochs: 2},
			{Era: chain.Conway, Epochs: 3}, {Era: chain.Dijkstra}}
	}
	w.forge = w.newForge(w.chainOf)
	w.oracle, w.wallet = w.forge.Oracle(), w.forge.Wallet()
	other := w.chainOf
	other.Seed += 1 << 40
	stranger := w.newForge(other)
	var foreign forge.Block
	for range 6 {
		foreign = w.must(stranger.Next())
	}
	w.node = newNode(w.o.Seed, w.k, foreign.Raw)
	base := ""
	if _, err := os.Stat("/dev/shm"); err == nil { // a run syncs some thousand times, and is not about disks
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "model")
	if err != nil {
		w.t.Fatal(err)
	}
	w.base, w.dir = dir, filepath.Join(dir, "0")
	if err := w.forge.Genesis().WriteConfig(filepath.Join(dir, "config")); err != nil {
		w.t.Fatal(err)
	}
	if w.genesis, err = ledger.LoadGenesis(filepath.Join(dir, "config", "config.json")); err != nil {
		w.t.Fatal(err)
	}
	w.extend(1 + w.rnd.IntN(3*k+20))
	if w.rnd.IntN(4) == 0 { // a long way to go, and not in peace
		w.extend(150 + w.rnd.IntN(150))
		for range 1 + w.rnd.IntN(4) {
			w.node.lies = append(w.node.lies, lie(w.rnd.IntN(int(lieEnd))))
		}
		w.node.group = 1 + w.rnd.IntN(200)
	}
	w.note("k = %d, archive %v, memtables %d, %+v", k, w.archive, w.tables, w.chainOf)
}

func (w *world) newForge(o forge.Options) *forge.Forge {
	f, err := forge.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) must(b forge.Block, err error) forge.Block {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// clean ends whatever runs, however the driver came here.
func (w *world) clean() {
	if l := w.life; l != nil {
		if l.cancel == nil { // it never ran
			l.cancel, l.over = func() {}, errors.New("not run")
		}
		l.cancel()
		if l.over == nil {
			l.over = <-l.ran
		}
		_ = l.app.Close() // the run has failed already
	}
	_ = os.RemoveAll(w.base)
}

// note remembers a step, and what came of it.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf("%4d %12v  ", w.report.Steps, time.Since(w.began).Round(time.Microsecond)) + fmt.Sprintf(format, args...)
	w.traced("%s", line)
	if w.o.Each != nil {
		w.o.Each(line)
	}
	if w.lines = append(w.lines, line); len(w.lines) > 60 {
		w.lines = w.lines[1:]
	}
}

func (w *world) traced(format string, args ...any) {
	fmt.Fprintf(w.trace, format+"\n", args...)
}

// fail ends the run.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	state := "no follower runs"
	if w.life != nil {
		st, p := w.life.app.State(), w.life.app.Progress()
		state = fmt.Sprintf("head %v, floor %v, highest %d, phase %s, last error %v; the node's tip is %v", st.Head.At(), st.Floor, st.Highest, p.Phase, p.LastError, w.node.Tip())
	}
	w.t.Fatalf("seed %d, step %d: %s\n%s\n\nthe last steps:\n%s", w.o.Seed, w.report.Steps, fmt.Sprintf(format, args...), state, strings.Join(w.lines, "\n"))
}

// extend makes n blocks on the tip.
func (w *world) extend(n int) { w.replace(0, n) }

// replace takes the newest n blocks back and makes m others.
func (w *world) replace(n, m int) {
	w.t.Helper()
	if err := w.forge.Rewind(n); err != nil {
		w.t.Fatal(err)
	}
	if n > 0 {
		w.grown = append(w.grown, -n)
	}
	blocks := slices.Clone(w.node.blocks[:len(w.node.blocks)-n])
	for range m {
		b := w.must(w.forge.Next())
		w.raw[b.Point] = b.Raw
		w.linksMu.Lock()
		w.links[b.Point.Hash] = b.Link
		w.linksMu.Unlock()
		blocks = append(blocks, b)
	}
	w.grown = append(w.grown, m)
	w.report.Blocks += m
	w.node.turn(blocks, w.node.shown)
}

// blocksAbove counts the node's blocks above a height.
func (w *world) blocksAbove(h chain.Height) (n int) {
	for n < len(w.node.blocks) && w.node.blocks[len(w.node.blocks)-1-n].Height > h {
		n++
	}
	return n
}

// below returns the block under one, false if there is none.
func (w *world) below(l chain.Link) (chain.Link, bool) {
	b, ok := w.links[l.Parent]
	return b, ok
}

// link returns the block of a point; the zero link at origin's height for origin.
func (w *world) link(a chain.At) chain.Link {
	w.t.Helper()
	if a.IsOrigin() {
		return chain.Link{Height: chain.OriginHeight}
	}
	l, ok := w.links[a.Point.Hash]
	if !ok || l.At() != a {
		w.fail("%v is no block of any branch", a)
	}
	return l
}

// descends tells whether a stands on b, or is b.
func (w *world) descends(a, b chain.At) bool {
	w.t.Helper()
	if b.IsOrigin() {
		return true
	}
	l := w.link(a)
	for l.Point != b.Point {
		if l.Height < b.Height {
			return false
		}
		below, ok := w.below(l)
		if !ok {
			return false
		}
		l = below
	}
	return true
}

// common returns the newest block that two have below them, or origin.
func (w *world) common(a, b chain.At) chain.At {
	w.t.Helper()
	l := w.link(a)
	for !l.Point.IsOrigin() && !w.descends(b, l.At()) {
		below, ok := w.below(l)
		if !ok {
			return chain.Origin
		}
		l = below
	}
	if l.Point.IsOrigin() {
		return chain.Origin
	}
	return l.At()
}

func (w *world) onChain(a chain.At) bool {
	return w.descends(w.life.app.State().Head.At(), a)
}

// published replaces a boundary block by the block below it, as subscriptions
// do.
func (w *world) published(a chain.At) chain.At {
	w.t.Helper()
	l := w.link(a)
	for l.Boundary {
		below, ok := w.below(l)
		if !ok {
			return chain.Origin
		}
		l = below
	}
	if l.Point.IsOrigin() {
		return chain.Origin
	}
	return l.At()
}

// path returns the main blocks above a point up to another, oldest first.
func (w *world) path(low, high chain.At) (out []chain.Link) {
	w.t.Helper()
	for l := w.link(high); l.Height > low.Height; {
		if !l.Boundary {
			out = append(out, l)
		}
		below, ok := w.below(l)
		if !ok {
			break
		}
		l = below
	}
	slices.Reverse(out)
	return out
}

// gate is where somebody stands who looks from so deep below a head.
func (w *world) gate(head chain.At, depth chain.Height) chain.At {
	w.t.Helper()
	at := w.published(head)
	want := at.Height - depth
	if want < w.genesis.FirstHeight {
		return chain.Origin
	}
	for l := w.link(at); ; {
		if l.Height == want && !l.Boundary {
			return l.At()
		}
		below, ok := w.below(l)
		if !ok {
			return chain.Origin
		}
		l = below
	}
}

var errDisk = errors.New("the disk says no")
