package ourotail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/resolve"
	"github.com/ourotail/ourotail/store"
)

// replay gives one reader the past of our chain. It has a hub of its own, which
// makes of blocks, forks, gates and cursors just what the live one would, and feeds
// it block by block, as fast as the reader reads: from the journal what is within k,
// what is older from the node over a connection of its own (or from its files), with
// inputs resolved from the archive. Nothing of it holds following up. It belongs to
// one goroutine.
type replay struct {
	f    *Follower
	hub  *hub.Hub
	last *chain.AppliedBlock // fed last
	node *pastBlocks         // nil while nothing is read from there
	// settled tells that its tip was seen on our chain when the floor was there already:
	// no fork takes it any more.
	settled bool
}

// newReplay makes a replay that stands behind a block of our chain; depth is the
// reader's gate, from the height of its cursor, whose block may have been undone. It
// asks nothing of the node.
func (f *Follower) newReplay(at chain.At, depth, from chain.Height) (*replay, error) {
	r := &replay{f: f}
	cfg := f.hubConfig(r)
	r.hub = hub.New(cfg)
	st := f.store.State() // before the moment, in which the floor is still ours
	m := f.moment()
	defer m.close()
	floor, err := m.published(st.Floor)
	if err != nil {
		return nil, err
	}
	l, ok, err := m.main(at.Height)
	if err != nil { // the follower was closed, say: that is no fork, to be tried again for ever
		return nil, err
	}
	if !at.IsOrigin() && (!ok || l.Point != at.Point) {
		return nil, fmt.Errorf("%w: it took %v", errForked, at)
	}
	state := hub.State{Tip: floor, Floor: floor, Highest: st.Highest}
	if state.Orphans, err = m.orphans(); err != nil {
		return nil, err
	}
	r.settled = at.Height < floor.Height
	if r.settled {
		// What was highest here does not matter yet, but that the reader's gate is
		// open behind the start.
		state = hub.State{Tip: at, Floor: at, Orphans: state.Orphans, Highest: min(max(at.Height, from)+depth, st.Highest)}
	}
	if err := r.hub.Restore(state); err != nil || r.settled {
		return r, err
	}
	for h := max(floor.Height+1, f.cfg.Genesis.FirstHeight); h <= at.Height; h++ {
		b, err := m.createdAt(h)
		if err == nil {
			_, _, err = r.hub.Pass(b, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Block implements hub.Contents.
func (r *replay) Block(at chain.At) (*chain.AppliedBlock, error) {
	if r.last != nil && r.last.At == at {
		return r.last, nil
	}
	return r.f.journal.Block(at)
}

func (r *replay) close() {
	r.hub.CloseAll()
	r.drop()
}

func (r *replay) drop() {
	if r.node != nil {
		r.node.close()
		r.node = nil
	}
}

// far tells whether the next block has to be asked of the node.
func (r *replay) far() bool {
	return max(r.hub.Tip().Height+1, r.f.cfg.Genesis.FirstHeight) <= r.f.store.Floor().Height
}

// feed takes the next block, not above a height, or goes back where a fork has taken
// the newest.
func (r *replay) feed(ctx context.Context, most chain.Height) error {
	tip := r.hub.Tip()
	// Before the moment that is asked: what they say holds in it as well.
	archive, floor := r.f.store.State().Archive, r.f.store.Floor()
	next := max(tip.Height+1, r.f.cfg.Genesis.FirstHeight)
	if !r.settled || next > floor.Height {
		if done, err := r.near(tip, floor, archive, next, most); done || err != nil {
			return err
		}
	}
	if next > most {
		return nil
	}
	if !archive {
		return fmt.Errorf("%w: %w", hub.ErrResync, &hub.OlderError{Point: tip, Oldest: floor})
	}
	b, err := r.past(ctx, tip)
	if err != nil {
		return err
	}
	return r.apply(b, tip)
}

// near does what can be done without the node: it goes back with a fork, or takes a
// block of the journal. If done is false the next block is below the floor, and so is
// what the replay stands on.
func (r *replay) near(tip, floor chain.At, archive bool, next, most chain.Height) (done bool, err error) {
	m := r.f.moment()
	defer m.close()
	if !r.settled && (archive || tip.Height >= floor.Height) {
		if common, err := r.onChain(m, tip); err != nil {
			return false, err
		} else if common != tip {
			return true, r.hub.RollbackTo(common)
		}
		r.settled = tip.Height <= floor.Height
	}
	if next <= floor.Height || next > most {
		return next > most, nil
	}
	r.drop()
	l, ok, err := m.main(next)
	if err != nil || !ok { // a fork has just taken it
		return true, err
	}
	b, err := r.f.journal.block(m, l.At())
	switch {
	case errors.Is(err, store.ErrNoRecord) && (archive || next > r.f.store.Floor().Height):
		return true, nil // it has just become old
	case errors.Is(err, store.ErrNoRecord):
		return false, fmt.Errorf("%w: %w: block %d is no longer within k", hub.ErrResync, &hub.OlderError{Point: tip, Oldest: r.f.store.Floor()}, next)
	case err != nil:
		return false, err
	}
	r.settled = false
	return true, r.apply(b, tip)
}

// onChain returns the newest block of our chain at or below one that was on it.
func (r *replay) onChain(m moment, at chain.At) (chain.At, error) {
	if at.IsOrigin() {
		return at, nil
	}
	l, ok, err := m.main(at.Height)
	if err != nil || ok && l.Point == at.Point {
		return at, err
	}
	// The store may have forgotten the block since; the replay's own hub has not
	// forgotten what lies below it.
	for h := at.Height - 1; h > chain.OriginHeight; h-- {
		below, ok := r.hub.At(h)
		if !ok {
			break
		}
		l, ok, err := m.main(h)
		if err != nil || ok && l.Point == below.Point {
			return below, err
		}
	}
	return r.f.locate(m, chain.Cursor{At: at})
}

func (r *replay) apply(b *chain.AppliedBlock, tip chain.At) error {
	if b.At.Height != max(tip.Height+1, r.f.cfg.Genesis.FirstHeight) {
		return fmt.Errorf("replay: block %v after %v", b.At, tip)
	}
	r.last = b
	return r.hub.ApplyBlock(b)
}

// past reads the next block from the node, for as long as it takes.
func (r *replay) past(ctx context.Context, tip chain.At) (*chain.AppliedBlock, error) {
	jitter := backoff.NewExponentialBackOff()
	jitter.InitialInterval, jitter.MaxInterval = 250*time.Millisecond, 30*time.Second
	wait := r.f.pastWait
	if wait == nil {
		wait = func(int) time.Duration { return jitter.NextBackOff() }
	}
	for failures := 1; ; failures++ {
		b, err := r.pastOnce(ctx, tip)
		var broken *pastError
		if err == nil { // the connection has gone on behind it: it must not be lost
			return b, nil
		}
		if ctx.Err() != nil || errors.As(err, &broken) {
			return nil, errors.Join(ctx.Err(), err)
		}
		r.drop()
		r.f.cfg.Logger.Warn("replay: the node does not serve the past, trying again", "after", tip, "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait(failures)):
		}
	}
}

func (r *replay) pastOnce(ctx context.Context, tip chain.At) (*chain.AppliedBlock, error) {
	if r.node == nil {
		n, err := r.f.dialPast(ctx, tip)
		if err != nil {
			return nil, err
		}
		r.node = n
	}
	b, err := r.node.next(ctx)
	if err == nil && b.At.Height != max(tip.Height+1, r.f.cfg.Genesis.FirstHeight) {
		return nil, fmt.Errorf("the node serves %v after %v", b.At, tip)
	}
	return b, err
}

// pastError is what no repetition mends: a block that the archive contradicts.
type pastError struct{ cause error }

func (e *pastError) Error() string { return "replay: " + e.cause.Error() }
func (e *pastError) Unwrap() error { return e.cause }

// pastBlocks reads old blocks of our chain, in order, and resolves them from the
// archive.
type pastBlocks struct {
	f       *Follower
	conn    follow.Conn
	list    []chain.Message // come and not taken
	release func()
	block   ledger.Block
	effects chain.Effects
	builder resolve.Builder
	view    *store.Snapshot
	settled chain.Height // no block up to it will change any more, and the view has them all
	reads   int
	below   chain.Hash // of the block read last
	begun   bool       // it is known: behind origin the genesis files' hash comes first
	created map[chain.Height]chain.At
}

// dialPast connects behind a block of our chain.
func (f *Follower) dialPast(ctx context.Context, at chain.At) (*pastBlocks, error) {
	conn, err := f.pastConn(ctx, at)
	if err != nil {
		return nil, err
	}
	p := &pastBlocks{f: f, conn: conn, below: at.Point.Hash, begun: !at.IsOrigin(), created: map[chain.Height]chain.At{}, builder: resolve.Builder{ByronEpochSlots: f.cfg.Genesis.ByronEpochSlots}}
	p.block.ByronEpochSlots = f.cfg.Genesis.ByronEpochSlots
	found, ok, tip, err := conn.Intersect(ctx, []chain.Point{at.Point})
	if err == nil && !at.IsOrigin() && (!ok || found != at.Point) {
		err = fmt.Errorf("the node, whose tip is %v, does not have our block %v", tip, at)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return p, nil
}

// pastConn is a connection to the node's files, where they reach above a block, or
// to its socket.
func (f *Follower) pastConn(ctx context.Context, at chain.At) (follow.Conn, error) {
	if f.cfg.Immutable != "" {
		files, err := openFiles(f.cfg)
		if err != nil {
			return nil, err
		}
		if end, ok, err := files.End(); err == nil && ok && end.Height > at.Height {
			return files.Conn(end, end.At()), nil
		}
	}
	conn, err := f.node.dial(ctx)
	if err == nil {
		f.connected.Store(true)
	}
	return conn, err
}

// next returns the next main block. Boundary blocks are passed over.
func (p *pastBlocks) next(ctx context.Context) (*chain.AppliedBlock, error) {
	for {
		for len(p.list) == 0 {
			if p.release != nil {
				p.release()
				p.release = nil
			}
			m, err := p.conn.Next(ctx)
			if err != nil {
				return nil, err
			}
			p.list, p.release = m.List, m.Release
		}
		m := p.list[0]
		p.list = p.list[1:]
		switch m.Kind {
		case chain.RollBackward: // the answer to the intersection
			continue
		case chain.AwaitReply:
			return nil, errors.New("the node says that nothing follows: it is behind us")
		}
		if err := p.block.Walk(m.Raw); err != nil { // we could read it when we followed it
			return nil, fmt.Errorf("the node serves a block that cannot be read: %w", err)
		}
		if p.begun && p.block.Parent != p.below {
			return nil, fmt.Errorf("the node serves %v, which does not follow %s", p.block.At(), p.below)
		}
		p.below, p.begun = p.block.Point.Hash, true
		if p.block.Boundary {
			continue
		}
		return p.resolve()
	}
}

// resolve makes of the block that was walked what it was when we followed it.
func (p *pastBlocks) resolve() (*chain.AppliedBlock, error) {
	e := &p.effects
	p.block.Effects(e)
	// A view that is older than the block knows nothing of it, or its other branch.
	if p.reads++; p.view == nil || p.reads%viewBlocks == 0 || e.Height > p.settled {
		p.endView()
		p.settled = p.f.store.Floor().Height
		p.view = p.f.store.Snapshot()
		if e.Height > p.settled {
			return nil, fmt.Errorf("block %v is not below the floor %d", e.At(), p.settled)
		}
	}
	v := p.view
	// Each is looked up: a node on another branch serves blocks that follow ours as well.
	l, ok, err := v.LinkAt(e.Position())
	if err != nil {
		return nil, err
	}
	if !ok || l.Point != e.Point {
		return nil, fmt.Errorf("the node serves %v where our chain has %v", e.At(), l.At())
	}
	if err := p.retired(v, e); err != nil {
		return nil, err
	}
	for i := range e.Spent {
		ref := e.Spent[i].Ref
		o, by, ok, err := v.Spent(ref)
		if err != nil {
			return nil, err
		}
		if !ok || by.Height != e.Height {
			return nil, &pastError{fmt.Errorf("%w: block %v spends %s, the archive does not say so", store.ErrDamaged, e.At(), ref)}
		}
		e.Spent[i] = o
	}
	p.created[e.Height] = e.At()
	b, err := p.builder.Build(e, p.createdAt)
	if err != nil {
		return nil, &pastError{err}
	}
	return b, nil
}

// viewBlocks is for how many blocks a view of the store is kept: what they need
// never changes, but a view that is open keeps garbage.
const viewBlocks = 512

// createdMax bounds the names of blocks that are remembered.
const createdMax = 1 << 14

func (p *pastBlocks) createdAt(h chain.Height) (chain.At, error) {
	if at, ok := p.created[h]; ok {
		return at, nil
	}
	l, ok, err := p.view.LinkAt(chain.Position{Height: h})
	if err == nil && !ok {
		err = fmt.Errorf("no block is kept for height %d", h)
	}
	if len(p.created) >= createdMax {
		clear(p.created)
	}
	p.created[h] = l.At()
	return l.At(), err
}

func (p *pastBlocks) endView() {
	if p.view != nil {
		p.view.Close()
		p.view = nil
	}
}

func (p *pastBlocks) close() {
	p.conn.Close()
	p.endView()
}

// retired puts before the transactions of the first block of Allegra what the
// ledger removed there (contract 1.7).
func (p *pastBlocks) retired(v *store.Snapshot, e *chain.Effects) error {
	avvm := p.f.cfg.Genesis.Outputs[:p.f.cfg.Genesis.AVVM]
	if len(avvm) == 0 || e.Era < chain.Allegra {
		return nil
	}
	if below, ok, err := v.LinkAt(chain.Position{Height: e.Height - 1}); err != nil || ok && below.Era >= chain.Allegra {
		return err
	}
	var gone []chain.TxIn
	for i := range avvm {
		_, by, ok, err := v.Spent(avvm[i].Ref)
		if err != nil {
			return err
		}
		if ok && by.Height == e.Height && by.Tx.IsZero() {
			gone = append(gone, avvm[i].Ref)
		}
	}
	resolve.Retire(e, gone)
	return nil
}
