package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
)

// stage is what a day happens on: a node, ourotail, the consumer.
type stage struct {
	cfg      *Config
	k        int // of the day's chain
	r        *rand.Rand
	dir      string // goes with the day
	chain    *devnode.Chain
	node     *devnode.Server
	nodeDone chan error
	stopNode context.CancelFunc
	watched  [][]byte
	env      []string // of the consumer
	spec     Spec
	stream   *os.File // what the consumer reads, if it is kept
	log      *os.File // what the consumer says, if it is kept
	consumer *consumer
	feed     *feed
	tail     *tailProcess // nil while ourotail is down
	result   *Result
	step     func(string)
}

// consumerError is a failure that is the consumer's.
type consumerError struct{ err error }

func (e *consumerError) Error() string { return "the consumer failed: " + e.err.Error() }
func (e *consumerError) Unwrap() error { return e.err }

// set prepares the stage and waits until the consumer has read the chain that
// the day begins with.
func (s *stage) set(ctx context.Context, d *Day) (err error) {
	opts := d.chain(s.cfg.K)
	opts.Seed = s.cfg.Seed
	s.k = opts.K
	if s.chain, err = devnode.Generate(opts); err != nil {
		return err
	}
	if err := s.chain.Genesis().WriteConfig(filepath.Join(s.dir, "config")); err != nil {
		return err
	}
	if err := s.chain.Extend(d.blocks(s.k)); err != nil {
		return err
	}
	if s.cfg.Watch > 0 {
		if s.watched, err = busiest(s.chain, s.cfg.Watch); err != nil {
			return err
		}
		if d.also != nil {
			s.watched = append(s.watched, d.also(s.chain)...)
		}
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	var texts []string
	for _, a := range s.watched {
		texts = append(texts, address.Text(a))
	}
	s.env = []string{"OUROTAIL_DRILL_DAY=" + d.Name, "OUROTAIL_DRILL_WATCH=" + strings.Join(texts, " "), "OUROTAIL_DRILL_CURSOR=" + s.kept()}
	to, err := s.begin(ctx)
	if err != nil {
		return err
	}
	s.feed = newFeed(to)
	s.spec = Spec{Socket: s.node.Socket(), Config: filepath.Join(s.dir, "config", "config.json"), Dir: filepath.Join(s.dir, "data"), Addresses: s.watched}
	if err := s.up(ctx); err != nil {
		return err
	}
	return s.arrive(ctx)
}

// serve starts the node.
func (s *stage) serve(ctx context.Context) (err error) {
	magic := uint32(forge.DefaultMagic)
	if s.node, err = devnode.NewServer(devnode.Config{Socket: filepath.Join(s.dir, "node.socket"), Magic: magic, Chain: s.chain}); err != nil {
		return err
	}
	ctx, s.stopNode = context.WithCancel(ctx)
	s.nodeDone = make(chan error, 1)
	go func() { s.nodeDone <- s.node.Run(ctx) }()
	select {
	case <-s.node.Ready():
		return nil
	case err := <-s.nodeDone:
		s.nodeDone <- err
		return err
	}
}

// strike ends whatever still runs.
func (s *stage) strike() error {
	if s.consumer != nil { // first: ourotail's lines may be waiting for it
		s.consumer.kill()
	}
	if s.tail != nil {
		s.tail.kill()
		<-s.tail.done
	}
	if s.nodeDone == nil {
		return nil
	}
	s.stopNode()
	return <-s.nodeDone
}

// note says what happens, for the report and for who watches.
func (s *stage) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.result.Steps = append(s.result.Steps, text)
	s.step(text)
}

// grow puts blocks on the chain.
func (s *stage) grow(n int) error { return s.chain.Extend(n) }

// fork replaces the newest depth blocks by n others.
func (s *stage) fork(depth, n int) error {
	at := s.chain.Tip().Height
	depth = min(depth, int(at)+1)
	if err := s.chain.Fork(depth, n); err != nil {
		return err
	}
	s.forked(depth)
	s.note("fork: the newest %d of %d blocks give way to %d others", depth, at+1, n)
	return nil
}

func (s *stage) forked(depth int) {
	s.result.Forks++
	s.result.Deepest = max(s.result.Deepest, depth)
}

// up starts ourotail behind the last block that the consumer was given, or what it
// acknowledged.
func (s *stage) up(ctx context.Context) (err error) {
	s.spec.After = s.feed.behind()
	s.tail, err = startTail(ctx, s.cfg.Tail, s.spec, s.feed)
	return err
}

// down stops ourotail: politely, or with SIGKILL.
func (s *stage) down(ctx context.Context, kill bool) error {
	t := s.tail
	s.result.Restarts++
	if kill {
		s.result.Kills++
		t.kill()
	} else {
		t.end()
	}
	if err := s.ended(ctx, t); err != nil {
		return err
	}
	s.tail = nil
	if t.err != nil && !kill {
		return t.failure()
	}
	return nil
}

// ended waits until a process of ourotail has ended and the consumer has read
// what it wrote.
func (s *stage) ended(ctx context.Context, t *tailProcess) error {
	p := s.patience()
	defer p.Stop()
	for {
		select {
		case <-t.done:
			return s.blame(t)
		case <-ctx.Done():
			return ctx.Err()
		case <-p.C:
			if err := p.out(); err != nil {
				return err
			}
		}
	}
}

