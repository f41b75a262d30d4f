package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/resolve"
)

// batch is what has been walked and resolved but not committed.
type batch struct {
	blocks  []*chain.Effects
	bytes   int
	journal bool     // its newest block has a journal record, and so will all behind it
	release []func() // message slabs that the blocks alias
	free    []*chain.Effects
}

func (b *batch) own(release func()) {
	if release != nil {
		b.release = append(b.release, release)
	}
}

func (b *batch) effects() *chain.Effects {
	if n := len(b.free); n > 0 {
		e := b.free[n-1]
		b.free = b.free[:n-1]
		return e
	}
	return new(chain.Effects)
}

func (b *batch) recycle(e *chain.Effects) {
	e.Raw = nil
	b.free = append(b.free, e)
}

// reset empties the batch; nobody may use its bytes afterwards.
func (b *batch) reset() {
	for _, e := range b.blocks {
		b.recycle(e)
	}
	for _, release := range b.release {
		release()
	}
	b.blocks, b.release, b.bytes, b.journal = b.blocks[:0], b.release[:0], 0, false
}

// forward takes a block into the open batch.
func (f *Follower) forward(m chain.Message) error {
	if err := f.walked.Walk(m.Raw); err != nil {
		return f.undecodable(m.Raw, err)
	}
	link := f.walked.Link
	if err := f.points.Check(link); err != nil {
		return fmt.Errorf("%w: %w", ErrNonsense, err)
	}
	if f.stop.Until > chain.OriginHeight && !link.Boundary && link.Height > f.stop.Until {
		return f.commitLast() // the chain has no block at that height: it begins above
	}
	e := f.open.effects()
	f.walked.Effects(e)
	// Undo data is needed by blocks within k of the tip that their own roll
	// forward named; once a batch has begun to write it, it goes on.
	e.Journal = f.open.journal || m.Tip.Height-link.Height < f.cfg.K
	if err := f.retireAVVM(e); err != nil {
		return err
	}
	if err := f.resolver.Block(e); err != nil {
		f.open.recycle(e)
		return unresolved(link.At(), err)
	}
	if err := f.points.Extend(link); err != nil {
		return err
	}
	f.open.blocks = append(f.open.blocks, e)
	f.open.bytes += len(m.Raw)
	f.open.journal = e.Journal
	return nil
}

// unresolved is the end for a block whose inputs could not be resolved. Only what the
// store says of an input speaks against the store: that it could not be asked does not.
func unresolved(at chain.At, err error) error {
	fatal := &FatalError{Op: "resolving inputs", At: at, Cause: err}
	var input *resolve.InputError
	if errors.As(err, &input) {
		fatal.Hint = "if this node is on the right network, the data directory was filled from another chain or is damaged: ourotail check tells which, --resync starts over"
	}
	return fatal
}

// commitLast commits what is open and ends the run.
func (f *Follower) commitLast() error {
	if err := f.commit(); err != nil {
		return err
	}
	return errDone
}

// undecodable commits what is good, keeps the bytes and names the block.
func (f *Follower) undecodable(raw []byte, cause error) error {
	head, _ := f.points.Head()
	err := &UndecodableError{Parent: head.At(), Size: len(raw), Cause: cause}
	cerr := f.commit() // first: the bytes are named after the block below
	if f.cfg.Quarantine != nil {
		where, qerr := f.cfg.Quarantine(raw)
		if qerr != nil {
			f.log.Warn("the bytes of an undecodable block were not kept", "error", qerr)
		}
		err.Saved = where
	}
	if cerr != nil {
		return cerr
	}
	return err
}

// full tells whether the open batch must be committed before it grows.
func (f *Follower) full() bool {
	limit := f.cfg.MaxBlocks
	if f.cfg.Hub.Subscribers() > 0 {
		limit = min(limit, watchedMaxBlocks)
	}
	return len(f.open.blocks) >= limit || f.open.bytes >= f.cfg.MaxBytes
}

// commit makes the open batch, and what was gathered before, durable and
// publishes it.
func (f *Follower) commit() error {
	if len(f.open.blocks) == 0 {
		f.open.reset()
		return f.flush()
	}
	waited := len(f.open.blocks) == 1 && f.status.get().Phase == Following
	flush, err := f.commitAndBuffer(waited)
	f.account()
	near := f.open.journal
	f.open.reset()
	if flush != nil {
		flush()
		f.cfg.Step("published")
	}
	if near && f.cfg.Near != nil {
		f.cfg.Near()
	}
	if waited && err == nil {
		err = f.tidy()
	}
	return err
}

// tidy has the store do what it put off while a block was waited for.
func (f *Follower) tidy() error {
	f.publish.Lock()
	defer f.publish.Unlock()
	if err := f.cfg.Store.Tidy(); err != nil {
		return &FatalError{Op: "committing to the store", At: f.cfg.Store.Head().At(), Cause: err}
	}
	return nil
}

// commitAndBuffer writes the open batch and hands it to the hub; waited says that it
// is a block at the tip.
func (f *Follower) commitAndBuffer(waited bool) (flush func(), err error) {
	f.publish.Lock()
	defer f.publish.Unlock()
	f.cfg.Step("commit")
	if waited {
		err = f.cfg.Store.Append(f.open.blocks[0])
	} else {
		err = f.cfg.Store.Commit(f.open.blocks)
	}
	if err != nil {
		head := f.cfg.Store.Head()
		return nil, &FatalError{Op: "committing to the store", At: head.At(), Cause: err}
	}
	f.written()
	f.cfg.Step("committed")
	f.resolver.Committed()
	flush, err = f.bufferBlocks()
	f.cfg.Step("buffered")
	return flush, err
}

// account takes the committed batch into the status.
func (f *Follower) account() {
	head, newest := f.cfg.Store.Head(), f.newest()
	txs := 0
	for _, e := range f.open.blocks {
		txs += len(e.Txs)
	}
	f.status.update(func(s *Status) {
		s.Head, s.Newest, s.LastBlock, s.LastError, s.Failures = head, newest, time.Now(), nil, 0
		s.Blocks += int64(len(f.open.blocks))
		s.Bytes += int64(f.open.bytes)
		s.Txs += int64(txs)
		s.Phase = Syncing
		if s.Tip.Height-head.Height < nearTip {
			s.Phase = Following
		}
	})
}

// nearTip is how far, in blocks, the head may lie below the node's tip to be
// called following rather than syncing.
const nearTip = 5

// drop forgets the open batch: its blocks, its points, its slabs.
func (f *Follower) drop() {
	// A commit that failed may have written some of it.
	written, head := 0, f.newest().Point
	for i, e := range f.open.blocks {
		if e.Point == head {
			written = i + 1
		}
	}
	f.cut(written)
	f.open.reset()
}

// cut takes all but the oldest n blocks out of the open batch, newest first.
func (f *Follower) cut(n int) {
	for i := len(f.open.blocks) - 1; i >= n; i-- {
		e := f.open.blocks[i]
		f.resolver.Cut(e)
		f.open.bytes -= len(e.Raw)
		f.open.recycle(e)
		below := f.newest().Point
		if i > 0 {
			below = f.open.blocks[i-1].Point
		}
		if _, err := f.points.CutTo(below); err != nil {
			panic(fmt.Sprintf("the open batch is not on our points: %v", err)) // our own invariant
		}
	}
	f.open.blocks = f.open.blocks[:max(n, 0)]
	if n == 0 {
		f.open.journal = false
	} else {
		f.open.journal = f.open.blocks[n-1].Journal
	}
}
