package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// message takes one message of the node, in order.
func (f *Follower) message(ctx context.Context, m chain.Message) error {
	switch m.Kind {
	case chain.RollForward:
		f.heard(m.Tip)
		if err := f.forward(m); err != nil {
			return err
		}
		head, _ := f.points.Head()
		if !head.Boundary && head.Height == f.stop.Until {
			return f.commitLast()
		}
		if f.full() {
			return f.commitAndBrake(ctx)
		}
		return nil
	case chain.RollBackward:
		f.heard(m.Tip)
		return f.backward(ctx, m.Point, m.Tip)
	case chain.AwaitReply:
		return nil
	}
	return fmt.Errorf("%w: message of kind %d", ErrNonsense, m.Kind)
}

func (f *Follower) commitAndBrake(ctx context.Context) error {
	if err := f.commitOrGather(); err != nil {
		return err
	}
	return f.brake(ctx)
}

// brake waits for as long as the owner says.
func (f *Follower) brake(ctx context.Context) error {
	if f.cfg.Brake == nil {
		return nil
	}
	f.status.update(func(s *Status) { s.Braked = time.Now() })
	defer f.status.update(func(s *Status) { s.Braked = time.Time{} })
	return f.cfg.Brake(ctx)
}

// settle ends a run of messages: near the tip what has come is committed now,
// far from it the batch may grow.
func (f *Follower) settle(list []chain.Message) error {
	if len(list) == 0 {
		return nil
	}
	last := list[len(list)-1]
	switch {
	case last.Kind == chain.AwaitReply, f.open.journal:
		if err := f.commit(); err != nil {
			return err
		}
	case len(f.open.blocks) == 0:
		f.open.reset()
	}
	head := f.newest()
	tip := f.status.get().Tip
	atTip := last.Kind == chain.AwaitReply || head.Point == tip.Point
	if atTip && len(f.open.blocks) == 0 {
		f.status.update(func(s *Status) { s.Phase, s.LastError, s.Failures = Following, nil, 0 })
		if f.stop.AtTip {
			return errDone
		}
	}
	return nil
}

// backward rolls back to the point, wherever it lies: at the head (no event),
// in the open batch, in committed blocks, or below what can be undone.
func (f *Follower) backward(ctx context.Context, to chain.Point, tip chain.Tip) error {
	head, ok := f.points.Head()
	if head.Point == to || !ok && to.IsOrigin() {
		return nil
	}
	if to == f.newest().Point {
		f.cut(0)
		return nil
	}
	for i, e := range f.open.blocks {
		if e.Point == to {
			f.cut(i + 1)
			return nil
		}
	}
	f.cut(0)
	if err := f.flush(); err != nil {
		return err
	}
	committed := f.cfg.Store.Head()
	behind, err := f.behind(tip)
	if err != nil {
		return err
	}
	if behind {
		return fmt.Errorf("%w: its tip is %s, our head is %s", ErrBehind, tip, committed.At())
	}
	return f.undo(ctx, to, tip)
}

// undo rolls committed blocks back.
func (f *Follower) undo(ctx context.Context, to chain.Point, tip chain.Tip) error {
	target := chain.Link{Height: chain.OriginHeight}
	if to.IsOrigin() {
		// A malformed point reads as origin in some libraries, and no node rolls a
		// client back so far that did not ask to begin there.
		if !f.points.Whole() || !f.cfg.Store.Floor().IsOrigin() {
			return fmt.Errorf("%w: a roll backward to origin from %s", ErrNonsense, f.cfg.Store.Head().At())
		}
	} else {
		l, ok := f.points.Find(to)
		if !ok {
			return f.diverged(to.String(), tip, "the point is not on our chain, or too old")
		}
		target = l
	}
	floor := f.cfg.Store.Floor()
	// A main block at the floor's height that is not the floor lies below it: the
	// floor is the boundary block that repeats its height.
	under := target.Height < floor.Height || target.Height == floor.Height && target.Point != floor.Point && !target.Boundary
	if under || f.cfg.Store.Highest()-target.Height > f.cfg.K {
		return f.diverged(target.At().String(), tip, fmt.Sprintf("it is more than k = %d blocks below the highest block we had", f.cfg.K))
	}
	f.status.update(func(s *Status) { s.Phase = RollingBack })
	depth := f.cfg.Store.Head().Height - target.Height
	flush, err := f.undoAndBuffer(ctx, target)
	f.status.update(func(s *Status) {
		s.Phase, s.Head, s.Newest, s.Rollbacks = Following, f.cfg.Store.Head(), f.cfg.Store.Head(), s.Rollbacks+1
	})
	if err != nil {
		return err
	}
	flush()
	f.cfg.Step("rollback published")
	log := f.log.Info
	if depth > 3 {
		log = f.log.Warn
	}
	log("rolled back", "to", target.At(), "depth", depth)
	return nil
}

// undoAndBuffer buffers the rollback in the hub first, while the journal still
// has the blocks from which corrections are made; nothing is visible before the
// store has undone them and the mailboxes are flushed.
func (f *Follower) undoAndBuffer(ctx context.Context, target chain.Link) (flush func(), err error) {
	f.publish.Lock()
	defer f.publish.Unlock()
	gone, err := f.points.CutTo(target.Point)
	if err != nil {
		return nil, &FatalError{Op: "rolling back", At: target.At(), Cause: err}
	}
	f.cfg.Step("rollback")
	flush = func() {}
	for _, l := range gone {
		if !l.Boundary { // leaving only a boundary block is no event (contract 1.6)
			if flush, err = f.bufferRollback(target); err != nil {
				return nil, &FatalError{Op: "publishing a rollback", At: target.At(), Cause: err}
			}
			break
		}
	}
	f.cfg.Step("rollback buffered")
	// Whoever ends the run waits for the whole of it: the hub has the whole of it, and
	// ends with what it has.
	if err := f.cfg.Store.Rollback(context.WithoutCancel(ctx), target.Point); err != nil {
		// What the store reached is a valid, shorter chain; nothing of it was
		// flushed, and the end of Run fails the subscriptions.
		return nil, &FatalError{Op: "rolling back to " + target.At().String(), At: f.cfg.Store.Head().At(), Cause: err}
	}
	f.cfg.Step("rolled back")
	return flush, nil
}

// bufferRollback tells the hub, which knows no boundary blocks: a rollback to
// one reaches it as a rollback to the block below.
func (f *Follower) bufferRollback(target chain.Link) (func(), error) {
	at := target.At()
	for target.Boundary {
		below, ok, err := f.cfg.Store.LinkAt(chain.Position{Height: target.Height})
		if err != nil {
			return nil, err
		}
		if !ok { // the genesis boundary block has nothing below
			at = chain.Origin
			break
		}
		target, at = below, below.At()
	}
	if target.Point.IsOrigin() {
		at = chain.Origin
	}
	return f.cfg.Hub.BufferRollback(at)
}