// patience is how long nothing may happen: less while the consumer does not read
// than while ourotail does nothing, where those differ.
type patience struct {
	*time.Timer
	s     *stage
	since time.Time
}

func (s *stage) patience() *patience {
	return &patience{time.NewTimer(s.cfg.Patience), s, time.Now()}
}

// again begins anew: something has happened.
func (p *patience) again() {
	p.since = time.Now()
	p.Reset(p.s.cfg.Patience)
}

// out says who keeps everybody waiting, nil if they may for longer.
func (p *patience) out() error {
	s := p.s
	switch waited := time.Since(p.since); {
	case s.feed.stuck():
		return &consumerError{s.consumer.with(fmt.Errorf("it has not read its input for %v", s.cfg.Patience))}
	case waited < s.cfg.ours:
		p.Reset(s.cfg.Patience)
		return nil
	}
	at, _, _ := s.feed.position()
	return fmt.Errorf("ourotail has done nothing for %v: it stands at %s, the node's tip is %s", s.cfg.ours, at, s.chain.Tip())
}

// blame returns an error if a process of ourotail ended because the consumer did
// not read.
func (s *stage) blame(t *tailProcess) error {
	if !errors.Is(t.err, errConsumer) {
		return nil
	}
	select {
	case <-s.consumer.done:
		return &consumerError{s.consumer.early()}
	case <-time.After(s.cfg.Patience): // it closed its input and lives on
		return &consumerError{s.consumer.with(errConsumer)}
	}
}

// stored returns the head that a stopped ourotail has on disk.
func (s *stage) stored() (chain.Link, error) {
	d, err := ourotail.OpenDir(s.spec.Dir, nil)
	if err != nil {
		return chain.Link{}, err
	}
	return d.State().Head, d.Close()
}

// tip is the chain's newest block as subscriptions know it: no boundary block.
func (s *stage) tip() (chain.Point, error) {
	path, err := s.chain.Oracle().Path(s.chain.Tip().Point.Hash)
	if err != nil {
		return chain.Point{}, err
	}
	for i := len(path) - 1; i >= 0; i-- {
		if !path[i].Boundary {
			return path[i].Point, nil
		}
	}
	return chain.Point{}, nil
}

// arrive waits until the consumer has been given everything up to the tip.
func (s *stage) arrive(ctx context.Context) error {
	want, err := s.tip()
	if err != nil {
		return err
	}
	return s.given(ctx, want)
}

// given waits until the last block that the consumer has been given is this one.
func (s *stage) given(ctx context.Context, want chain.Point) error {
	p := s.patience()
	defer p.Stop()
	for {
		at, begun, changed := s.feed.position()
		if begun && at == want {
			return nil
		}
		select {
		case <-changed:
			p.again()
		case <-ctx.Done():
			return ctx.Err()
		case <-s.consumer.done:
			return &consumerError{s.consumer.early()}
		case <-s.tail.done:
			if err := s.blame(s.tail); err != nil {
				return err
			}
			return s.tail.failure()
		case <-p.C:
			if err := p.out(); err != nil {
				return err
			}
		}
	}
}

// pause lets time pass.
func (s *stage) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish lets the consumer read to the tip, ends its input, and compares.
func (s *stage) finish(ctx context.Context) error {
	if err := s.grow(3); err != nil {
		return err
	}
	if err := s.arrive(ctx); err != nil {
		return err
	}
	if err := s.down(ctx, false); err != nil {
		return err
	}
	s.result.Restarts-- // this was the end
	want, err := truth(s.chain, s.watched)
	if err != nil {
		return err
	}
	events := s.feed.given()
	if d, n := compare(want, fold(events, mistake{})); d != nil {
		return fmt.Errorf("the lines themselves are wrong, whatever the consumer makes of them: %d addresses differ, the first is %s: the ledger says %s, the lines say %s", n, d.Address, d.Expected, d.Got)
	}
	if err := s.keep("truth.txt", balances(want)); err != nil {
		return err
	}
	text, err := s.consumer.finish(ctx, s.cfg.Patience)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = s.keep("answer.txt", text)
	}
	var got map[string]int64
	if err == nil {
		got, err = parseAnswer(text)
	}
	if err != nil {
		return &consumerError{err}
	}
	d, n := compare(want, got)
	if d == nil {
		return nil
	}
	s.result.Difference, s.result.Differences = d, n
	m, outputs := diagnose(events, got)
	if m != nil {
		s.result.Diagnosis = m.describe
	}
	s.result.Around = around(events, d, culprits(events, outputs, d.Address))
	return &consumerError{fmt.Errorf("its answer is wrong for %s", plural(n, "address", "addresses"))}
}

// tells tells whether this day's lines would unmask a consumer with a mistake.
func (s *stage) tells(name string) (bool, error) {
	want, err := truth(s.chain, s.watched)
	if err != nil {
		return false, err
	}
	for _, m := range mistakes {
		if m.name == name {
			return !same(want, fold(s.feed.given(), m)), nil
		}
	}
	return false, fmt.Errorf("no mistake is called %q", name)
}

// keep writes a file into the folder that the user wants kept.
func (s *stage) keep(name string, text []byte) error {
	if s.cfg.Keep == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(s.cfg.Keep, s.result.Day, name), text, 0o644)
}

func balances(m map[string]int64) []byte {
	var b bytes.Buffer
	for _, a := range sortedKeys(m) {
		fmt.Fprintf(&b, "%s %d\n", a, m[a])
	}
	return b.Bytes()
}
