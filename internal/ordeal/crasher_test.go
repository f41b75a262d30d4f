package ordeal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/store"
)

// crasher runs a follower's lives over one data directory and looks at it between
// them.
type crasher struct {
	t     *testing.T
	n     *node
	r     *rand.Rand
	life  life
	steps []string
	total *tally

	seen    map[string]int // how often a whole life took each step
	longest time.Duration  // that a child is left alone

	mu   sync.Mutex
	walk *walk // what the children have told; nil before the first

	head    chain.Point // found last
	floor   chain.At
	tip     chain.At // of the node, when it was last asked, and as readers know it
	told    chain.At
	settled bool // it has been at the node's tip
}

func (c *crasher) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// live lets a child follow, with happens going on beside it, kills it or waits
// for its end, and looks at what it left.
func (c *crasher) live(happens func() error) {
	c.t.Helper()
	plan := c.plan()
	said, killed := c.run(plan, happens)
	switch {
	case killed:
		c.total.kills++
		if plan.step != "" {
			c.total.hit[plan.step]++
		} else {
			c.total.random++
			c.longest = min(c.longest*3/2, 5*time.Second)
		}
	default:
		c.total.whole++
		c.longest = max(c.longest*2/3, 5*time.Millisecond)
	}
	if err := c.look(killed); err != nil {
		c.t.Fatalf("kill %d (%s): %v\nthe child said: %s", c.total.kills, plan, err, said)
	}
	if c.total.kills%25 == 0 && killed {
		c.t.Logf("%d kills, %d at their end, head %v, floor %v", c.total.kills, c.total.whole, c.head, c.floor)
	}
}

// plan says when a child is to die.
type plan struct {
	step  string // before this step, the nth time; or
	nth   int
	after time.Duration // so long after it is ready, or
	early bool          // after it was started
	never bool
}

func (p plan) String() string {
	b, _ := json.Marshal(struct {
		Step         string
		Nth          int
		After        string
		Early, Never bool
	}{p.step, p.nth, p.after.String(), p.early, p.never})
	return string(b)
}

func (c *crasher) plan() plan {
	if c.walk == nil && !c.life.AtTip { // the first sync of a follower that is killed at the tip
		return plan{never: true}
	}
	switch x := c.r.IntN(10); {
	case x < 5:
		name := c.steps[c.total.turn%len(c.steps)]
		c.total.turn++
		nth := 1
		if n := c.seen[name]; n > 1 {
			nth += c.r.IntN(n)
		} else if c.r.IntN(2) == 0 {
			nth += c.r.IntN(6)
		}
		return plan{step: name, nth: nth}
	case x < 9:
		return plan{after: time.Duration(c.r.Int64N(int64(c.longest)))}
	default: // while it opens the directory
		return plan{early: true, after: time.Duration(c.r.Int64N(int64(150 * time.Millisecond)))}
	}
}

// run is one life; killed is false if it came to its end.
func (c *crasher) run(p plan, happens func() error) (said string, killed bool) {
	c.t.Helper()
	l := c.life
	l.Step, l.Nth = p.step, p.nth
	if l.Watch && c.walk != nil {
		l.Begun, l.After = true, c.walk.at().Point
	}
	arg, err := json.Marshal(l)
	c.must(err)
	self, err := os.Executable()
	c.must(err)
	cmd := exec.CommandContext(c.t.Context(), self, "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(arg))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	c.must(err)
	out, err := cmd.StdoutPipe()
	c.must(err)
	c.must(cmd.Start())
	timer := time.AfterFunc(time.Hour, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if p.early {
		timer.Reset(p.after)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.listen(out, ready) }()
	select {
	case <-ready:
		if !p.early && !p.never && p.step == "" {
			timer.Reset(p.after)
		}
		for range 3 {
			if happens != nil && !c.arrived(ended) {
				break
			}
			if happens == nil {
				break
			}
			c.must(happens())
		}
		if !l.AtTip {
			c.arrived(ended)
		}
		if !l.AtTip {
			_ = in.Close()
		}
	case err := <-ended:
		ended <- err
	}
	if err := <-ended; err != nil {
		c.t.Errorf("what the child told: %v", err)
	}
	_ = in.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != -1 {
		c.t.Fatalf("the child failed: %v: %s", err, errs.String())
	}
	return errs.String(), err != nil
}

// arrived waits until the child has told of the node's tip; false if it has ended.
func (c *crasher) arrived(ended chan error) bool {
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-time.After(time.Millisecond):
		}
		c.mu.Lock()
		at := c.walk.at()
		c.mu.Unlock()
		if at == c.published() {
			return true
		}
	}
	c.t.Fatalf("the child stands at %v, the node's tip is %v", c.walk.at(), c.n.chain.Tip())
	return false
}

// published is the node's tip as readers know it: what lies under boundary blocks.
func (c *crasher) published() chain.At {
	tip := c.n.chain.Tip()
	if tip != c.tip {
		path, err := c.n.chain.Oracle().Path(tip.Point.Hash)
		c.must(err)
		i := len(path) - 1
		for i > 0 && path[i].Boundary {
			i--
		}
		c.tip, c.told = tip, path[i].At()
	}
	return c.told
}

// listen takes what a child tells, until it ends.
func (c *crasher) listen(out io.Reader, ready chan struct{}) (err error) {
	in := bufio.NewReader(out)
	for {
		text, rerr := in.ReadString('\n')
		if rerr != nil { // the line that a kill cut off is none
			c.mu.Lock()
			if c.walk != nil {
				c.walk.lines = c.walk.lines[:0]
			}
			c.mu.Unlock()
			return err
		}
		if err != nil {
			continue // read on, or the child would wait for us
		}
		switch kind, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " "); kind {
		case "ready":
			close(ready)
		case "steps":
			var steps map[string]int
			if err = json.Unmarshal([]byte(rest), &steps); err == nil {
				c.seen = steps
			}
		case "from":
			err = c.from(rest)
		default:
			c.mu.Lock()
			err = c.walk.written(strings.TrimSuffix(text, "\n"))
			c.mu.Unlock()
		}
	}
}

// from takes the place where a stream begins. Where the one before it ended and
// that place differ there was a fork, or the place is too old to go on from.
func (c *crasher) from(text string) error {
	at, err := parseAt(text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.walk == nil || c.walk.at().Height < c.floor.Height:
		c.walk = newWalk(c.n.chain.Oracle(), at)
	case at != c.walk.at():
		return c.walk.back(at, nil)
	}
	return nil
}

// look opens the data directory in this process and holds it against the oracle
// and against what readers were told.
func (c *crasher) look(killed bool) (err error) {
	c.t.Helper()
	l := c.life
	l.Socket = "nobody is asked"
	f, err := l.open(c.t.Context(), slog.New(slog.DiscardHandler), &trial.Trial{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st := f.State()
	before := c.head
	c.head, c.floor = st.Head.Point, st.Floor
	if err := verify(c.t, f, c.n.chain.Oracle()); err != nil {
		return err
	}
	tip := c.n.chain.Tip()
	if st.Head.Point == tip.Point {
		c.settled = true
	} else if !killed {
		return errors.New("it ended by itself below the tip, at " + st.Head.At().String())
	}
	if err := c.lookAtFloor(st, tip); err != nil {
		return err
	}
	if _, ours := c.n.chain.Find(st.Head.Point); killed && !ours && st.Head.Point != before {
		c.total.inside++
	}
	return c.lookForTold(f, st)
}

// lookAtFloor: the floor lies k below the highest head, or as deep as the node can
// still go back.
func (c *crasher) lookAtFloor(st store.State, tip chain.Tip) error {
	low := max(st.Highest-st.K, chain.OriginHeight)
	high := max(max(tip.Height, st.Highest)-st.K, chain.OriginHeight)
	if st.Floor.Height < low || st.Floor.Height > high {
		return fmt.Errorf("the floor is %v, k is %d, the highest head was at %d, the tip is %v", st.Floor, st.K, st.Highest, tip)
	}
	return nil
}

// lookForTold: what a reader was told last is on the store's chain, unless a fork
// took it off since, and then the store knows where its branch left. What the
// reader was told has left is not on it.
func (c *crasher) lookForTold(f *ourotail.Follower, st store.State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.walk == nil || c.walk.at().Height < st.Floor.Height {
		return nil
	}
	at := c.walk.at()
	_, ours, err := f.Find(at.Point)
	if err != nil || ours && at.Height > st.Head.Height {
		return fmt.Errorf("readers were told %v, the head is %v: %w", at, st.Head.At(), err)
	}
	if _, onChain := c.n.chain.Find(at.Point); !ours && onChain {
		return fmt.Errorf("readers were told %v, which the store has lost", at)
	}
	if !ours {
		if _, err := f.Ancestor(at.Point); err != nil {
			return fmt.Errorf("readers were told %v: %w", at, err)
		}
	}
	return nil
}
